import numpy as np
import pytest
from scipy import stats

from privfeat import DPLeastSquares
from privfeat.audit import audit_one_run
from privfeat.audit.one_run import epsilon_lower_bound, make_canaries
from privfeat.audit.random_numbers import make_rng
from privfeat.core.accounting.conversions import gaussian_epsilon
from tests.audit.faults import drop_clip, repeat_noise

pytest.importorskip("jax_privacy")


@pytest.mark.statistical
@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
@pytest.mark.parametrize("epsilon", [1.0, 8.0])
def test_audit_finds_no_fault_in_an_estimator(epsilon, adjacency, one_step, clusters):
    """False-positive rate 1e-3 each, by the theorem; a seed fixes it here."""
    clf = one_step(epsilon=epsilon, adjacency=adjacency)
    result = audit_one_run(clf, *clusters, n_canaries=200, confidence=0.999, seed=0)
    assert result.ok
    assert result.gaussian
    assert 0.0 <= result.epsilon_lower <= result.epsilon_claimed <= epsilon
    assert result.n_guesses == 20
    assert "with confidence 0.999" in str(result)


@pytest.mark.statistical
def test_bound_is_not_far_below_epsilon(one_step, clusters):
    """Without this a bound of zero would pass. A quarter of epsilon: power > 0.99."""
    clf = one_step(epsilon=8.0)
    result = audit_one_run(clf, *clusters, n_canaries=200, seed=0)
    assert result.epsilon_lower > 1.0


@pytest.mark.statistical
def test_audit_finds_a_missing_clip(clusters, plant):
    """Canaries a hundred times too long: found with probability above 0.999."""
    drop_clip(plant)
    clf = DPLeastSquares(
        epsilon=1.0,
        classes=range(4),
        row_scaling="clip",
        center=False,
        fit_intercept=False,
        ridge=1e6,
    )
    result = audit_one_run(clf, *clusters, n_canaries=200, canary_norm=100.0, seed=0)
    assert not result.ok


@pytest.mark.statistical
def test_audit_finds_one_key_for_all_classes(one_step, clusters, plant):
    """Differences of classes are free of noise: found with probability above 0.999."""
    repeat_noise(plant)
    clf = one_step(epsilon=1.0)
    assert not audit_one_run(clf, *clusters, n_canaries=200, seed=0).ok


def bounds(mu, n_runs, *, gaussian, n_canaries=200, delta=1e-5, seed=0):
    """Return bounds from runs of the Gaussian mechanism itself."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n_runs):
        included = rng.random(n_canaries) < 0.5
        scores = rng.normal(size=n_canaries) + mu * included
        found.append(
            epsilon_lower_bound(
                scores,
                included,
                n_guesses=n_canaries // 10,
                confidence=0.95,
                delta=delta,
                gaussian=gaussian,
            )
        )
    return np.array(found)


@pytest.mark.statistical
@pytest.mark.parametrize("gaussian", [True, False])
@pytest.mark.parametrize("mu", [0.05, 0.5])
def test_bound_covers_epsilon(mu, gaussian):
    """At least 95 %: 100 runs of known epsilon; false-positive rate 1e-6 at 95 %.

    A coverage of 70 % fails with probability above 0.99.
    """
    too_high = bounds(mu, 100, gaussian=gaussian) > gaussian_epsilon(mu, 1e-5)
    assert stats.binom.sf(too_high.sum() - 1, 100, 0.05) > 1e-6


def test_audit_takes_any_model(clusters):
    class Nearest:
        def fit(self, X, y):
            self.classes_ = np.unique(y)
            self.means_ = np.array([X[y == c].sum(axis=0) for c in self.classes_])
            return self

        def decision_function(self, X):
            return X @ self.means_.T

    result = audit_one_run(
        Nearest(), *clusters, n_canaries=200, epsilon=1.0, delta=1e-5
    )
    assert not result.ok
    assert not result.gaussian
    with pytest.raises(ValueError, match="epsilon and delta must be given"):
        audit_one_run(Nearest(), *clusters, n_canaries=200)


def test_audit_takes_users(clusters):
    clf = DPLeastSquares(epsilon=1.0, classes=range(4), max_group_size=3)
    X, y = clusters
    result = audit_one_run(clf, X, y, groups=np.arange(100) // 2, n_canaries=20)
    assert result.ok


def test_audit_takes_two_classes(clusters):
    X, y = clusters
    clf = DPLeastSquares(epsilon=1.0, classes=range(2))
    assert audit_one_run(clf, X, y % 2, n_canaries=20).ok


@pytest.mark.parametrize(
    "bad",
    [
        {"n_canaries": 9},
        {"guess_fraction": 0.0},
        {"guess_fraction": np.nan},
        {"confidence": 0.5},
        {"confidence": 1.0},
        {"canary_norm": 0.0},
    ],
)
def test_audit_refuses_a_setting_that_means_nothing(bad, one_step, clusters):
    with pytest.raises(ValueError, match=f"{next(iter(bad))} must be"):
        audit_one_run(one_step(), *clusters, **bad)


def test_bound_is_zero_without_two_kinds_of_canaries():
    for included in (np.zeros(10, bool), np.ones(10, bool)):
        found = epsilon_lower_bound(
            np.arange(10.0),
            included,
            n_guesses=1,
            confidence=0.95,
            delta=1e-5,
            gaussian=False,
        )
        assert found == 0.0


def test_canaries_are_orthogonal_within_blocks():
    means = np.array([[1.0, 2.0, 0.0, 0.0, 0.0]])
    canaries = make_canaries(7, 5, np.arange(3), norm=2.0, avoid=means, rng=make_rng(0))
    product = canaries.X[:4] @ canaries.X[:4].T
    np.testing.assert_allclose(product, 4.0 * np.eye(4), atol=1e-12)
    np.testing.assert_allclose(canaries.X @ means.T, 0.0, atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(canaries.X, axis=1), 2.0)
    assert canaries.X.shape == (7, 5)
    assert canaries.included.dtype == bool


def test_canaries_avoid_nothing_where_there_is_no_room():
    canaries = make_canaries(
        3, 3, np.arange(2), norm=1.0, avoid=np.eye(3)[:2], rng=make_rng(0)
    )
    np.testing.assert_allclose(canaries.X @ canaries.X.T, np.eye(3), atol=1e-12)
