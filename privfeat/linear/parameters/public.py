"""Public rows of the same network: where rows lie, known before any record is seen."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from privfeat._types import PUBLIC_ROWS, RowScaling
from privfeat.core.callers.stack import rows_of_callers
from privfeat.data.sharing import check_apart, finite_blocks, rows_of
from privfeat.estimation.predictor import scaled_rows

_FORMS = "Pass an array of shape (n_public, n_features), or features of a file"


@dataclass(frozen=True, eq=False)
class PublicRows:
    """Public rows, scaled and centred as private ones; no sum of records holds them."""

    features: Any  # an array or LazyFeatures, (n_public, n_features)
    given: Any  # what they were made of: ``public`` of the fit
    row_scaling: RowScaling
    clip_norm: float

    @property
    def fact(self) -> str:
        """What the guarantee of a fit with them assumes."""
        rows = f"the {len(self.features)} {PUBLIC_ROWS}"
        return f"{rows}, and that they hold no record of the fit"

    @property
    def parts(self) -> list[Any]:
        """Numbers of them, for processes to compare."""
        return [list(self.features.shape), self.mean]

    @cached_property
    def mean(self) -> NDArray[np.float64]:
        """Mean of the bounded rows before they are centred, (n_features,).

        ValueError if they hold NaN or infinity: fits ask before they are charged.
        """
        around = np.zeros(self.features.shape[1])
        total = sum(rows.sum(axis=0) for rows in self._bounded(around))
        return np.asarray(total / len(self.features))

    def second_moment(self, center: NDArray[np.float64]) -> NDArray[np.float64]:
        """Mean of ``x x^T`` over bounded rows around ``center``, in float32."""
        size = self.features.shape[1]
        total = np.zeros((size, size))
        for rows in self._bounded(center):
            short = rows.astype(np.float32)
            total += short.T @ short
        return total / len(self.features)

    def check_apart(self, X: Any) -> None:
        """Raise ValueError if these are rows of ``X``, or have NaN.

        Or of the rows that scikit-learn made folds of, of which ``X`` is one.
        """
        for rows in (X, *rows_of_callers()):
            check_apart(self.given, rows)
        _ = self.mean

    def _bounded(self, center: NDArray[np.float64]) -> Iterator[NDArray[np.float64]]:
        for block in finite_blocks(self.features):
            rows = scaled_rows(block, center, self.row_scaling)
            if self.row_scaling == "clip":
                norms = np.linalg.norm(rows, axis=1, keepdims=True)
                rows *= self.clip_norm / np.maximum(norms, self.clip_norm)
            yield rows


def check_public(name: str, public: Any) -> None:
    """Raise TypeError or ValueError unless these are rows of numbers."""
    if issparse(public):
        raise TypeError(f"{name} must be dense, got a sparse array. {_FORMS}.")
    features = rows_of(public)
    if getattr(features, "dtype", np.dtype("O")).kind not in "iuf":
        raise TypeError(f"{name} must be made of numbers. {_FORMS}.")
    if features.ndim != 2 or not features.shape[0]:
        raise ValueError(
            f"{name} must have two dimensions and at least 1 row, got shape "
            f"{features.shape}. {_FORMS}."
        )


def check_centred(estimator: Any) -> None:
    """Raise ValueError if public rows would change nothing but a mean that is given."""
    given = not isinstance(estimator.center, bool | np.bool_) or not estimator.center
    if estimator.public is not None and given:
        raise ValueError(
            f"center must be True with public rows, got {estimator.center!r}. They "
            "help to find it and nothing else: pass None as public, or use DPFC."
        )


def read_public(estimator: Any, n_features: int) -> PublicRows:
    """Return its public rows, of this width, not read yet."""
    public = estimator.public
    check_public("public", public)
    features = rows_of(public)
    if features.shape[1] != n_features:
        raise ValueError(
            f"public must have shape (n_public, {n_features}), got {features.shape}. "
            "Make its features by the network that made those of the records."
        )
    clip_norm = float(estimator.clip_norm)
    return PublicRows(features, public, estimator.row_scaling, clip_norm)
