"""What predictions are worth: the scores of estimators on records with labels."""

from typing import Any

from sklearn.base import ClassifierMixin, RegressorMixin

from privfeat._messages import without_data


class ScoredClassifier(ClassifierMixin):
    """Has the accuracy as its score, and shows no data if that fails."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy on ``(X, y)``; no statement covers it."""
        from sklearn.metrics import accuracy_score

        predicted = self.predict(X)
        return float(
            without_data(accuracy_score, y, predicted, sample_weight=sample_weight)
        )


class ScoredRegressor(RegressorMixin):
    """Has R squared as its score, and shows no data if that fails."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R squared on ``(X, y)``; no statement covers it."""
        from sklearn.metrics import r2_score

        predicted = self.predict(X)
        return float(without_data(r2_score, y, predicted, sample_weight=sample_weight))
