"""What one record can change in a sum: rows 2, 10, 12, 15, 16 and 23."""

import math

import numpy as np
import pytest

from privfeat import DPFC, DPAdamLinear, DPLeastSquares
from privfeat.core.accounting.calibration import plan_releases
from privfeat.core.accounting.plan import Query
from privfeat.core.bounds import sensitivity
from privfeat.core.sums.statistics import exact_gradient, exact_gram
from privfeat.core.sums.totals import ExactSum
from tests.linear.replaying import check_sensitivity, replay
from tests.pitfalls.whole import Records, unit_records

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")


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


def test_02_notices_a_row_without_noise(spy, make, three_classes, plant):
    genuine = plant.genuine("Gaussian noise")

    def partial(key, shape, stddev):
        draws = genuine(key, shape, stddev)
        return np.where(np.arange(shape[-1]) == shape[-1] - 1, 0.0, draws)

    plant("Gaussian noise", partial)
    with pytest.raises(AssertionError):
        check_02(spy, make, three_classes)


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


def test_10_notices_sums_in_single_precision(plant):
    def rounded(rows, _):
        rows = np.asarray(rows, np.float32)
        return np.asarray(rows.T @ rows, np.float64)

    plant("product of rows with themselves", rounded)
    with pytest.raises(AssertionError):
        check_10()


# 12 -- a sum was divided by the true number of records, or of a batch


def check_12(spy, make, one_less):
    for cls in (DPLeastSquares, DPFC, DPAdamLinear):

        def made(cls=cls):
            return make(cls)

        first, _, calls, other_calls = replay(spy, made, *one_less)
        check_sensitivity(first.privacy_, calls, other_calls)


def test_12_nothing_is_divided_by_the_number_of_records(spy, make, one_less):
    check_12(spy, make, one_less)


def test_12_notices_a_mean(spy, make, one_less, plant):
    genuine = plant.genuine("exact gradient")

    def mean(rows, coef, **options):
        n_samples = rows._features.shape[0]
        return ExactSum(genuine(rows, coef, **options).value * 1000.0 / n_samples)

    plant("exact gradient", mean)
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
def test_16_notices_a_factor_too_much_or_too_little(plant, wrong):
    genuine = plant.genuine("bound on one record")

    def doubled(adjacency, single, *, acute=False):
        bound = genuine(adjacency, single, acute=acute)
        return bound * (wrong if adjacency == "replace_one" else 1.0)

    plant("bound on one record", doubled)
    with pytest.raises(AssertionError):
        check_16()


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


def test_23_notices_a_normalization_over_the_batch(plant):
    genuine = plant.genuine("residuals of the loss")

    def normalized(loss, scores, labels):
        return genuine(loss, scores - scores.mean(axis=0, keepdims=True), labels)

    plant("residuals of the loss", normalized)
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


def test_15_notices_an_average_over_chunks(plant):
    genuine = plant.genuine("sum of a total")

    def average(self, grid_step, users=None):
        return ExactSum(genuine(self, grid_step / max(1, self._n_parts)).value)

    plant("sum of a total", average)
    with pytest.raises(AssertionError):
        check_15()
