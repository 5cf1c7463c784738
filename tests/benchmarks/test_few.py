"""The benchmark of few records: published methods run here."""

import few
import numpy as np
import pytest


@pytest.fixture
def separate():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(3), 50)
    return np.eye(3, 8)[y] + 0.1 * rng.normal(size=(150, 8)), y


def test_published_methods_find_classes_at_a_large_budget(separate):
    X, y = separate
    rng = np.random.default_rng(0)
    budget = {"epsilon": 50.0, "delta": 1e-5}
    assert np.mean(few.private_means(X, y, 3, budget, rng)(X) == y) > 0.99
    assert np.mean(few.public_prototypes(X, y, X, 3, 5.0, rng)(X) == y) > 0.99


def test_public_prototypes_are_chosen_at_random_without_budget(separate):
    X, y = separate
    rng = np.random.default_rng(0)
    chosen = [few.public_prototypes(X, y, X, 3, 1e-9, rng)(X) for _ in range(20)]
    assert np.mean(np.array(chosen) == y) < 0.6
