from functools import partial

import numpy as np
import pytest

from privfeat import DPAdamLinear
from privfeat.audit import (
    SanityResult,
    calibrate_noise,
    pattern_test,
    random_label_test,
)

RANDOM = partial(random_label_test, n_samples=200, n_features=50, n_classes=4, seed=0)
PATTERN = partial(
    pattern_test,
    n_users=60,
    records_per_user=5,
    side=8,
    patch=4,
    n_classes=4,
    n_fits=3,
    rate=0.02,
    seed=0,
)


def make(noise_multiplier, **options):
    return DPAdamLinear(noise_multiplier=noise_multiplier, n_iter=10, **options)


@pytest.mark.statistical
def test_random_labels_are_learned_without_noise_alone():
    """False-positive rate 1e-3; without noise the accuracy is far above the limit."""
    assert RANDOM(make(300.0)).passed
    result = RANDOM(make(0.01))
    assert not result.passed
    assert result.margin < -0.1
    assert "FAIL" in str(result)


@pytest.mark.statistical
def test_pattern_of_one_user_is_learned_without_noise_alone():
    """False-positive rate 0.02; without noise all fits learn it."""
    assert not PATTERN(make(0.01)).passed
    assert PATTERN(make(3000.0)).passed


@pytest.mark.statistical
def test_pattern_of_all_users_is_learned():
    """A quarter of the records carry it: all fits learn it at little noise."""
    assert PATTERN(make(1.0), spread="all_users").passed
    assert PATTERN(make(1.0), spread="all_users").values == (1.0, 1.0, 1.0)


def test_pattern_test_passes_users_to_the_fit():
    result = PATTERN(make(1000.0, max_group_size=5))
    assert len(result.values) == 3


def test_result_has_a_plot():
    pytest.importorskip("matplotlib")
    result = SanityResult("name", (0.1, 0.3), limit=0.25, chance=0.1)
    assert result.margin == pytest.approx(0.05)
    assert result.passed
    assert result.plot()[1:4] == b"PNG"
    other = SanityResult("name", (0.1, 0.3), 0.25, 0.1, must_stay_below=False)
    assert not other.passed


def stub(noise_multiplier):
    """A test that passes from a noise multiplier of 7 on."""
    return SanityResult("stub", (1.0 / noise_multiplier,), limit=1 / 7, chance=0.0)


def test_calibrate_noise_finds_the_smallest_that_passes():
    found = calibrate_noise(lambda s: s, stub, low=0.1, high=100.0, tol=0.01)
    assert 7.0 <= found.noise_multiplier <= 7.07
    passed = [noise for noise, result in found.tried if result.passed]
    assert min(passed) == found.noise_multiplier
    assert calibrate_noise(lambda s: s, stub, low=8.0).noise_multiplier == 8.0
    with pytest.raises(ValueError, match="high must be a noise multiplier that passes"):
        calibrate_noise(lambda s: s, stub, high=5.0)


@pytest.mark.parametrize(
    "bad", [{"low": 0.0}, {"low": np.nan}, {"high": 0.1}, {"tol": 0.0}]
)
def test_calibrate_noise_refuses_an_empty_range(bad):
    with pytest.raises(ValueError, match="must be"):
        calibrate_noise(lambda s: s, stub, **bad)


@pytest.mark.parametrize(
    "bad",
    [
        {"patch": 9},
        {"channels": 0},
        {"n_users": 1},
        {"n_classes": 1},
        {"n_fits": 0},
        {"spread": "two"},
        {"rate": 0.01},
    ],
)
def test_pattern_test_refuses_settings_that_mean_nothing(bad):
    with pytest.raises(ValueError, match=f"{next(iter(bad))} must"):
        PATTERN(make(1.0), **bad)
