"""Accuracy and calibration against epsilon, of several estimators.

Every fit of private data spends its budget: for public data, or with every fit charged.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import cycle
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from privfeat._checks import check_int, require
from privfeat.analysis.calibration import report_of
from privfeat.analysis.reliability import axes_or_new

# Colours of Okabe & Ito, which all kinds of colour vision can distinguish.
_LOOKS = (
    *(("#0072B2", "o"), ("#D55E00", "s"), ("#009E73", "D")),
    *(("#CC79A7", "^"), ("#E69F00", "v"), ("#56B4E9", "P")),
)


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


@dataclass(eq=False, repr=False)
class PrivacyUtilityDisplay:
    """Accuracy and calibration error against epsilon.

    Lines join the means of the fits, bands are one standard deviation to both sides.
    Dotted lines lead to the same estimator without privacy.

    Parameters
    ----------
    epsilons : sequence of float
        Finite, ascending; the x axis.
    curves : mapping of str to UtilityCurve
    without_privacy : mapping of str to UtilityCurve, optional
        Of the same estimators at the one epsilon ``inf``.
    baseline : (name, accuracy), optional
        A method without privacy, to be drawn as a dashed line.

    Attributes
    ----------
    axes_, figure_ : matplotlib artists
        After `plot`; two axes, accuracy and ECE.
    """

    epsilons: Sequence[float]
    curves: Mapping[str, UtilityCurve]
    _: KW_ONLY
    without_privacy: Mapping[str, UtilityCurve] | None = None
    baseline: tuple[str, float] | None = None

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
        epsilons = sorted(epsilons)
        curves = measure_utility(
            estimators, epsilons, X, y, X_test, y_test, n_repeats=n_repeats
        )
        return cls(epsilons, curves).plot()

    def plot(self, axes: Any = None) -> Self:
        """Draw on two axes, or on new ones."""
        self.axes_, self.figure_ = axes_or_new(axes, n_columns=2, figsize=(10, 4.2))
        places, free_of = np.arange(len(self.epsilons)), self.without_privacy or {}
        apart = len(places) + 0.4  # of the fit without privacy
        for ax, measure in zip(self.axes_, ("accuracy", "ece"), strict=True):
            for (name, curve), (colour, marker) in zip(
                self.curves.items(), cycle(_LOOKS), strict=False
            ):
                look = {"color": colour, "marker": marker}
                values = getattr(curve, measure)
                means = values.mean(axis=1)
                spread = values.std(axis=1, ddof=1) if values.shape[1] > 1 else 0.0
                ax.plot(places, means, label=name, **look)
                low, high = means - spread, means + spread
                ax.fill_between(places, low, high, color=colour, alpha=0.15, lw=0)
                if name in free_of:
                    free = getattr(free_of[name], measure).mean()
                    ax.plot([places[-1], apart], [means[-1], free], ":", **look)
            ticks, names = [*places], [f"{epsilon:g}" for epsilon in self.epsilons]
            if free_of:
                ticks, names = [*ticks, apart], [*names, "∞"]
            ax.set_xticks(ticks, names)
            title = "accuracy" if measure == "accuracy" else "ECE"
            ax.set(xlabel="epsilon (left is more private)", ylabel=title)
            ax.grid(axis="y", color="#DDDDDD", linewidth=0.6)
        if self.baseline is not None:
            name, accuracy = self.baseline
            label = f"{name} (no privacy)"
            self.axes_[0].axhline(accuracy, color="#555555", ls="--", label=label)
        self.axes_[0].legend(frameon=False)
        return self
