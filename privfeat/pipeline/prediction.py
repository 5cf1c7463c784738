"""What a fitted pipeline makes of records: its steps, one after the other."""

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from privfeat._messages import without_data
from privfeat._process import keeps_one_thread, one_thread_a_product
from privfeat.core.sums.records import full_chunks
from privfeat.data import LazyFeatures
from privfeat.pipeline.records import (
    by_record,
    number_of,
    numbers_of,
    rows_of,
    through_public_steps,
)
from privfeat.pipeline.steps import Step, fitted_steps, read_steps
from privfeat.pipeline.view import StepsView

M = TypeVar("M", bound=Callable[..., Any])


def _last_has(method: str) -> Callable[[M], M]:
    """Return what shows a method only if the last step has it."""
    shown: Callable[[M], M] = available_if(lambda self: hasattr(self.last_step, method))
    return shown


class PredictsBySteps(StepsView):
    """Adds the methods of the last step, for records as the first one takes them.

    What is predicted of a record depends on that record alone, to the last bit.
    """

    predicts_by_record: ClassVar[bool] = True

    @_last_has("predict")
    def predict(self, X: ArrayLike | LazyFeatures) -> NDArray[Any]:
        """Return what the last step predicts of each record.

        Returns
        -------
        predictions : array of shape (n_samples,)
            Or (n_samples, n_classes) of several labels.
        """
        return np.asarray(self._asked("predict", X))

    @_last_has("predict_proba")
    def predict_proba(self, X: ArrayLike | LazyFeatures) -> NDArray[np.float64]:
        """Return class probabilities, of shape (n_samples, n_classes)."""
        return np.asarray(self._asked("predict_proba", X))

    @_last_has("decision_function")
    def decision_function(self, X: ArrayLike | LazyFeatures) -> NDArray[np.float64]:
        """Return the scores of the last step.

        Returns
        -------
        scores : float array of shape (n_samples,)
            Of two classes; of more (n_samples, n_classes).
        """
        return np.asarray(self._asked("decision_function", X))

    @_last_has("transform")
    def transform(self, X: ArrayLike | LazyFeatures) -> Any:
        """Return what the last step makes of each record."""
        last = self._fitted()[-1]
        return by_record(last, self._before_last(X), charged=True)

    @_last_has("score")
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the score of the last step on ``(X, y)``; no statement covers it."""
        last = self._fitted()[-1].estimator
        rows = self._before_last(X)
        return float(last.score(rows, y, sample_weight=sample_weight))

    def _asked(self, method: str, X: Any) -> Any:
        rows = self._before_last(X)
        asked = getattr(self._fitted()[-1].estimator, method)
        if sparse.issparse(rows) or not number_of(rows):
            return asked(rows)
        with one_thread_a_product():
            chunks = full_chunks(rows, alone=not keeps_one_thread())
            return np.concatenate([asked(chunk) for chunk in chunks])[: len(rows)]

    def _before_last(self, X: Any) -> Any:
        """Return the rows that the last step is given."""
        steps = self._fitted()
        rows = rows_of(X, steps[0])
        if not steps[0].reads_tables:
            rows = numbers_of(rows)
            without_data(validate_data, self, X, reset=False, skip_check_array=True)
        charged = False
        for step in steps[:-1]:
            charged = charged or step.private
            rows = by_record(step, rows, charged=charged)
        return rows

    def _fitted(self) -> list[Step]:
        check_is_fitted(self, "steps_")
        return fitted_steps(self.steps_)

    def check_records(self, X: Any) -> None:
        """Raise what ``fit`` would refuse of ``X`` before it is charged."""
        steps = read_steps(self.steps)
        through_public_steps(rows_of(X, steps[0]), steps)
