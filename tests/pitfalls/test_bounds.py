"""What one record can change: rows 2, 3, 10 to 12, 15, 16 and 20 to 23."""

import itertools
import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from privfeat import DPFC, DPAdamLinear, DPLeastSquares
from privfeat.core.accounting.calibration import plan_releases
from privfeat.core.accounting.plan import Query
from privfeat.core.bounds import losses, sensitivity
from privfeat.core.bounds.clipping import clip_rows
from privfeat.core.bounds.grid import grid_step
from privfeat.core.noise import draws as noise
from privfeat.core.sums import kernels, statistics
from privfeat.core.sums.records import CHUNK_ROWS, Chunk
from privfeat.core.sums.statistics import exact_gradient, exact_gram
from privfeat.core.sums.totals import ExactSum, Total
from privfeat.linear import adam, scaling
from tests.linear.replaying import check_sensitivity, replay
from tests.planting import plant_clip

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")
OPTIONS = [
    {"row_scaling": scaling, "fit_intercept": intercept, "center": center}
    for scaling, intercept, center in itertools.product(
        ["unit", "clip"], [True, False], [True, False]
    )
]


class Records:
    """Records of whole numbers as the core's ``Rows``, a few rows to a chunk."""

    step = 2.0**-20

    def __init__(self, rows, labels, n_together=CHUNK_ROWS):
        self.n_columns = rows.shape[1]
        self._rows, self._labels, self._n_together = rows, labels, n_together

    def chunks(self):
        for start in range(0, len(self._rows), self._n_together):
            rows = self._rows[start : start + self._n_together]
            labels = self._labels[start : start + self._n_together]
            empty = CHUNK_ROWS - len(rows)
            rows = np.pad(rows, ((0, empty), (0, 0)))
            labels = np.pad(labels, (0, empty), constant_values=-1)[:, None]
            with jax.enable_x64(True):
                yield Chunk(
                    jnp.asarray(rows, jnp.float32),
                    jnp.asarray(np.linalg.norm(rows, axis=1) * self.step),
                    jnp.asarray(labels, jnp.int32),
                )


def unit_records(n_rows, n_columns=3, seed=0):
    """Rows of norm just below one, in units of the grid."""
    rows = np.random.default_rng(seed).normal(size=(n_rows, n_columns))
    rows *= (1.0 - 1e-9) * 2**20 / np.linalg.norm(rows, axis=1, keepdims=True)
    return np.trunc(rows)


# 2 -- a sensitivity from one of two bounds gave part of a released matrix no noise


def check_02(spy, make, data):
    for cls in (DPLeastSquares, DPFC, DPAdamLinear):
        spy.start()
        clf = make(cls).fit(*data)
        assert {call.name for call in spy.calls} == {
            r.name for r in clf.privacy_.releases
        }
        for call in spy.calls:
            assert np.all(call.noise != 0.0)
            assert call.release.noise_stddev > 0.0


def test_02_every_entry_that_is_released_has_noise(spy, make, three_classes):
    check_02(spy, make, three_classes)


def test_02_notices_a_row_without_noise(spy, make, three_classes, monkeypatch):
    genuine = noise.gaussian

    def partial(key, shape, stddev):
        draws = genuine(key, shape, stddev)
        return np.where(np.arange(shape[-1]) == shape[-1] - 1, 0.0, draws)

    monkeypatch.setattr(noise, "gaussian", partial)
    with pytest.raises(AssertionError):
        check_02(spy, make, three_classes)


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


def test_03_notices_a_clip_that_one_option_skips(spy, make, three_classes, monkeypatch):
    genuine = scaling.clip_rows

    def skipping(features, *, clip_norm, intercept_scaling, **rest):
        bounded = genuine(
            features, clip_norm=clip_norm, intercept_scaling=intercept_scaling, **rest
        )
        if intercept_scaling is not None:
            return bounded
        return jnp.trunc(features / grid_step(clip_norm)).astype(jnp.float32)

    plant_clip(monkeypatch, skipping)
    check_03(spy, make, three_classes, OPTIONS[1])  # with an intercept all is well
    with pytest.raises(AssertionError):
        check_03(spy, make, three_classes, *OPTIONS)


# 10 -- sums in floating point moved by more than the sensitivity of real numbers


