import json

import pytest

tan_figures = pytest.importorskip("tan_figures")


def test_script_prints_both_figures_and_the_tables(tmp_path, monkeypatch, capsys):
    out = tmp_path / "figures.json"
    command = "tan_figures --noises 0.5 2.5 --steps 10000 --out".split()
    monkeypatch.setattr("sys.argv", [*command, str(out)])
    monkeypatch.setattr(tan_figures, "ROWS", tan_figures.ROWS[-1:])
    tan_figures.main()
    printed = capsys.readouterr().out
    assert "Figure 2, eta = 0.95: epsilon, closed form 7.96" in printed
    assert "| 5, all of CIFAR-10 | 7.10    | 7.10  |" in printed
    found = json.loads(out.read_text())
    wall, flat = found["figure_2"]["0.95"]["10000"]
    assert wall > 30 > 8 > flat
    assert found["figure_3"]["2.5"][0] == pytest.approx(1.084, abs=1e-3)


def test_script_draws_both_figures(tmp_path, monkeypatch):
    args = type("Args", (), {"noises": [1.0, 2.0], "steps": [1000], "plots": tmp_path})
    monkeypatch.setattr(
        tan_figures.np, "geomspace", lambda low, high, n: tan_figures.np.array([1, 2.0])
    )
    tan_figures.draw(args)
    assert {path.name for path in tmp_path.iterdir()} == {
        "figure-2.png",
        "figure-3.png",
    }
