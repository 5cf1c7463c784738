"""How one record is clipped: rows 3, 11 and 20 to 22."""

import itertools
import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from privfeat import DPAdamLinear, DPLeastSquares
from privfeat.core.bounds.grid import grid_step
from privfeat.core.bounds.rows import clip_rows
from privfeat.core.sums.statistics import exact_gradient
from tests.linear.replaying import check_sensitivity, replay
from tests.pitfalls.whole import Records, unit_records

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")
OPTIONS = [
    {"row_scaling": scaling, "fit_intercept": intercept, "center": center}
    for scaling, intercept, center in itertools.product(
        ["unit", "clip"], [True, False], [True, False]
    )
]


# 3 -- clipping was skipped for one option; a clipped copy was made, the original used


def check_03(spy, make, data, *all_options):
    for options in all_options:
        check_clip(spy, make, data, options)


def check_clip(spy, make, data, options):
    X, y = data
    longer = np.vstack([X, [1e4, -1e4, 0.0, 1e4]]), np.append(y, 1)
    for cls in (DPLeastSquares, DPAdamLinear):

        def made(cls=cls):
            return make(cls, **options)

        first, _, calls, other_calls = replay(spy, made, (X, y), longer)
        check_sensitivity(first.privacy_, calls, other_calls)


@pytest.mark.parametrize("options", OPTIONS)
def test_03_a_long_record_is_clipped_whatever_the_options(
    spy, make, three_classes, options
):
    check_03(spy, make, three_classes, options)


def test_03_notices_a_clip_that_one_option_skips(spy, make, three_classes, plant):
    genuine = plant.genuine("clip of rows")

    def skipping(features, *, clip_norm, intercept_scaling, **rest):
        bounded = genuine(
            features, clip_norm=clip_norm, intercept_scaling=intercept_scaling, **rest
        )
        if intercept_scaling is not None:
            return bounded
        rows = jnp.trunc(features / grid_step(clip_norm)).astype(jnp.float32)
        return bounded._replace(rows=rows)

    plant("clip of rows", skipping)
    check_03(spy, make, three_classes, OPTIONS[1])  # with an intercept all is well
    with pytest.raises(AssertionError):
        check_03(spy, make, three_classes, *OPTIONS)


# 11 -- norms after clipping exceeded the bound in low precision, by 0.6 % in bfloat16


def check_11(clip):
    rng = np.random.default_rng(0)
    for dtype in (jnp.bfloat16, jnp.float16, jnp.float32, jnp.float64):
        with jax.enable_x64(True):
            features = jnp.asarray(rng.normal(size=(50, 33)) * 9.0, dtype)
        # each pair is compiled anew
        for clip_norm in (0.3, 1.0, 7.7) if dtype == jnp.float32 else (0.3,):
            limit = Fraction(clip_norm) ** 2
            step = Fraction(grid_step(clip_norm)) ** 2
            for row in np.asarray(clip(features, clip_norm), np.float64):
                assert sum(int(entry) ** 2 for entry in row) * step <= limit


def test_11_norms_hold_for_every_precision_of_the_input():
    for row_scaling in ("unit", "clip"):
        check_11(
            lambda features, radius, scaling=row_scaling: (
                # what reads records makes them float64 first
                clip_rows(
                    np.asarray(features, np.float64),
                    clip_norm=radius,
                    row_scaling=scaling,
                ).rows
            )
        )


def test_11_notices_a_clip_in_the_precision_of_the_input():
    def clip(features, radius):
        norms = jnp.linalg.norm(features, axis=1, keepdims=True)
        clipped = features * jnp.minimum(1.0, radius / norms).astype(features.dtype)
        return np.asarray(clipped, np.float64) / grid_step(radius)

    with pytest.raises(AssertionError):
        check_11(clip)


# 20 -- one NaN or infinite record spoiled the model, or told that it was there


