"""A public prior: how rows score, or what targets are, before any record is seen."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privfeat._messages import array_of
from privfeat._types import RowScaling
from privfeat.estimation.names import check_classes

FORMS = (
    "Pass an array of shape (n_classes, n_features), with one more column for "
    "intercepts if there are any, or a fitted linear classifier"
)
OF_SLOPES = (
    "Pass an array of shape (n_features,), with one more number for an intercept if "
    "there is one, or a fitted linear regressor"
)
# Slopes are below that many ranges of the target per norm of a row: else squares, of
# numbers that no row inside the bounds can mean, overflow.
_FAR = 1e12


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


def check_prior(name: str, prior: Any, forms: str = FORMS) -> None:
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
        raise TypeError(f"{name} must be made of numbers, got {prior!r}. {forms}.")
    if not np.all(np.isfinite(values)):
        raise ValueError(f"{name} must be finite, got NaN or infinity. {forms}.")


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
    if not hasattr(prior, "coef_"):
        check_classes("prior", getattr(prior, "T", prior), classes.tolist())
    found = (
        _of_estimator(prior, classes)
        if hasattr(prior, "coef_")
        else Prior(np.atleast_2d(np.asarray(prior, np.float64)))
    )
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


def read_regression_prior(
    model: Any, units: NDArray[np.float64], middle: float
) -> Prior | None:
    """Return the prior of a regressor, as one row of slopes and, if known, an offset.

    It is in units of bounded rows. ``units`` are what slopes and, with an intercept,
    the offset of these are multiplied by to be those of targets less ``middle``.
    TypeError or ValueError if the shape, or an estimator, does not fit; if slopes are
    all zero or far too large; if no release follows that could mend it.
    """
    prior, n_features = model.prior, len(units) - bool(model.fit_intercept)
    if prior is None:
        return None
    if int(model.n_iter) == 1:
        raise ValueError(
            "n_iter must be at least 2 with a prior, got 1. Corrections take away what "
            "is wrong in it."
        )
    if hasattr(prior, "coef_"):
        coef, offset = _of_regressor(prior)
    else:
        coef, offset = np.split(_of_one(np.asarray(prior, np.float64)), [n_features])
    if coef.shape != (n_features,) or offset.shape not in ((0,), (1,)):
        got = np.shape(getattr(prior, "coef_", prior))
        raise ValueError(
            f"prior must have shape {(n_features,)}, got {got}. {OF_SLOPES}."
        )
    slopes = coef / units[:n_features]
    if not np.any(slopes):
        raise ValueError(
            "prior must predict some rows differently, got slopes of zero. Pass None "
            "instead."
        )
    if not np.max(np.abs(slopes)) < _FAR:
        raise ValueError(
            f"prior must change by at most {_FAR:g} ranges of target_bounds over rows "
            "of norm clip_norm, got larger slopes. Check its units."
        )
    unit = units[n_features:]  # empty if the fit has no intercept
    known = (offset - middle)[: len(unit)] / unit[: len(offset)]
    if not np.all(np.abs(known) < _FAR):
        raise ValueError(
            f"prior must have an intercept within {_FAR:g} ranges of target_bounds, "
            "got a larger one. Check its units."
        )
    return Prior(np.concatenate([slopes, known])[None])


def regression_prior_as_array(prior: Any) -> NDArray[np.float64]:
    """Return an estimator as the array that stands for it in the files of a model."""
    return np.concatenate(_of_regressor(prior))


def _of_regressor(prior: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return slopes and intercept, the latter as an array of one."""
    if hasattr(prior, "classes_"):
        raise TypeError(
            f"prior must be a regressor, got {type(prior).__name__}. {OF_SLOPES}."
        )
    coef = _of_one(np.asarray(prior.coef_, np.float64))
    intercept = np.ravel(getattr(prior, "intercept_", 0.0)).astype(np.float64)
    if not (np.all(np.isfinite(coef)) and np.all(np.isfinite(intercept))):
        raise ValueError("prior must be finite, got NaN or infinity.")
    return coef, intercept


def _of_one(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what is of one target without the axis of targets."""
    return values[0] if values.ndim == 2 and len(values) == 1 else values
