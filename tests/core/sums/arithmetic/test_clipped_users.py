"""Clipped sums of users by each arithmetic: the same, and no longer than a record's."""

import dataclasses
import math

import jax
import numpy as np
import pytest
from scipy.sparse import csr_array

from privfeat.core.bounds.user_clips import UserClip
from privfeat.core.sums.arithmetic import gram, host, kernels, sparse
from privfeat.core.sums.records import CHUNK_ROWS, SparseChunk
from privfeat.core.sums.statistics import exact_class_sums, exact_gradient, exact_gram
from tests.core.grids import STEP

USERS = UserClip(1.0, 5)


@pytest.fixture
def rows(grid_rows):
    """A chunk of users of up to eight records, some equal, and empty slots."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(CHUNK_ROWS, 3))
    values[::7] = values[0]
    values *= 2.0**20 / np.linalg.norm(values, axis=1, keepdims=True) * (1.0 - 1e-9)
    users = np.repeat(np.arange(CHUNK_ROWS // 8), 8)
    users[6::8] = users[7::8] = -1
    values[users < 0] = 0.0
    labels = np.where(users < 0, -1, rng.integers(0, 4, CHUNK_ROWS))
    found = grid_rows(np.trunc(values), labels, step=STEP)
    (chunk,) = found.chunks()
    chunk = dataclasses.replace(chunk, users=users.astype(np.int32))
    found.chunks = lambda: [chunk]
    found.users = USERS
    return found


def test_class_sums_are_those_of_accelerators_and_of_sparse_rows(rows):
    (chunk,) = rows.chunks()
    clip = USERS.of_class_sums(STEP)
    made = host.class_sums_of(chunk, 4, clip=clip)
    with jax.enable_x64(True):
        other = kernels.class_sums_of(chunk, 4, clip=clip)
    matrix = csr_array(np.asarray(chunk.rows, np.float64))
    parts = [np.asarray(part) for part in (chunk.row_norms, chunk.labels, chunk.users)]
    found = sparse.class_sums_of(SparseChunk(matrix, *parts), 4, clip=clip)
    np.testing.assert_array_equal(other, made)
    np.testing.assert_array_equal(found, made)


@pytest.mark.parametrize("loss", ["softmax", "sigmoid", "squared"])
def test_gradients_are_those_of_accelerators_but_for_the_last_bits(rows, loss):
    (chunk,) = rows.chunks()
    clip = USERS.of_gradients(STEP, loss, 4, math.inf, 0.7)
    whole = np.trunc(np.random.default_rng(1).normal(size=(4, 3)) * 2.0**24)
    options = {"whole": whole, "grid_step": 2.0**-43, "loss": loss, "clip_norm": 0.7}
    made = host.gradient_of(chunk, clip=clip, **options)
    with jax.enable_x64(True):
        found = kernels.gradient_of(chunk, clip=clip, **options)
    np.testing.assert_allclose(found, made, rtol=1e-4, atol=1e-5 * np.max(made))
    assert np.linalg.norm(made) < np.linalg.norm(host.gradient_of(chunk, **options))


def test_rows_of_gram_matrices_are_those_of_accelerators(rows, monkeypatch):
    (chunk,) = rows.chunks()
    clip = USERS.of_grams(STEP, 3)
    made = gram.clipped_rows(chunk.rows, chunk.users, clip)
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    found = gram.clipped_rows(chunk.rows, chunk.users, clip)
    np.testing.assert_array_equal(found, made)


def test_sums_of_a_user_are_no_longer_than_the_bound_of_a_record(rows):
    """Each user alone: what one adds is what the sum of that user's chunk is."""
    (chunk,) = rows.chunks()
    users = np.asarray(chunk.users)
    coef = np.random.default_rng(2).normal(size=(4, 3))
    for user in range(0, 20, 3):
        own = users == user
        kept = np.asarray(chunk.rows) * own[:, None].astype(np.float32)
        labels = np.where(own[:, None], np.asarray(chunk.labels), -1)
        norms = np.asarray(chunk.row_norms) * own
        alone = dataclasses.replace(
            chunk, rows=kept, labels=labels, row_norms=norms, users=users
        )
        rows.chunks = lambda alone=alone: [alone]
        gradient = exact_gradient(rows, coef, loss="softmax", clip_norm=0.7)
        for exact, limit in [
            (exact_gram(rows), 1.0),
            (exact_gram(rows, clip_norm=0.3), 0.09),
            (exact_class_sums(rows, 4), 1.0),
            (gradient, 0.7),
        ]:
            assert 0.9 * limit < np.linalg.norm(exact.value) <= limit
