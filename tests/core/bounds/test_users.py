"""Clipped sums of users, against sums in Python's integers."""

import math
from fractions import Fraction

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privfeat.core.bounds.user_clips import SumClip, UserClip
from privfeat.core.bounds.users import (
    clip_users,
    clip_users_rows,
    inner_products,
    user_factors,
)

BLOCK = 8


def clip(limit, slack=0.0, scale=1.0):
    return SumClip(BLOCK, limit, slack, scale)


def bounded(rng, n, size, norm):
    """Whole numbers of norm at most ``norm``, some of them equal, some opposite."""
    values = rng.normal(size=(n, size))
    values[::3] = values[0]
    values[1::5] *= -1.0
    norms = np.linalg.norm(values, axis=1, keepdims=True)
    lengths = rng.choice([1.0, 0.5, 1e-3], (n, 1), p=[0.7, 0.2, 0.1])
    return np.trunc(values / norms * lengths * norm * (1.0 - 1e-9))


def norm_of_sum(left, rows):
    """The norm of ``sum a x^T`` squared, exactly."""
    total = left.astype(int).astype(object).T @ rows.astype(int).astype(object)
    return int((total**2).sum())


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), n_users=st.integers(1, 5))
def test_a_users_sum_is_no_longer_than_the_bound_of_one_record(seed, n_users):
    rng = np.random.default_rng(seed)
    users = rng.integers(0, n_users, 4 * BLOCK)
    users = (users + 10 * np.repeat(np.arange(4), BLOCK)).astype(np.int32)
    rows = bounded(rng, len(users), 3, 2.0**20)
    left = bounded(rng, len(users), 4, 2.0**20)
    limit = 2.0**40
    slack = BLOCK * 2.0 * 2.0**20
    found = clip_users(left, inner_products(rows, BLOCK), users, clip(limit, slack))
    products = inner_products(rows, BLOCK)
    factors = user_factors(products, products, users, clip(limit))
    grams = clip_users_rows(rows, users, clip(limit, BLOCK * 5 * math.sqrt(3) * 2**20))
    for user in np.unique(users):
        own = users == user
        assert len(np.unique(factors[own])) == 1
        assert norm_of_sum(found[own], rows[own]) <= int(limit) ** 2
        assert norm_of_sum(grams[own], grams[own]) <= int(limit) ** 2
        assert np.all(np.abs(found[own]) <= np.abs(left[own]))
        # no more is taken than needs be
        length = math.sqrt(norm_of_sum(left[own], rows[own]))
        kept = math.sqrt(norm_of_sum(found[own], rows[own]))
        assert kept >= 0.999 * min(length, limit) - 2.0 * slack


def test_factors_depend_on_a_users_own_records_alone():
    rng = np.random.default_rng(0)
    rows = bounded(rng, 4 * BLOCK, 3, 2.0**20)
    users = np.repeat(np.arange(16), 2).astype(np.int32)
    products = inner_products(rows, BLOCK)
    whole = user_factors(products, products, users, clip(2.0**40))
    own = users == 5
    for place in [0, 3, 30]:
        moved = bounded(np.random.default_rng(place), 4 * BLOCK, 3, 2.0**20)
        others = np.full(4 * BLOCK, 77, np.int32)
        places = place // BLOCK * BLOCK + np.array([place % BLOCK, (place + 4) % BLOCK])
        moved[places], others[places] = rows[own], 5
        products = inner_products(moved, BLOCK)
        found = user_factors(products, products, others, clip(2.0**40))
        np.testing.assert_array_equal(found[places], whole[own])


@pytest.mark.slow
def test_factors_of_accelerators_are_the_same():
    rng = np.random.default_rng(1)
    rows = bounded(rng, 4 * BLOCK, 5, 2.0**20)
    left = bounded(rng, 4 * BLOCK, 2, 2.0**20)
    users = np.repeat(np.arange(8), 4).astype(np.int32)
    made = clip_users(left, inner_products(rows, BLOCK), users, clip(2.0**40))
    with jax.enable_x64(True):
        arrays = [jax.numpy.asarray(part) for part in (left, rows, users)]
        products = inner_products(arrays[1], BLOCK)
        found = clip_users(arrays[0], products, arrays[2], clip(2.0**40))
    np.testing.assert_array_equal(found, made)


