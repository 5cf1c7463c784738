"""The records of a regression: bounded rows that hold their target."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfeat.estimation.predictor import unit_rows
from privfeat.estimation.rows.bounded import BoundedRows


class TargetRows(BoundedRows):
    """Rows ``(x, s t, c)``: features, scaled target, constant, clipped as a whole.

    ``targets`` are in [-1, 1]; ``s`` is the ``target_scale``, and ``c`` the
    ``intercept_scaling``, in feature units. The features of each row are scaled to
    ``unit_norm``, if there is one. Other options are those of `BoundedRows`.
    """

    def __init__(
        self,
        features: Any,
        targets: NDArray[np.float64],
        *,
        unit_norm: float | None,
        target_scale: float,
        **options: Any,
    ) -> None:
        no_labels = np.full((len(targets), 1), -1)
        super().__init__(features, no_labels, row_scaling="clip", **options)
        self.n_columns += 1
        self._targets, self._unit_norm = target_scale * targets, unit_norm

    def _read(self, start: int, stop: int) -> NDArray[np.floating]:
        # rows in one piece: else the norm of one may depend on how many are beside it
        features = np.ascontiguousarray(super()._read(start, stop), np.float64)
        if self._unit_norm is not None:
            features = self._unit_norm * unit_rows(features)
        return np.column_stack([features, self._targets[self._at(start, stop)]])