def check_10():
    rows = np.vstack([unit_records(3000), [[2.0**20 - 1, 0.0, 0.0], [1.0, 1.0, 1.0]]])
    labels, bound = np.zeros(len(rows), int), sensitivity.gram(1.0, "add_remove")
    for order in (np.arange(len(rows)), np.argsort(np.abs(rows[:, 0]))):
        whole = exact_gram(Records(rows[order], labels)).value
        for place in (0, 1500, len(rows) - 1):
            left = np.delete(rows[order], place, axis=0)
            part = exact_gram(Records(left, labels[1:])).value
            own = np.outer(rows[order][place], rows[order][place]) * Records.step**2
            assert np.linalg.norm(whole - part) <= bound
            np.testing.assert_allclose(whole - part, own, rtol=0, atol=1e-12)


def test_10_one_record_moves_a_sum_by_its_own_contribution_in_any_order():
    check_10()


def test_10_notices_sums_in_single_precision(monkeypatch):
    def rounded(rows):
        rows = np.asarray(rows, np.float32)
        return np.asarray(rows.T @ rows, np.float64)

    monkeypatch.setattr(statistics, "gram_of", rounded)
    with pytest.raises(AssertionError):
        check_10()


# 11 -- norms after clipping exceeded the bound in low precision, by 0.6 % in bfloat16


def check_11(clip):
    rng = np.random.default_rng(0)
    for dtype in (jnp.bfloat16, jnp.float16, jnp.float32, jnp.float64):
        with jax.enable_x64(True):
            features = jnp.asarray(rng.normal(size=(50, 33)) * 9.0, dtype)
        # each pair is compiled anew
        for clip_norm in (0.3, 1.0, 7.7) if dtype == jnp.float32 else (0.3,):
            limit = Fraction(clip_norm) ** 2
            unit = Fraction(grid_step(clip_norm)) ** 2
            for row in np.asarray(clip(features, clip_norm), np.float64):
                assert sum(int(entry) ** 2 for entry in row) * unit <= limit


def test_11_norms_hold_for_every_precision_of_the_input():
    for row_scaling in ("unit", "clip"):
        check_11(
            lambda features, radius, scaling=row_scaling: clip_rows(
                features, clip_norm=radius, row_scaling=scaling
            )
        )


def test_11_notices_a_clip_in_the_precision_of_the_input():
    def clip(features, radius):
        norms = jnp.linalg.norm(features, axis=1, keepdims=True)
        clipped = features * jnp.minimum(1.0, radius / norms).astype(features.dtype)
        return np.asarray(clipped, np.float64) / grid_step(radius)

    with pytest.raises(AssertionError):
        check_11(clip)


# 12 -- a sum was divided by the true number of records, or of a batch


def check_12(spy, make, one_less):
    for cls in (DPLeastSquares, DPFC, DPAdamLinear):

        def made(cls=cls):
            return make(cls)

        first, _, calls, other_calls = replay(spy, made, *one_less)
        check_sensitivity(first.privacy_, calls, other_calls)


def test_12_nothing_is_divided_by_the_number_of_records(spy, make, one_less):
    check_12(spy, make, one_less)


def test_12_notices_a_mean(spy, make, one_less, monkeypatch):
    genuine = adam.exact_gradient

    def mean(rows, coef, **options):
        n_samples = rows._features.shape[0]
        return ExactSum(genuine(rows, coef, **options).value * 1000.0 / n_samples)

    monkeypatch.setattr(adam, "exact_gradient", mean)
    with pytest.raises(AssertionError):
        check_12(spy, make, one_less)


# 16 -- under replace-one a sensitivity was doubled twice, or by one accountant alone


