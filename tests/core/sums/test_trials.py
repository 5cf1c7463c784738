"""The numbers that products are tried with."""

import jax
import numpy as np

from privfeat.core.sums import trials
from privfeat.core.sums.arithmetic import gram, slices
from privfeat.core.sums.calls import rows_of_call


def test_the_numbers_are_as_large_as_a_fit_has_them():
    rows, narrow, coef = trials.hard_numbers()
    assert rows.size == 2**20
    assert len(rows) == rows_of_call(1)
    assert narrow.shape == (len(rows), len(coef)) == (len(rows), 128)
    assert np.max(np.abs(rows)) == np.max(np.abs(narrow)) == 2.0**20
    assert np.max(np.abs(narrow[:, 0] @ rows)) == 2.0**50 - 2.0**30
    assert np.max(np.abs(narrow[:, 1] @ rows)) == 2.0**50
    tall = trials.hard_rows(2**13)
    assert tall.size == 2**20
    assert tall[:, 0] @ tall[:, 0] == 2.0**53
    norms = np.linalg.norm(coef, axis=1)
    assert 2.0**31 < np.max(norms) <= 2.0**32
    assert np.max(np.abs(rows // 32)) == 2.0**15


def test_the_numbers_are_as_large_as_an_accelerator_has_them(monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    rows, narrow, coef = trials.hard_numbers()
    assert rows.shape == (2**13, 2**7)
    assert np.max(np.abs(narrow[:, 1] @ rows)) == 2.0**53
    assert np.all(narrow[:, 0] % 2 == 1)
    assert set(np.abs(coef[1])) == {2.0**28}
    norms = np.linalg.norm(coef, axis=1)
    assert 2.0**31 < np.max(norms) <= 2.0**32
    assert np.max(np.abs(coef)) == 2.0**32 - 1.0
    assert np.max(np.abs(rows // 32)) == 2.0**15


def test_the_numbers_are_hard_to_multiply():
    """No zeros, 20 odd bits beside records of 1, and both signs alike often."""
    rows, _, coef = trials.hard_numbers()
    assert set(np.abs(rows[:, 0])) == {2.0**20}
    assert set(np.abs(rows[:, 1])) == {2.0**20 - 1.0}
    assert np.all(rows[:, 1:] % 2 == 1)
    assert set(np.abs(rows[1::2, 2:]).ravel()) == {1.0}
    assert np.median(np.abs(rows[::2, 2:])) > 2.0**18
    assert set(np.abs(coef[1])) == {2.0**27}
    assert np.flatnonzero(coef[2]).tolist() == [0]  # the largest number of each row
    assert abs(coef[2, 0]) == 2.0**32 - 1.0
    others = coef[[0, *range(3, len(coef))]]
    assert np.all(others % 2 == 1)
    assert np.median(np.abs(others)) > 0.9 * 2.0**26
    assert len(np.unique(np.abs(others))) > 0.99 * others.size
    assert len(np.unique(np.abs(rows[::2, 2:]))) > 2**18
    for numbers in (rows[::2], rows[1::2], coef[1], *others):
        assert 0.45 < np.mean(numbers < 0) < 0.55
    agree = np.mean((coef[0] < 0) == (rows[0] < 0))
    assert 0.4 < agree < 0.6  # else all terms of a sum had one sign


def test_the_most_rows_of_a_gram_matrix_are_tried(plant):
    genuine, shapes = plant.genuine("product of rows with themselves"), []

    def watched(rows, sliced):
        shapes.append(rows.shape)
        return genuine(rows, sliced)

    plant("product of rows with themselves", watched)
    trials.products_are_exact.cache_clear()
    assert trials.products_are_exact(jax.devices()[0], False)
    trials.products_are_exact.cache_clear()
    assert shapes == [(gram.most_rows(1), 2**20 // gram.most_rows(1))]


def test_sums_of_digits_are_tried_at_their_longest_and_largest(plant):
    """Of one sign, of the other, and of both in turn."""
    genuine, given = plant.genuine("sums of digits"), []

    def watched(left, right):
        given.append(np.asarray(left))
        return genuine(left, right)

    plant("sums of digits", watched)
    with jax.disable_jit():
        assert trials.longest_sums_hold()
    (digits,) = given
    assert digits.shape == (4, 3 * slices.LONGEST)
    assert set(digits[0]) == {64}
    assert set(digits[1]) == {61, 62, 63, 64}
    assert set(digits[2]) == {-61, -62, -63, -64}
    assert set(digits[3, ::2]) == set(digits[2])
    assert set(digits[3, 1::2]) == set(digits[1])
