"""Rows are handled in the same shape in calls of any size."""

import jax
import jax.numpy as jnp
import numpy as np

from privfeat.core.sums import calls
from privfeat.core.sums.calls import CALL_ROWS, rows_of_call
from privfeat.core.sums.records import CHUNK_ROWS


def test_coefficients_are_moved_to_an_accelerator_once(monkeypatch):
    coef = np.array([[0.1, 2.0**31 + 1.0]])
    assert calls.placed(coef) is coef
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    moved = calls.placed(coef)
    assert isinstance(moved, jax.Array)
    assert moved.dtype == np.float64
    np.testing.assert_array_equal(moved, coef)


def test_calls_follow_the_device_and_the_columns(accelerator, monkeypatch):
    assert rows_of_call(1) == rows_of_call(4096) == CALL_ROWS
    assert rows_of_call(4097) == CALL_ROWS - CHUNK_ROWS
    assert rows_of_call(0) == CALL_ROWS
    assert rows_of_call(200_000) == CHUNK_ROWS
    monkeypatch.setattr(jax, "default_backend", lambda: "cpu")
    assert rows_of_call(1) == CHUNK_ROWS


def test_rows_of_a_call_are_handled_a_chunk_at_a_time():
    seen = []

    def function(rows):
        seen.append(rows.shape)
        return rows * 2.0, rows[:, 0] > 0.0

    rows = jnp.arange(4.0 * CHUNK_ROWS).reshape(-1, 2)
    doubled, positive = calls.by_chunks(function, rows)
    assert set(seen) == {(CHUNK_ROWS, 2)}
    np.testing.assert_array_equal(doubled, 2.0 * rows)
    assert positive.tolist() == [False] + [True] * (2 * CHUNK_ROWS - 1)
    doubled, positive = calls.by_chunks(function, rows[1:3])
    assert seen[-1] == (2, 2)
    assert positive.tolist() == [True, True]
