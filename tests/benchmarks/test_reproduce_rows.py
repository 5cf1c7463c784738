"""Rows in blocks, and rows of fewer columns, in the protocol of the paper."""

import numpy as np
import reproduce_tables
from reproduce import newton

from privfeat.data import write_features

D = 5


def test_newton_adds_up_blocks_of_rows(monkeypatch):
    rng = np.random.default_rng(3)
    rows, coef = rng.normal(size=(700, D)), rng.normal(size=D)
    target = rng.random(700) < 0.3
    monkeypatch.setattr(newton, "CACHE_BYTES", 0)  # the smallest: 256 rows
    gradient, hessian = newton._derivatives(rows.astype(np.float32), coef, target)
    p = 1 / (1 + np.exp(-rows @ coef))
    np.testing.assert_allclose(gradient, (p - target) @ rows, rtol=1e-4, atol=1e-3)
    exact = (rows * (p * (1 - p))[:, None]).T @ rows
    np.testing.assert_allclose(hessian, exact, rtol=1e-4, atol=1e-3)


def test_projected_rows_keep_their_directions_whatever_the_records(tmp_path):
    rng = np.random.default_rng(7)
    X, y = rng.normal(size=(60, D)), rng.integers(3, size=60)
    path = tmp_path / "a.h5"
    splits = {"train": (X, y), "test": (X[:9], y[:9])}
    write_features(path, splits, class_names=list("abc"))
    columns = reproduce_tables.projection(D, 2)
    np.testing.assert_allclose(columns.T @ columns, np.eye(2), atol=1e-6)
    (rows, _, held_out, _), _ = reproduce_tables.load(path, "raw", 2)
    np.testing.assert_allclose(rows, X.astype(np.float32) @ columns, atol=1e-5)
    np.testing.assert_array_equal(held_out, rows[:9])
