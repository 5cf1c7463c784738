import json

import numpy as np
import pytest
from matplotlib.figure import Figure

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


def test_wall_has_a_line_for_each_number_of_steps():
    ax = Figure().subplots()
    noises = [0.5, 2.0, 4.0]
    tan_figures.draw_wall(0.13, [1000, 10_000], noises, ax)
    lines = ax.get_lines()
    expected = tan_figures.wall_curve(0.13, 1000, noises, 1e-6)
    assert np.array_equal(lines[0].get_ydata(), expected)
    assert len(lines) == 2 + 2  # and the closed form and the wall


def test_ratios_have_a_line_for_each_noise():
    ax = Figure().subplots()
    tan_figures.draw_ratios((0.5, 1.0, 2.0, 4.0), (2, 4), ax)
    named = [line.get_label() for line in ax.get_lines()][:4]
    assert named == [f"noise multiplier {noise}" for noise in ("0.5", "1", "2", "4")]
