import math
from functools import partial
from statistics import NormalDist
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from privfeat import DPAdamLinear, DPNewton
from privfeat.audit import (
    SanityResult,
    pattern_test,
    random_label_test,
    sanity_limits,
    smallest_noise,
)

RANDOM = partial(
    random_label_test, n_samples=50, n_features=50, n_classes=4, n_fits=8, seed=0
)
PATTERN = partial(
    pattern_test,
    n_users=60,
    records_per_user=5,
    side=8,
    patch=4,
    n_classes=4,
    n_fits=8,
    rate=0.02,
    mu=0.0,
    seed=0,
)


def make(noise_multiplier, **options):
    return DPAdamLinear(noise_multiplier=noise_multiplier, n_iter=10, **options)


@pytest.mark.slow
@pytest.mark.statistical
def test_random_labels_are_learned_without_noise_alone():
    """Fixed keys; without noise the accuracy is far above the limit."""
    assert RANDOM(make(300.0)).passed
    assert RANDOM(make(300.0), mu=0.0).passed
    result = RANDOM(make(0.01), mu=0.0)
    assert not result.passed
    assert result.margin < -0.1
    assert "FAIL" in str(result)


@pytest.mark.slow
@pytest.mark.statistical
def test_pattern_of_one_user_is_learned_without_noise_alone():
    """False-positive rate 0.02; without noise all fits learn it."""
    assert not PATTERN(make(0.01)).passed
    assert PATTERN(make(3000.0)).passed


@pytest.mark.slow
@pytest.mark.statistical
def test_pattern_of_all_users_is_learned():
    """A quarter of the records carry it: all fits learn it at little noise."""
    assert PATTERN(make(1.0), spread="all_users").passed
    assert PATTERN(make(1.0), spread="all_users").values == (1.0,) * 8


def test_pattern_test_passes_users_to_the_fit():
    result = PATTERN(make(1000.0, max_group_size=5))
    assert len(result.values) == 8


@pytest.mark.slow
@pytest.mark.statistical
def test_a_tenth_of_the_noise_fails_at_the_defaults():
    """Fixed seed; 10 fits, the default before, let a fit of epsilon 10 pass for 1."""
    weak = DPNewton(epsilon=10.0)
    result = random_label_test(weak, mu=0.267, seed=0)
    assert result.limit == pytest.approx(0.44, abs=0.01)
    assert not result.passed


@pytest.mark.parametrize(("n_fits", "p", "rate"), [(5, 0.16, 1e-3), (10, 0.3, 0.01)])
def test_limit_of_a_mean_holds_for_the_worst_law(n_fits, p, rate):
    """Fits that remember all or nothing: the binomial tail, by sum of its terms."""
    limit = sanity_limits.mean_limit(rate, n_fits, p)
    above = [k for k in range(n_fits + 1) if k / n_fits > limit]
    assert above
    tail = sum(math.comb(n_fits, k) * p**k * (1 - p) ** (n_fits - k) for k in above)
    assert 0 < tail <= rate


def test_what_a_fit_may_know_follows_from_its_statement():
    """Of the largest event under mu-GDP, and e^epsilon where there is no mu."""

    def stated(**values):
        fit = {"epsilon": 1.0, "delta": 1e-5, "mu": None, "unit": "record"} | values
        return SimpleNamespace(privacy_=SimpleNamespace(**fit))

    allowed = sanity_limits.allowed_rate
    normal = NormalDist()
    assert allowed(stated(mu=0.5), None, 2, 0.1) == pytest.approx(
        normal.cdf(normal.inv_cdf(0.1) + 1.0)
    )
    assert allowed(stated(mu=0.5, unit="user"), None, 2, 0.1) == pytest.approx(
        normal.cdf(normal.inv_cdf(0.1) + 0.5)
    )
    assert allowed(stated(), None, 1, 0.1) == pytest.approx(0.1 * math.e + 1e-5)
    assert allowed(stated(epsilon=200.0), None, 1, 0.1) == 1.0
    assert allowed(stated(epsilon=math.inf), None, 1, 0.1) == 0.1
    assert allowed(object(), None, 1, 0.1) == 0.1
    assert allowed(stated(mu=9.0), 0.0, 1, 0.1) == pytest.approx(0.1)


class Remembers(BaseEstimator):
    """A leak: states a cost, and knows every row by heart."""

    privacy_ = SimpleNamespace(epsilon=1.0, delta=1e-5, mu=0.27, unit="record")

    def __init__(self, classes=None):
        self.classes = classes

    def fit(self, X, y):
        self.rows_ = np.asarray(X), y
        return self

    def predict(self, X):
        rows, labels = self.rows_
        return labels[np.argmax(np.asarray(X) @ rows.T, axis=1)]


def test_a_planted_leak_fails_both_tests():
    assert not RANDOM(Remembers()).passed
    assert RANDOM(Remembers()).values == (1.0,) * 8
    planted = PATTERN(Remembers(), mu=None, records_per_user=1, n_patterns=3)
    assert planted.margin < 0


def test_labels_are_random_for_each_user():
    seen = []

    class Spy(Remembers):
        privacy_ = SimpleNamespace(epsilon=1.0, delta=1e-5, mu=0.27, unit="user")

        def __init__(self, classes=None, max_group_size=5):
            super().__init__(classes)
            self.max_group_size = max_group_size

        def fit(self, X, y, groups):
            seen.append((y, groups))
            return super().fit(X, y)

    RANDOM(Spy(), records_per_user=5, n_fits=8)
    for y, groups in seen:
        assert all(len(set(y[groups == user])) == 1 for user in set(groups))
        assert len(set(groups)) == 10


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


def test_smallest_noise_finds_the_smallest_that_passes():
    found = smallest_noise(lambda s: s, stub, low=0.1, high=100.0, tol=0.01)
    assert 7.0 <= found.noise_multiplier <= 7.07
    passed = [noise for noise, result in found.tried if result.passed]
    assert min(passed) == found.noise_multiplier
    assert smallest_noise(lambda s: s, stub, low=8.0).noise_multiplier == 8.0
    with pytest.raises(ValueError, match="high must be a noise multiplier that passes"):
        smallest_noise(lambda s: s, stub, high=5.0)


@pytest.mark.parametrize(
    "bad", [{"low": 0.0}, {"low": np.nan}, {"high": 0.1}, {"tol": 0.0}]
)
def test_smallest_noise_refuses_an_empty_range(bad):
    with pytest.raises(ValueError, match="must be"):
        smallest_noise(lambda s: s, stub, **bad)


@pytest.mark.parametrize(
    "bad",
    [
        {"patch": 9},
        {"channels": 0},
        {"n_users": 1},
        {"n_classes": 1},
        {"n_fits": 0},
        {"spread": "two"},
        {"rate": 1e-6},
        {"n_patterns": 61},
    ],
)
def test_pattern_test_refuses_settings_that_mean_nothing(bad):
    with pytest.raises(ValueError, match=f"{next(iter(bad))} must"):
        PATTERN(make(1.0), **bad)
