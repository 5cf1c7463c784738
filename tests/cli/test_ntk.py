import pytest


def test_ntk_prints_table_1(run):
    status, out, err = run("ntk", "--n-records", 4, "--clip-norm", 0.01)
    assert (status, err) == (0, "")
    header, none, flat, layerwise = out.splitlines()
    assert header.split()[:2] == ["clipping", "symmetric"]
    assert none.split()[:4] == ["none", "yes", "yes", "yes"]
    assert flat.split()[:2] == ["flat", "no"]
    assert flat.split()[3] == "yes"
    assert layerwise.split()[:2] == ["layerwise", "no"]
    decays = [float(row.split()[-1]) for row in (none, flat, layerwise)]
    assert decays[0] < decays[1] < 0 > decays[2]


@pytest.mark.parametrize(
    "bad",
    [("--model", "x"), ("--n-records", 0), ("--clipping", "x"), ("--clip-norm", "nan")],
)
def test_ntk_refuses_in_words(fails, bad):
    assert "must" in fails("ntk", *bad)