def test_a_user_of_one_record_is_hardly_changed():
    rng = np.random.default_rng(2)
    rows = np.trunc(rng.normal(size=(BLOCK, 3)) * 2.0**18)
    rows = np.trunc(rows / np.linalg.norm(rows, axis=1, keepdims=True) * (2.0**20 - 4))
    products = inner_products(rows, BLOCK)
    users = np.arange(BLOCK, dtype=np.int32)
    factors = user_factors(products, products, users, clip(2.0**40))
    np.testing.assert_allclose(factors, 1.0, atol=1e-8)


def test_orthogonal_records_keep_more_than_equal_ones():
    equal, users = np.tile([2.0**20, 0.0, 0.0, 0.0], (8, 1)), np.zeros(8, np.int32)
    apart = np.tile(np.eye(4) * 2.0**20, (2, 1))
    factors = [
        user_factors(inner_products(rows, 8), inner_products(rows, 8), users, one)[0]
        for rows in (equal, apart)
        for one in [clip(2.0**40)]
    ]
    # of sums of outer products: 8 equal ones, and 4 pairs
    np.testing.assert_allclose(factors, [1 / 8, 1 / 4], rtol=1e-6)


@pytest.mark.parametrize("bad", [0, 513, True, 1.5])
def test_user_clip_refuses_numbers_of_records(bad):
    with pytest.raises((TypeError, ValueError), match="max_group_size"):
        UserClip(1.0, bad)


def test_clips_refuse_what_rounding_would_take_half_of():
    with pytest.raises(ValueError, match="max_group_size must be smaller"):
        UserClip(1.0, 512).of_gradients(2.0**-20, "softmax", 10, 1.0, 1e-3)
    with pytest.raises(ValueError, match="sigmoid"):
        UserClip(1.0, 2).of_gradients(2.0**-20, "sigmoid", 5000, math.inf, 1.0)
    made = UserClip(1.0, 5, 4)
    assert made.of_class_sums(2.0**-20) == SumClip(8, 2.0**21, 0.0, 2.0**20)
    gradients = made.of_gradients(2.0**-20, "softmax", 4, math.inf, 1.0)
    assert gradients == SumClip(8, 2.0**40, 10 * 2.0**20)
    assert made.of_grams(2.0**-20, 9) == SumClip(8, 2.0**40, 75 * 2.0**20)


@pytest.mark.parametrize("n_own", [1, 2, 3, 8, 64])
@pytest.mark.parametrize("seed", [None, 0, 1, 2])
def test_factors_keep_their_guarantee_without_slack(n_own, seed):
    """``f norm(S) <= L (1 - 2**-38)``, or ``f = 1`` and ``norm(S) <= L``, exactly."""
    if seed is None:  # products that lose nothing by rounding
        left = rows = np.tile([2.0**20, 0.0], (64, 1))
    else:
        rng = np.random.default_rng(seed)
        left, rows = (bounded(rng, 64, 3, 2.0**20) for _ in range(2))
    users = np.arange(64, dtype=np.int32)
    users[:n_own] = 0  # one of 64 slots, or more
    products = [inner_products(part, 64) for part in (left, rows)]
    limit = 2**40
    factor = Fraction(user_factors(*products, users, SumClip(64, 2.0**40, 0.0))[0])
    moved = factor**2 * norm_of_sum(left[:n_own], rows[:n_own])
    least = 1 if factor == 1 else 1 - Fraction(1, 2**38)
    assert 0 < factor <= 1
    assert moved <= (limit * least) ** 2


def test_factors_are_the_same_in_any_order_of_a_users_records():
    rng = np.random.default_rng(3)
    left, rows = (bounded(rng, BLOCK, 3, 2.0**20) for _ in range(2))
    users = np.array([4, 4, 4, 4, 4, 4, 1, 2], np.int32)
    found = set()
    for _ in range(40):
        order = rng.permutation(BLOCK)
        products = [inner_products(part[order], BLOCK) for part in (left, rows)]
        factors = user_factors(*products, users[order], clip(2.0**40))
        found |= set(factors[users[order] == 4].tolist())
    assert len(found) == 1
    assert found.pop() < 1.0
