import math

import numpy as np
import pytest

from privfeat.analysis.scaling import (
    BatchLawDisplay,
    constant_tan_settings,
    fit_batch_law,
)
from privfeat.analysis.tan import TAN


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


def test_settings_keep_the_total_noise():
    reference = TAN(16384 / 1_281_167, 2.5, 72_000)
    for choice in constant_tan_settings(16384, 72_000, 8.0):
        tan = TAN(choice.batch_size / 1_281_167, 2.5, choice.n_iter)
        assert tan.eta == pytest.approx(reference.eta, rel=1e-4)
        assert choice.learning_rate * choice.n_iter == pytest.approx(8.0 * 72_000)


def test_settings_are_those_of_table_4():
    best = constant_tan_settings(16384, 72_000, 8.0, step_factors=[0.25])[0]
    assert best == (32768, 18_000, 32.0)


def test_display_shows_runs_and_target():
    law = fit_batch_law([64, 128, 256], [0.40, 0.39, 0.39])
    display = BatchLawDisplay(law, target=4096).plot()
    assert display.ax_.get_xscale() == "log"
    assert display.ax_.get_xlim()[1] > 4096
    assert "prediction" in display.ax_.get_legend().get_texts()[1].get_text()
