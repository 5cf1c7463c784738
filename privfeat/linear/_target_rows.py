"""Records of a regression: a target beside the features, inside one bound."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfeat._types import RowScaling
from privfeat.linear._rows import BoundedRows, unit_rows


class TargetRows(BoundedRows):
    """Rows ``(x, s t, c)``: features, scaled target, constant, clipped as a whole.

    Parameters
    ----------
    features : array or LazyFeatures of shape (n_samples, n_features)
    targets : array of shape (n_samples,)
        In [-1, 1].
    row_scaling : {"unit", "clip"}
        ``"unit"`` divides the features of each row by their norm.
    unit_norm : float
        The norm of ``x`` for ``"unit"``, in feature units.
    target_scale : float
        ``s``, in feature units.
    clip_norm, intercept_scaling, kept, private
        As for `BoundedRows`; ``intercept_scaling`` is ``c`` in feature units.
    """

    def __init__(
        self,
        features: Any,
        targets: NDArray[np.float64],
        *,
        row_scaling: RowScaling,
        unit_norm: float,
        target_scale: float,
        **options: Any,
    ) -> None:
        no_labels = np.full((len(targets), 1), -1)
        super().__init__(features, no_labels, row_scaling="clip", **options)
        self.n_columns += 1
        self._targets = target_scale * targets
        self._unit_norm = unit_norm if row_scaling == "unit" else None

    def _read(self, start: int, stop: int) -> NDArray[np.floating]:
        # rows in one piece: else the norm of one may depend on how many are beside it
        features = np.ascontiguousarray(super()._read(start, stop), np.float64)
        if self._unit_norm is not None:
            features = self._unit_norm * unit_rows(features)
        return np.column_stack([features, self._targets[start:stop]])