def check_16():
    pairs = {
        "gram": (sensitivity.gram, (2.0,), math.sqrt(2.0)),
        "class_sums": (sensitivity.class_sums, (2.0,), 2.0),
        "gradient": (sensitivity.clipped_gradient, (2.0,), 2.0),
        "loss": (sensitivity.loss_gradient, (2.0, "softmax", 3), 2.0),
        "curvature": (sensitivity.curvature_grams, (2.0, "softmax", 3), math.sqrt(2)),
    }
    for name, (bound, arguments, factor) in pairs.items():
        one, two = (bound(*arguments, how) for how in ("add_remove", "replace_one"))
        assert two / one == pytest.approx(factor, rel=1e-12)
        # the multiplier is calibrated without the bound: once for the slow ones
        for accounting in ("exact", "zcdp", "pld") if name == "gram" else ("exact",):
            left, right = (
                plan_releases(
                    [Query(name, l2)],
                    epsilon=1.0,
                    adjacency=how,
                    accounting=accounting,
                )[name]
                for how, l2 in (("add_remove", one), ("replace_one", two))
            )
            assert left.noise_multiplier == right.noise_multiplier
            assert right.noise_stddev / left.noise_stddev == pytest.approx(factor)


def test_16_replacing_is_counted_once_and_in_the_sensitivity():
    check_16()


@pytest.mark.parametrize("wrong", [0.5, 2.0])
def test_16_notices_a_factor_too_much_or_too_little(monkeypatch, wrong):
    genuine = sensitivity._bound

    def doubled(adjacency, single, *, acute=False):
        bound = genuine(adjacency, single, acute=acute)
        return bound * (wrong if adjacency == "replace_one" else 1.0)

    monkeypatch.setattr(sensitivity, "_bound", doubled)
    with pytest.raises(AssertionError):
        check_16()


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
    return np.asarray(rows, np.float64) * grid_step(1.0)


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


def test_21_notices_a_clip_output_by_output(monkeypatch):
    def each(residuals, row_norms, *, clip_norm, radius, largest):
        limit = jnp.minimum(largest, clip_norm / row_norms)[:, None]
        return jnp.trunc(jnp.clip(residuals, -limit, limit) / grid_step(largest))

    monkeypatch.setattr(kernels, "clip_residuals", each)
    monkeypatch.setattr(kernels, "gradient_of", kernels.gradient_of.__wrapped__)
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


def test_22_notices_a_norm_without_that_of_the_row(monkeypatch):
    genuine = kernels.clip_residuals

    def shorter(residuals, row_norms, **options):
        return genuine(residuals, jnp.ones_like(row_norms), **options)

    monkeypatch.setattr(kernels, "clip_residuals", shorter)
    monkeypatch.setattr(kernels, "gradient_of", kernels.gradient_of.__wrapped__)
    with pytest.raises(AssertionError):
        check_22()


# 23 -- layers that mix records (batch norm, routing) made one move the others' outputs


def check_23():
    rows, labels = unit_records(30), np.arange(30) % 3
    coef = np.random.default_rng(1).normal(size=(3, 3))

    def gradient(chosen):
        made = Records(rows[chosen], labels[chosen])
        return exact_gradient(made, coef, loss="softmax", clip_norm=1.0).value

    whole = gradient(np.arange(30))
    for place in range(30):
        others = np.delete(np.arange(30), place)
        alone = gradient(np.array([place]))
        np.testing.assert_allclose(whole - gradient(others), alone, atol=1e-12)


def test_23_a_records_gradient_does_not_depend_on_the_others():
    check_23()


def test_23_notices_a_normalization_over_the_batch(monkeypatch):
    genuine = losses.residuals

    def normalized(loss, scores, labels):
        return genuine(loss, scores - scores.mean(axis=0, keepdims=True), labels)

    monkeypatch.setattr(losses, "residuals", normalized)
    monkeypatch.setattr(kernels, "gradient_of", kernels.gradient_of.__wrapped__)
    with pytest.raises(AssertionError):
        check_23()


# 15 -- accumulation over smaller batches changed the gradient, or what was accounted


def check_15():
    rows, labels = unit_records(50), np.arange(50) % 3
    coef = np.random.default_rng(1).normal(size=(3, 3))
    found = [
        exact_gradient(
            Records(rows, labels, size), coef, loss="softmax", clip_norm=0.5
        ).value
        for size in (50, 7, 1)
    ]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_15_the_size_of_chunks_changes_nothing():
    check_15()


def test_15_notices_an_average_over_chunks(monkeypatch):
    genuine = Total.sum

    def average(self, unit):
        return ExactSum(genuine(self, unit / max(1, self._n_parts)).value)

    monkeypatch.setattr(Total, "sum", average)
    with pytest.raises(AssertionError):
        check_15()
