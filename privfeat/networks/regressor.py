"""DPSGDRegressor: a network for numbers."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfeat._messages import array_of, check_columns
from privfeat.estimation.bases import ScoredRegressor
from privfeat.estimation.labels import Problem
from privfeat.networks.docstrings import document
from privfeat.networks.engine import losses
from privfeat.networks.model import DPSGDModel


@document
class DPSGDRegressor(ScoredRegressor, DPSGDModel):
    """A network trained by DP-SGD to predict numbers, with the squared loss.

    Targets are used as they are: scale them by public constants to about [-1, 1].

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    Notes
    -----
    {guarantees}
    """

    _loss = staticmethod(losses.half_squared_error)

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Return predictions, (n_samples,) or (n_samples, n_outputs) as ``y`` was."""
        scores = self._scores(X)
        return scores if self.n_outputs_ > 1 else scores[:, 0]

    def _problem(self, y: Any) -> Problem:
        """Return targets as float32, (n_samples, n_outputs), and public facts."""
        check_columns(y=y)
        given = array_of(y)
        if given.dtype.kind == "c":
            raise TypeError("y must be real, got complex numbers.")
        targets = array_of(given, np.float32)
        if targets.ndim not in (1, 2) or not np.all(np.isfinite(targets)):
            raise ValueError(
                "y must have shape (n_samples,) or (n_samples, n_outputs) and be "
                "finite."
            )
        targets = targets.reshape(len(targets), -1)
        n_outputs = targets.shape[1]
        public = (f"the number of outputs ({n_outputs})",)
        return Problem(targets=targets, n_outputs=n_outputs, fitted={}, public=public)
