import math

import numpy as np
import pytest
from figures.batch_law import draw_law, fit_batch_law
from matplotlib.figure import Figure


def test_law_is_recovered_without_scatter():
    sizes = [64, 128, 256, 1024]
    law = fit_batch_law(sizes, [0.5 - 0.01 * math.log2(size) for size in sizes])
    assert law.slope == pytest.approx(-0.01)
    assert law.predict(16384) == pytest.approx((0.36, 0.36, 0.36))


@pytest.mark.slow
@pytest.mark.statistical
def test_interval_covers_a_new_run_as_often_as_it_says():
    """2,000 laws at level 0.9: false-positive rate below 1e-6 (5 stddev of 0.0067)."""
    rng = np.random.default_rng(7)
    sizes = np.array([64, 64, 128, 256, 512, 1024])

    def truth(size):
        return 0.4 - 0.01 * np.log2(size) + rng.normal(0, 0.01, np.shape(size))

    covered = 0
    for _ in range(2000):
        _, low, high = fit_batch_law(sizes, truth(sizes)).predict(16384, level=0.9)
        covered += low <= truth(16384) <= high
    assert abs(covered / 2000 - 0.9) < 0.034


def test_law_refuses_too_little():
    with pytest.raises(ValueError, match="length >= 3"):
        fit_batch_law([64, 128], [0.5, 0.5])
    with pytest.raises(ValueError, match="two different"):
        fit_batch_law([64, 64, 64], [0.5, 0.5, 0.5])
    with pytest.raises(ValueError, match="finite"):
        fit_batch_law([64, 128, 256], [0.5, math.nan, 0.5])


def test_law_of_four_runs():
    law = fit_batch_law([64, 128, 128, 256], [0.36, 0.35, 0.36, 0.35])
    assert f"{law.slope:.3f} {law.predict(16384).mean:.2f}" == "-0.005 0.32"


def test_figure_shows_runs_and_target():
    ax = Figure().subplots()
    draw_law(fit_batch_law([64, 128, 256], [0.40, 0.39, 0.39]), 4096, ax)
    assert ax.get_xscale() == "log"
    assert ax.get_xlim()[1] > 4096
    assert "prediction" in ax.get_legend().get_texts()[1].get_text()
