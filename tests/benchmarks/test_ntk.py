import json

import ntk
import pytest
from figures.ntk_table import TABLE_1


@pytest.fixture
def run(monkeypatch):
    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["ntk", *map(str, arguments)])
        ntk.main()

    return run


def test_script_prints_and_keeps_the_kernels_of_a_network(run, tmp_path):
    run("--n-records", 4, "--clip-norm", 0.01, "--out", tmp_path / "ntk.json")
    kept = json.loads((tmp_path / "ntk.json").read_text())["tables"]
    rows = {row[0]: row[1:] for row in kept["kernels of a network"]["rows"]}
    assert list(rows) == list(TABLE_1)
    for style, found in rows.items():
        assert found[0] == ("no" if "small" in style else "yes")
        assert found[2] == "yes" or style == "small R, layerwise"
    decays = {style: float(found[-1]) for style, found in rows.items()}
    assert decays["none"] == decays["large R, flat"] == decays["large R, layerwise"]
    assert decays["none"] < decays["batch, flat"] < decays["small R, flat"] < 0


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