def check_20(clip):
    rng = np.random.default_rng(0)
    for bad in (math.nan, math.inf, -math.inf, 1e38, 5e-324):
        features = rng.normal(size=(5, 3))
        others = clip(features)
        features[2, 1] = bad
        found = clip(features)
        assert np.all(np.isfinite(found))
        assert np.all(np.linalg.norm(found, axis=1) <= 1.0)
        np.testing.assert_array_equal(np.delete(found, 2, 0), np.delete(others, 2, 0))


def bounded(features):
    rows = clip_rows(features, clip_norm=1.0, row_scaling="clip", intercept_scaling=0.1)
    return np.asarray(rows.rows, np.float64) * grid_step(1.0)


def test_20_a_bad_record_becomes_zero_and_leaves_the_others_alone():
    check_20(bounded)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_20_fit_refuses_a_bad_record_without_showing_it(make, three_classes, bad):
    X, y = three_classes
    X[17, 2] = bad
    with pytest.raises(ValueError, match=r"NaN|infinity") as error:
        make().fit(X, y)
    assert "17" not in str(error.value)


def test_20_notices_a_clip_that_multiplies_nan_by_zero():
    def clip(features):
        norms = np.linalg.norm(features, axis=1, keepdims=True)
        return features * np.minimum(1.0, (1.0 - 1e-9) / norms)

    with pytest.raises(AssertionError), np.errstate(all="ignore"):
        check_20(clip)


# 21 -- gradients were clipped parameter by parameter, noise added for one global norm


def check_21():
    """A record whose residual saturates every output at once."""
    rows, coef = unit_records(1), np.zeros((6, 3))
    for loss, clip_norm in itertools.product(["sigmoid", "squared"], [0.1, 1.0]):
        coef[:] = 1e3 * np.sign(rows)
        found = exact_gradient(
            Records(rows, np.array([-1])), coef, loss=loss, clip_norm=clip_norm
        )
        assert np.linalg.norm(found.value) <= clip_norm


def test_21_all_outputs_of_a_gradient_share_one_norm():
    check_21()


def test_21_notices_a_clip_output_by_output(plant):
    def each(residuals, row_norms, *, clip_norm, largest, **_):
        limit = jnp.minimum(largest, clip_norm / row_norms)[:, None]
        return jnp.trunc(jnp.clip(residuals, -limit, limit) / grid_step(largest))

    plant("clip of residuals", each)
    with pytest.raises(AssertionError):
        check_21()


# 22 -- fast clipping differed from the clipping of each record's own gradient


def check_22():
    """The sum of ``vmap(grad)`` of each record, clipped, for the softmax."""
    rows, labels = unit_records(40), np.arange(40) % 3
    rows[::2] = np.trunc(rows[::2] / 3.0)  # rows of two lengths
    coef = np.random.default_rng(1).normal(size=(3, 3)).astype(np.float32)

    def loss(coef, row, label):
        return -jax.nn.log_softmax(coef @ row)[label]

    scaled = (rows * Records.step).astype(np.float32)
    each = jax.vmap(jax.grad(loss), (None, 0, 0))(coef, scaled, labels)
    norms = np.linalg.norm(np.asarray(each, np.float64), axis=(1, 2))
    for clip_norm in (0.05, 0.5, 10.0):
        kept = each * np.minimum(1.0, clip_norm / norms)[:, None, None]
        found = exact_gradient(
            Records(rows, labels), coef, loss="softmax", clip_norm=clip_norm
        )
        np.testing.assert_allclose(found.value, kept.sum(0), atol=1e-4)


def test_22_fast_clipping_is_that_of_each_record():
    check_22()


def test_22_notices_a_norm_without_that_of_the_row(plant):
    genuine = plant.genuine("clip of residuals")

    def shorter(residuals, row_norms, **options):
        return genuine(residuals, jnp.ones_like(row_norms), **options)

    plant("clip of residuals", shorter)
    with pytest.raises(AssertionError):
        check_22()
