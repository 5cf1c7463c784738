"""The checks of replayed fits notice planted faults."""

import jax.numpy as jnp
import numpy as np
import pytest

from privfeat import DPFC, DPAdamLinear, DPLeastSquares
from privfeat.core.bounds.grid import grid_step
from privfeat.core.bounds.rows import ClippedRows
from privfeat.core.noise.keys import KeyStream
from privfeat.core.sums.totals import ExactSum
from tests.linear.replaying import (
    check_independence,
    check_noise,
    check_sensitivity,
    replay,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning"),
]


def test_check_noise_notices_half_the_noise(three_classes, spy, plant):
    genuine = plant.genuine("Gaussian noise")
    plant("Gaussian noise", lambda key, shape, stddev: genuine(key, shape, stddev / 2))
    clf = DPFC(epsilon=2.0, n_iter=30, random_state=0).fit(*three_classes)
    with pytest.raises(AssertionError):
        check_noise(clf.privacy_, spy.calls)


def test_check_independence_notices_one_key_for_all_classes(three_classes, spy, plant):
    """The same noise vector for every class, as in published code."""
    genuine = plant.genuine("Gaussian noise")

    def repeated(key, shape, stddev):
        row = genuine(key, shape[1:], stddev)
        return np.broadcast_to(row, shape).copy()

    plant("Gaussian noise", repeated)
    DPLeastSquares(epsilon=2.0, random_state=0).fit(*three_classes)
    with pytest.raises(AssertionError):
        check_independence(spy.of("class_sums"))


def test_check_independence_notices_one_key_for_all_steps(three_classes, spy, plant):
    key = KeyStream(1).draw_noise_key()
    plant("next key of noise", lambda self: key)
    DPAdamLinear(epsilon=2.0, n_iter=3).fit(*three_classes)
    with pytest.raises(AssertionError):
        check_independence(spy.calls)


def unclipped(features, *, clip_norm, **_):
    whole = np.trunc(np.asarray(features, np.float64) / grid_step(clip_norm))
    rows = jnp.asarray(whole.astype(np.float32))
    return ClippedRows(rows, jnp.full(len(rows), clip_norm), jnp.isfinite(rows[:, 0]))


def test_check_sensitivity_notices_a_missing_clip(three_classes, spy, plant):
    plant("clip of rows", unclipped)
    X, y = three_classes
    longer = np.vstack([X, [[10.0, 0.0, 0.0, 0.0]]]), np.append(y, 0)

    def make():  # the planted fault forgets constant coordinates
        return DPLeastSquares(
            epsilon=2.0,
            classes=range(3),
            random_state=0,
            center=False,
            fit_intercept=False,
        )

    first, _, calls, other_calls = replay(spy, make, (X, y), longer)
    with pytest.raises(AssertionError):
        check_sensitivity(first.privacy_, calls, other_calls)


def test_check_sensitivity_notices_a_mean_instead_of_a_sum(three_classes, spy, plant):
    """Division by the number of records moves every record's contribution."""
    genuine = plant.genuine("exact Gram matrix")

    def mean_gram(rows, **options):
        n_samples = rows._features.shape[0]
        return ExactSum(genuine(rows, **options).value * 1000.0 / n_samples)

    plant("exact Gram matrix", mean_gram)
    X, y = three_classes

    def make():
        return DPLeastSquares(epsilon=2.0, classes=range(3), random_state=0)

    first, _, calls, other_calls = replay(spy, make, (X, y), (X[1:], y[1:]))
    with pytest.raises(AssertionError):
        check_sensitivity(first.privacy_, calls, other_calls)
