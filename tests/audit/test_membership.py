import math

import numpy as np
import pytest

from privfeat import DPLeastSquares
from privfeat.audit import membership
from privfeat.audit.membership import bounds


class Fixed:
    """A model whose scores are the rows."""

    classes_ = np.arange(3)

    def decision_function(self, X):
        return X


def test_membership_of_a_model_that_tells_all():
    X, y = np.eye(3) * 5.0, np.arange(3)
    result = membership(Fixed(), (X, y), (np.zeros((4, 3)), np.zeros(4, int)))
    assert (result.auc, result.tpr, result.advantage) == (1.0, 1.0, 1.0)
    assert (result.auc_bound, result.tpr_bound, result.advantage_bound) == (1, 1, 1)


def test_membership_of_a_model_that_tells_nothing():
    X, y = np.zeros((6, 3)), np.arange(6) % 3
    result = membership(Fixed(), (X, y), (X, y), epsilon=1.0, delta=1e-5)
    assert (result.auc, result.tpr, result.advantage) == (0.5, 0.0, 0.0)
    assert result.advantage_bound < 0.5
    assert "at most" in str(result)


def test_membership_takes_the_claim_of_the_model(clusters):
    X, y = clusters
    clf = DPLeastSquares(epsilon=1.0, classes=range(4)).fit(X[:50], y[:50])
    result = membership(clf, (X[:50], y[:50]), (X[50:], y[50:]))
    assert result.advantage_bound == bounds(clf.privacy_.epsilon, 1e-5, 0.01)[2]
    assert 0.0 <= result.auc <= 1.0


def test_membership_refuses_labels_that_are_no_classes():
    X = np.zeros((2, 3))
    with pytest.raises(ValueError, match="y must hold one of the model's classes"):
        membership(Fixed(), (X, [0, 3]), (X, [0, 1]))


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 3.0, 800.0, math.inf])
@pytest.mark.parametrize("delta", [0.0, 0.1])
def test_bounds_are_those_of_the_region(epsilon, delta):
    """Against the two inequalities, on a grid."""
    rates = np.linspace(0.0, 1.0, 20_001)
    with np.errstate(over="ignore", invalid="ignore"):
        steep = np.where(rates == 0.0, 0.0, np.exp(epsilon) * rates) + delta
        flat = 1.0 - np.exp(-epsilon) * np.maximum(1.0 - delta - rates, 0.0)
    curve = np.clip(np.minimum(steep, flat), 0.0, 1.0)
    area, at, advantage = bounds(epsilon, delta, float(rates[200]))
    np.testing.assert_allclose(area, np.trapezoid(curve, rates), atol=1e-4)
    np.testing.assert_allclose(at, curve[200], atol=1e-12)
    np.testing.assert_allclose(advantage, np.max(curve - rates), atol=1e-4)
