"""Rows whose labels a prior knows something of."""

import numpy as np
import pytest

TRUE = 4.0  # the weight by which labels are drawn


@pytest.fixture
def draws():
    """Unit rows, labels from a softmax of ``TRUE`` times the prior, and the prior."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(3000, 6))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    prior = rng.normal(size=(4, 6))
    prior -= prior.mean(axis=0)
    noise = rng.gumbel(size=(3000, 4))
    return rows, np.argmax(TRUE * rows @ prior.T + noise, axis=1), prior
