"""Accuracy and calibration against epsilon, of several estimators.

Every fit of private data spends its budget: for public data, or with every fit charged.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from privfeat._checks import check_int
from privfeat._extras import require
from privfeat.analysis.axes import axes_or_new
from privfeat.analysis.metrics import report_of


@dataclass(frozen=True)
class UtilityCurve:
    """Results of one estimator, an array of shape (n_epsilons, n_repeats) each."""

    accuracy: NDArray[np.float64]
    ece: NDArray[np.float64]


def measure_utility(
    estimators: Mapping[str, Any],
    epsilons: Sequence[float],
    X: Any,
    y: ArrayLike,
    X_test: Any,
    y_test: ArrayLike,
    *,
    n_repeats: int = 3,
) -> dict[str, UtilityCurve]:
    """Fit every estimator at every epsilon, and measure it on test records.

    Parameters
    ----------
    estimators : mapping of str to classifier
        Cloned, and given each ``epsilon``.
    epsilons : sequence of float
    X, y : array-like
        Each fit spends its epsilon.
    X_test, y_test : array-like
        **Public**: the measures are exact.
    n_repeats : int
        Fits with fresh noise.
    """
    check_int("n_repeats", n_repeats, low=1)
    curves = {}
    for name, estimator in estimators.items():
        measured = np.empty((len(epsilons), n_repeats, 2))
        for place in np.ndindex(measured.shape[:2]):
            private = clone(estimator).set_params(epsilon=epsilons[place[0]])
            report = report_of(private.fit(X, y), X_test, y_test)
            measured[place] = report.accuracy, report.ece
        curves[name] = UtilityCurve(measured[..., 0], measured[..., 1])
    return curves


class PrivacyUtilityDisplay:
    """Accuracy and calibration error against epsilon, with error bars.

    Parameters
    ----------
    epsilons : sequence of float
        Finite; the x axis.
    curves : mapping of str to UtilityCurve

    Attributes
    ----------
    axes_, figure_ : matplotlib artists
        After `plot`; two axes, accuracy and ECE.
    """

    def __init__(
        self, epsilons: Sequence[float], curves: Mapping[str, UtilityCurve]
    ) -> None:
        self.epsilons = tuple(epsilons)
        self.curves = dict(curves)

    @classmethod
    def from_estimators(
        cls,
        estimators: Mapping[str, Any],
        epsilons: Sequence[float],
        X: Any,
        y: ArrayLike,
        X_test: Any,
        y_test: ArrayLike,
        *,
        n_repeats: int = 3,
    ) -> Self:
        """Measure and draw; see `measure_utility`."""
        if not all(0 < e < math.inf for e in epsilons):
            raise ValueError(f"epsilons must be finite and > 0, got {epsilons!r}.")
        require("a figure", "matplotlib", extra="plot")
        curves = measure_utility(
            estimators, epsilons, X, y, X_test, y_test, n_repeats=n_repeats
        )
        return cls(epsilons, curves).plot()

    def plot(self, axes: Any = None) -> Self:
        """Draw on two axes, or on new ones; bars are one standard deviation."""
        self.axes_, self.figure_ = axes_or_new(axes, n_columns=2, figsize=(9, 4))
        for name, curve in self.curves.items():
            for ax, values in zip(self.axes_, (curve.accuracy, curve.ece), strict=True):
                ddof = 1 if values.shape[1] > 1 else 0
                ax.errorbar(
                    self.epsilons,
                    values.mean(axis=1),
                    yerr=values.std(axis=1, ddof=ddof),
                    marker="o",
                    capsize=3,
                    label=name,
                )
        for ax, title in zip(self.axes_, ("accuracy", "ECE"), strict=True):
            ax.set(xscale="log", xlabel="epsilon", ylabel=title)
        self.axes_[0].legend()
        return self
