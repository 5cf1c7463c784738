"""What a pipeline asks of its last step before it is charged."""

from abc import abstractmethod
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, clone

from privfeat._messages import array_of
from privfeat.estimation.inputs import validated
from privfeat.linear.problem import LinearProblem, Shape


class ChecksTargets(BaseEstimator):
    """Adds the checks of ``y`` of a fit, apart from those of rows, which come later."""

    def check_targets(self, X: Any, y: Any, n_features: int) -> None:
        """Raise what ``fit`` would refuse of ``y``, and of public rows beside ``X``.

        ``X`` are records, of which steps will make rows of ``n_features`` columns: only
        its memory is compared. ``y`` is as ``fit`` takes it. Sensitive.
        """
        shape = y.shape if issparse(y) else array_of(y).shape
        zeros = np.zeros((*shape[:1], 1))
        alone = clone(self).set_params(max_group_size=None)  # users were checked
        problem = self._problem(validated(alone, zeros, y, None)[1], n_features)
        if problem.shape.public is not None:
            problem.shape.public.check_apart(X)
        self._check_size(problem.shape)

    @abstractmethod
    def _problem(self, y: Any, n_features: int) -> LinearProblem:
        """Return what a validated ``y`` asks for."""

    @abstractmethod
    def _check_size(self, shape: Shape) -> None:
        """Refuse, or warn of, sums that have no room or take long."""
