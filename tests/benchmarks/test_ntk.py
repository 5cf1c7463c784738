import ntk
import pytest


@pytest.fixture
def run(monkeypatch):
    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["ntk", *map(str, arguments)])
        ntk.main()

    return run


def test_script_prints_table_1(run, capsys):
    run("--n-records", 4, "--clip-norm", 0.01)
    header, none, flat, layerwise = capsys.readouterr().out.splitlines()
    assert header.split()[:2] == ["clipping", "symmetric"]
    assert none.split()[:4] == ["none", "yes", "yes", "yes"]
    assert flat.split()[:2] == ["flat", "no"]
    assert flat.split()[3] == "yes"
    assert layerwise.split()[:2] == ["layerwise", "no"]
    decays = [float(row.split()[-1]) for row in (none, flat, layerwise)]
    assert decays[0] < decays[1] < 0 > decays[2]


def test_script_draws_the_decay(run, tmp_path):
    run("--shape", 2, 2, 1, "--n-records", 2, "--plots", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["ntk.png"]


@pytest.mark.parametrize(
    "bad",
    [("--model", "x"), ("--n-records", 0), ("--clipping", "x"), ("--clip-norm", "nan")],
)
def test_script_refuses_in_words(run, bad):
    with pytest.raises(ValueError, match="must"):
        run(*bad)
