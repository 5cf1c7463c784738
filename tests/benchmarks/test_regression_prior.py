"""The benchmark of priors of a regression, without its data."""

import numpy as np
import pytest

bench = pytest.importorskip("regression_prior")


def test_wrong_priors_keep_the_length_of_the_slopes_and_the_mean():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 4))
    y = X @ [1.0, -2.0, 0.0, 3.0] + 5.0
    found = bench.priors(X, y, 0)
    assert found.pop("none") is None
    assert list(found) == list(bench.PRIORS[1:])
    for prior in found.values():
        assert np.linalg.norm(prior[:-1]) == pytest.approx(14.0**0.5)
        assert np.mean(X @ prior[:-1] + prior[-1]) == pytest.approx(np.mean(y))
    right, half = found["public rows"], found["half wrong"]
    assert np.sum(np.abs(right[:-1] - half[:-1]) > 1e-9) <= 2
    np.testing.assert_allclose(found["all wrong"][:-1], -right[:-1])


def test_cells_below_the_better_of_the_two_are_told_split_by_split():
    base = np.array([0.5, 0.1, 0.9])
    behind = np.array([0.1, 0.11, 0.1])
    cells = {
        ("none", 1.0): base,
        ("good", 0.0): base - 0.5,
        ("good", 1.0): base + 0.1,
        ("bad", 0.0): base - 0.5,
        ("bad", 1.0): base - behind,
        ("sure", 0.0): base + 0.3,
        ("sure", 1.0): base + 0.3 - behind,
        ("even", 0.0): base - 0.5,
        ("even", 1.0): base - behind * [1.0, -2.0, 1.0],
    }
    assert [cell.split(",")[0] for cell in bench.below(cells)] == ["bad", "sure"]
