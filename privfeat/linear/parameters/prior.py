"""A public prior: how rows score before any record is seen."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privfeat._messages import array_of
from privfeat._types import RowScaling

FORMS = (
    "Pass an array of shape (n_classes, n_features), with one more column for "
    "intercepts if there are any, or a fitted linear classifier"
)


@dataclass(frozen=True, eq=False)
class Prior:
    """Scores ``(x - center) coef^T + intercept`` of rows; their scale means nothing."""

    coef: NDArray[np.float64]  # (n_outputs, n_features)
    intercept: NDArray[np.float64] | None = None  # (n_outputs,); None: zero
    # what the rows that it scores are shifted by (and then scaled to unit norm, if not
    # zero, with ``row_scaling="unit"``); None: whatever those of the fit are
    center: NDArray[np.float64] | None = None

    # what the guarantee of a fit with a prior assumes
    fact: ClassVar[str] = "that the prior was made without the records"

    @property
    def parts(self) -> list[Any]:
        """All numbers of it, for processes to compare."""
        return [self.coef, self.intercept, self.center]

    def of_rows(
        self, center: NDArray[np.float64], row_scaling: RowScaling
    ) -> NDArray[np.float64]:
        """Return coefficients and intercept, as the last column, of rows around center.

        A row ``x = c + r z`` of the fit is ``x = c' + r' z'`` to the prior: it scores
        ``r / r' (coef . z + (coef . (c - c') + r' intercept) / r)``, and the weight
        takes up the first factor. With unit norms ``r**2`` is ``1 - |c|**2`` in the
        mean over records, if ``c`` is their mean.
        """
        own = center if self.center is None else self.center
        radius, own_radius = 1.0, 1.0
        if row_scaling == "unit":
            radius, own_radius = _radius(center), _radius(own)
        shift = self.coef @ (center - own)
        if self.intercept is not None:
            shift += own_radius * self.intercept
        return np.column_stack([self.coef, shift / radius])


def check_prior(name: str, prior: Any) -> None:
    """Raise TypeError or ValueError unless this is an array or a fitted estimator."""
    if hasattr(prior, "coef_"):
        return
    if hasattr(prior, "fit"):
        raise ValueError(
            f"{name} must be fitted, got {type(prior).__name__} without coef_. Wrap it "
            "in sklearn.frozen.FrozenEstimator: clones of other estimators forget what "
            "they were fitted to."
        )
    values = array_of(prior)
    if values.dtype.kind not in "iuf" or values.ndim not in (1, 2):
        raise TypeError(f"{name} must be made of numbers, got {prior!r}. {FORMS}.")
    if not np.all(np.isfinite(values)):
        raise ValueError(f"{name} must be finite, got NaN or infinity. {FORMS}.")


def read_prior(
    prior: Any,
    *,
    classes: NDArray[Any],
    n_features: int,
    n_outputs: int,
    exclusive: bool,
) -> Prior:
    """Return the prior of a problem.

    ``classes`` are in the order of the rows of an array. ``n_outputs`` is 1 for two
    classes that one score tells apart, else the number of classes. ``exclusive``: a
    record has one class, and what all scores have in common is dropped. TypeError or
    ValueError if the shape, or what an estimator was fitted to, does not fit the
    problem; if all classes have the same coefficients, which tell no class from
    another.
    """
    check_prior("prior", prior)
    found = _of_estimator(prior, classes) if hasattr(prior, "coef_") else _of(prior)
    n_classes = len(classes)
    if found.coef.shape != (n_classes, n_features):
        if found.center is None and found.coef.shape == (n_classes, n_features + 1):
            found = Prior(found.coef[:, :-1], found.coef[:, -1])
        else:
            wanted, got = (n_classes, n_features), found.coef.shape
            raise ValueError(f"prior must have shape {wanted}, got {got}. {FORMS}.")
    coef, intercept = found.coef, found.intercept
    offsets = np.zeros(n_classes) if intercept is None else intercept
    if n_outputs < n_classes:
        coef, intercept = coef[1:] - coef[:1], offsets[1:] - offsets[:1]
    elif exclusive:
        coef, intercept = coef - coef.mean(axis=0), offsets - offsets.mean()
    if not np.max(np.abs(coef)) > 1e-12 * np.max(np.abs(found.coef)):
        raise ValueError(
            "prior must score some rows differently, got coefficients that do not. "
            "Pass None instead."
        )
    return Prior(coef, intercept, found.center)


def as_array(prior: Any, fitted: Any) -> NDArray[np.float64]:
    """Return an estimator as the array that stands for it in the files of a model.

    With the intercepts as last column, for rows as ``fitted``, the model, sees them.
    """
    found = _of_estimator(prior, fitted.classes_)
    return found.of_rows(fitted.center_, fitted.row_scaling)


def _of(prior: ArrayLike) -> Prior:
    coef = np.atleast_2d(np.asarray(prior, np.float64))
    return Prior(coef)


def _of_estimator(prior: Any, classes: NDArray[Any]) -> Prior:
    """Return a fitted estimator as scores of ``classes``, in their order."""
    coef = np.atleast_2d(np.asarray(prior.coef_, np.float64))
    intercept = np.zeros(len(coef)) + np.ravel(getattr(prior, "intercept_", 0.0))
    center = np.zeros(coef.shape[1]) + getattr(prior, "center_", 0.0)
    if not (np.all(np.isfinite(coef)) and np.all(np.isfinite(intercept))):
        raise ValueError("prior must be finite, got NaN or infinity.")
    own = getattr(prior, "classes_", None)
    if own is None:
        raise TypeError(
            f"prior must be a classifier, got {type(prior).__name__}. {FORMS}."
        )
    if len(own) == 2 and len(coef) == 1:  # one score, positive for the second class
        coef, intercept = coef / [[-2.0], [2.0]], intercept / [-2.0, 2.0]
    places = {label: place for place, label in enumerate(np.asarray(own).tolist())}
    wanted = np.asarray(classes).tolist()
    if not places.keys() >= set(wanted):
        raise ValueError(
            f"prior must know all {len(wanted)} classes, and knows "
            f"{len(places.keys() & set(wanted))} of them. Pass an array instead."
        )
    order = [places[label] for label in wanted]
    return Prior(coef[order], intercept[order], center)


def _radius(center: NDArray[np.float64]) -> float:
    """Return the root mean square norm of unit rows minus ``center``, their mean."""
    return math.sqrt(max(1.0 - float(center @ center), 0.1))
