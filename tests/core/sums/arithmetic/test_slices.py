"""Products of slices against integers of Python, and against products of float64."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from privfeat import DPFC, DPAdamLinear, DPLeastSquares, DPNewton
from privfeat.core.bounds.grid import COEF_BITS
from privfeat.core.sums import devices, trials
from privfeat.core.sums.arithmetic import kernels, slices
from privfeat.core.sums.calls import CALL_ROWS
from privfeat.core.sums.records import CHUNK_ROWS
from privfeat.core.sums.statistics import exact_class_sums, exact_gradient, exact_gram
from privfeat.exceptions import PrivacyError
from tests.core.grids import (
    LIMIT,
    STEP,
    bounded,
    class_gram_stack,
    curvature_stack,
    integers,
)

SLOW = pytest.mark.slow
ALL_ONES = 63 * (1 + 2**7 + 2**14)  # every digit as large as an odd one can be
LARGEST = 2**COEF_BITS
LOSSES = ["softmax", *(pytest.param(x, marks=SLOW) for x in ("sigmoid", "squared"))]
coefficients = st.one_of(
    st.sampled_from([LARGEST, -LARGEST, LARGEST - 1, 1 - LARGEST, 0, 2**31, -64]),
    st.integers(-LARGEST, LARGEST),
)


@pytest.fixture
def sliced(accelerator, plant):
    """Make products of slices, as an accelerator may."""
    plant("choice of slices", lambda: True)


def python_product(left, right):
    return left.astype(object) @ right.astype(object).T


product = jax.jit(slices.product, static_argnames="right_bits")
gram = jax.jit(slices.gram)


def found_product(left, right, **options):
    with jax.enable_x64(True):
        wide = jnp.asarray(left, jnp.float64), jnp.asarray(right, jnp.float64)
        return np.asarray(product(*wide, **options))


def found_gram(rows):
    with jax.enable_x64(True):
        return np.asarray(gram(jnp.asarray(rows, jnp.float32)))


def hard_rows(n_rows, n_columns=6):
    """As large as allowed, of one sign and of both, all bits set, all odd."""
    rng = np.random.default_rng(n_rows)
    rows = rng.integers(-LIMIT, LIMIT, (n_rows, n_columns)) | 1
    rows[:, 0], rows[:, 1] = LIMIT, LIMIT - 1
    rows[:, 2] = np.where(np.arange(n_rows) % 2, LIMIT, -LIMIT)
    rows[:, 3], rows[:, 4] = ALL_ONES, -64 * (1 + 2**7) - 63 * 2**14
    return rows


@pytest.mark.slow
@settings(max_examples=100)
@given(
    left=hnp.arrays(np.int64, (3, 5), elements=integers),
    right=hnp.arrays(np.int64, (2, 5), elements=integers),
    coef=hnp.arrays(np.int64, (2, 5), elements=coefficients),
)
def test_products_equal_whole_number_arithmetic(left, right, coef):
    np.testing.assert_array_equal(
        found_product(left, right), python_product(left, right)
    )
    np.testing.assert_array_equal(
        found_product(left, coef, right_bits=COEF_BITS), python_product(left, coef)
    )
    np.testing.assert_array_equal(found_gram(left), python_product(left.T, left.T))


@pytest.mark.parametrize("bits", [20, COEF_BITS])
def test_digits_are_small_and_make_the_number(bits):
    """What the proof says of the largest numbers, and of all between, one in 977."""
    rest = np.arange(-(2**bits), 2**bits, 977 * (2**bits // 2**20))
    values = np.concatenate([rest, [2**bits, -(2**bits), 2**bits - 1, 63, 64, -64]])
    with jax.enable_x64(True):
        digits = slices._digits(jnp.asarray(values[None]), bits)
        digits = [np.asarray(digit)[0] for digit in digits]
    assert len(digits) == {20: 3, COEF_BITS: 5}[bits]
    assert all(digit.dtype == np.int8 for digit in digits)
    assert max(np.max(np.abs(digit.astype(int))) for digit in digits) <= 64
    together = sum(digit.astype(int) << (7 * i) for i, digit in enumerate(digits))
    np.testing.assert_array_equal(together, values)


def test_sums_of_digits_fit_into_an_int32():
    assert 3 * slices.LONGEST * 64**2 < 2**31
    assert CALL_ROWS <= slices.LONGEST


def test_the_longest_products_are_exact():
    """131,072 entries of the largest, where float64 is not, and a few beyond."""
    rows = hard_rows(slices.LONGEST + 3).T
    expected = rows @ rows.T
    assert np.max(expected) > 2**57
    np.testing.assert_array_equal(found_product(rows, rows), expected)
    longest = rows[:, : slices.LONGEST]
    np.testing.assert_array_equal(found_gram(longest.T), longest @ longest.T)


def test_products_of_no_columns_are_zero():
    np.testing.assert_array_equal(
        found_product(np.zeros((2, 0)), np.zeros((3, 0))), np.zeros((2, 3))
    )


def sums(part, coef, loss):
    yield exact_gram(part).total
    yield exact_gram(part, clip_norm=0.4).total
    yield class_gram_stack(part, 3)
    yield exact_class_sums(part, 3).total
    yield exact_gradient(part, coef, loss=loss, clip_norm=0.3).total
    yield exact_gradient(part, coef * np.nan, loss=loss, clip_norm=0.3).total
    if loss != "squared":
        yield curvature_stack(part, coef, loss)


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
def test_sums_of_slices_are_those_of_float64(grid_rows, accelerator, plant, loss):
    rows, labels = bounded(1500, 6)
    rows[1::2] = hard_rows(1500)[1::2]
    coef = np.random.default_rng(1).normal(size=(3, 6)) * 4.0
    part = grid_rows(rows, labels, step=STEP)
    plant("choice of slices", lambda: False)
    expected = list(sums(part, coef, loss))
    plant("choice of slices", lambda: True)
    for one, two in zip(sums(part, coef, loss), expected, strict=True):
        assert one.dtype == two.dtype
        np.testing.assert_array_equal(one, two)


def test_sums_without_privacy_are_not_sliced(grid_rows, sliced):
    """They are of numbers that are not whole."""
    rows, labels = bounded(30, 6)
    part = grid_rows(rows, labels, step=STEP, private=False)
    np.testing.assert_allclose(
        exact_gram(part).value, rows.T @ rows * STEP**2, rtol=1e-6
    )


def test_sums_on_a_cpu_are_not_sliced(grid_rows, plant):
    rows, labels = bounded(30, 6)
    part = grid_rows(rows, labels, step=STEP)
    for fault in ("choice of slices", "sums of digits"):
        plant(fault, lambda *_: True)
    np.testing.assert_array_equal(
        exact_gram(part).value, (rows.T @ rows).astype(float) * STEP**2
    )
    for one in sums(part, np.ones((3, 6)), "softmax"):
        assert np.all(np.isfinite(one))


@pytest.mark.slow
@pytest.mark.parametrize(
    "clf",
    [
        DPFC(epsilon=1, n_iter=2),
        DPLeastSquares(epsilon=1, class_gram=True),
        DPNewton(epsilon=1, n_iter=1),
        DPAdamLinear(epsilon=1, n_iter=2),
        DPFC(epsilon=math.inf, n_iter=2),
    ],
    ids=lambda clf: f"{type(clf).__name__} {clf.epsilon}",
)
@pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")
def test_fits_on_an_accelerator_are_those_on_a_cpu(plant, monkeypatch, clf):
    """Bit for bit with privacy, in calls of any size, by slices or by float64.

    On a CPU softmax is another function, in its last bits.
    """
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(CHUNK_ROWS + 200, 5)), rng.integers(0, 3, CHUNK_ROWS + 200)
    clf.set_params(classes=[0, 1, 2], random_state=0)
    on_cpu = clf.fit(X, y).coef_
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    found = []
    for call_bytes in (1, 2**28):
        plant("memory of a call", call_bytes)
        for choice in (True, False):
            plant("choice of slices", lambda choice=choice: choice)
            found.append(clf.fit(X, y).coef_)
    for coef in found[1:]:
        if math.isinf(clf.epsilon):
            np.testing.assert_allclose(coef, found[0], rtol=1e-9)
        else:
            np.testing.assert_array_equal(coef, found[0])
    np.testing.assert_allclose(
        found[0], on_cpu, rtol=1e-4, atol=1e-4 * np.abs(on_cpu).max()
    )


def test_largest_call_is_exact_in_float64(accelerator, grid_rows):
    """2**13 of the largest rows add up to 2**53, the last whole number of float64."""
    assert CALL_ROWS * LIMIT**2 == 2**53
    rows = hard_rows(CALL_ROWS)
    with jax.enable_x64(True):
        narrow = jnp.asarray(rows, jnp.float64)
        found, _ = map(
            np.asarray,
            kernels.products_of(jnp.asarray(rows, jnp.float32), narrow, narrow[:6]),
        )
    assert np.max(found) == 2.0**53
    np.testing.assert_array_equal(found, (rows.T @ rows).astype(float))


def test_slices_are_not_tried_on_a_cpu(plant):
    plant("rates of products", None)
    assert not slices.uses_slices()


@pytest.mark.parametrize(("rate", "expected"), [(2.0, True), (1.0, False)])
def test_the_faster_products_are_chosen_once(accelerator, plant, rate, expected):
    tries = []
    rates = {"slices": rate, "float64": 1.0}
    plant("rates of products", lambda device: tries.append(device) or rates)
    slices._slices_win.cache_clear()
    assert [slices.uses_slices(), slices.uses_slices()] == [expected, expected]
    assert len(tries) == 1
    slices._slices_win.cache_clear()


@pytest.mark.slow
def test_both_rates_are_measured():
    rates = slices.measured_rates(jax.devices()[0], (32, 16, 4))
    assert set(rates) == {"slices", "float64"}
    assert all(0.0 < rate < np.inf for rate in rates.values())


def test_sums_of_digits_in_float32_are_noticed(plant):
    assert trials.longest_sums_hold()

    def in_float32(left, right):
        left, right = left.astype(jnp.float32), right.astype(jnp.float32)
        return jnp.matmul(left, right.T).astype(jnp.int32)

    plant("sums of digits", in_float32)
    assert not trials.longest_sums_hold()


@pytest.mark.slow
def test_a_wrong_sum_of_digits_is_refused(sliced, plant):
    """By one, in short sums alone; and only where slices are used."""
    trials.products_are_exact.cache_clear()
    devices.check_exact_products()
    trials.products_are_exact.cache_clear()
    genuine = slices.digit_sums
    plant(
        "sums of digits",
        lambda left, right: genuine(left, right) + (left.shape[1] < slices.LONGEST),
    )
    jax.clear_caches()
    with pytest.raises(PrivacyError, match="products must be exact"):
        devices.check_exact_products()
    plant("choice of slices", lambda: False)
    devices.check_exact_products()
    trials.products_are_exact.cache_clear()
    plant.undo()
    jax.clear_caches()
