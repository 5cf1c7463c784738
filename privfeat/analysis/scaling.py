"""Scaling laws at constant TAN: from cheap runs to the expensive one.

References
----------
.. [1] Sander, Stock & Sablayrolles. TAN Without a Burn: Scaling Laws of DP-SGD.
   ICML 2023. Sections 3.4, 4.3.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from privfeat._checks import check_int, check_positive, check_real


class Prediction(NamedTuple):
    """An accuracy with its prediction interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class BatchLaw:
    """Accuracy as a line in the logarithm of the batch size; from `fit_batch_law`.

    Attributes
    ----------
    slope : float
        Change of the accuracy when the batch doubles.
    intercept : float
        Accuracy at batch size 1.
    residual_stddev : float
        Scatter of the runs about the line.
    batch_sizes, accuracies : tuple of float
        The runs.
    """

    slope: float
    intercept: float
    residual_stddev: float
    batch_sizes: tuple[float, ...]
    accuracies: tuple[float, ...]

    def predict(self, batch_size: float, *, level: float = 0.95) -> Prediction:
        """Return the accuracy to expect of **one** run at ``batch_size``.

        Parameters
        ----------
        batch_size : float
            > 0; usually far larger than those of the runs.
        level : float
            Coverage of the interval, in (0, 1), if the law holds and the scatter is
            Gaussian. It grows with the distance from the runs.
        """
        x = math.log2(check_positive("batch_size", batch_size))
        level = check_real(
            "level", level, low=0.0, high=1.0, include_low=False, include_high=False
        )
        known = np.log2(self.batch_sizes)
        n_runs = len(known)
        spread = float(np.sum((known - known.mean()) ** 2))
        variance = 1.0 + 1.0 / n_runs + (x - known.mean()) ** 2 / spread
        quantile = float(stats.t.ppf(0.5 + level / 2.0, n_runs - 2))
        half = quantile * self.residual_stddev * math.sqrt(variance)
        mean = self.intercept + self.slope * x
        return Prediction(mean, mean - half, mean + half)


def fit_batch_law(batch_sizes: ArrayLike, accuracies: ArrayLike) -> BatchLaw:
    """Fit the law on cheap runs that share ``eta_step`` and the number of steps.

    Parameters
    ----------
    batch_sizes, accuracies : array-like of shape (n_runs,)
        At least three runs of at least two batch sizes.

    Raises
    ------
    ValueError
        If there are too few runs, or a value is not finite.

    Examples
    --------
    >>> law = fit_batch_law([64, 128, 128, 256], [0.36, 0.35, 0.36, 0.35])
    >>> print(f"{law.slope:.3f} {law.predict(16384).mean:.2f}")
    -0.005 0.32
    """
    sizes = np.asarray(batch_sizes, np.float64)
    scores = np.asarray(accuracies, np.float64)
    if sizes.ndim != 1 or sizes.shape != scores.shape or len(sizes) < 3:
        raise ValueError(
            "batch_sizes and accuracies must be two lists of one length >= 3, got "
            f"shapes {sizes.shape} and {scores.shape}."
        )
    valid = np.all(np.isfinite(sizes)) and np.all(np.isfinite(scores))
    if not (valid and np.all(sizes > 0) and len(np.unique(sizes)) > 1):
        raise ValueError(
            "batch_sizes must be > 0 with at least two different ones, and all values "
            "finite."
        )
    x = np.log2(sizes)
    line = stats.linregress(x, scores)
    residuals = scores - line.intercept - line.slope * x
    return BatchLaw(
        float(line.slope),
        float(line.intercept),
        math.sqrt(float(residuals @ residuals) / (len(x) - 2)),
        tuple(map(float, sizes)),
        tuple(map(float, scores)),
    )


class TrainingSettings(NamedTuple):
    """One candidate of `constant_tan_settings`."""

    batch_size: int
    n_iter: int
    learning_rate: float


def constant_tan_settings(
    batch_size: int,
    n_iter: int,
    learning_rate: float,
    *,
    step_factors: Sequence[float] = (0.125, 0.25, 1.0, 4.0),
) -> list[TrainingSettings]:
    """Return settings with the total amount of noise of a reference: [1]_ Table 3.

    Parameters
    ----------
    batch_size, n_iter, learning_rate
        The reference ``(B, S)`` and its rate. The noise multiplier is kept.
    step_factors : sequence of float
        Each gives ``(B / sqrt(f), f S)``, so that ``q^2 S`` and hence eta stay, with
        the rate divided by ``f``.

    References
    ----------
    .. [1] Sander et al. TAN Without a Burn. ICML 2023.

    Examples
    --------
    >>> for settings in constant_tan_settings(256, 72_000, 8.0):
    ...     print(*settings)
    724 9000 64.0
    512 18000 32.0
    256 72000 8.0
    128 288000 2.0
    """
    check_int("batch_size", batch_size, low=1)
    check_int("n_iter", n_iter, low=1)
    check_positive("learning_rate", learning_rate)
    found = []
    for factor in step_factors:
        check_positive("step_factors", factor)
        found.append(
            TrainingSettings(
                max(1, round(batch_size / math.sqrt(factor))),
                max(1, round(factor * n_iter)),
                learning_rate / factor,
            )
        )
    return found


class BatchLawDisplay:
    """The runs, the fitted line and its prediction band, over the batch size.

    Parameters
    ----------
    law : BatchLaw
    target : float
        Batch size to extrapolate to.
    level : float, default=0.95
        Coverage of the band.

    Attributes
    ----------
    ax_, figure_ : matplotlib artists
        After `plot`.
    """

    def __init__(self, law: BatchLaw, *, target: float, level: float = 0.95) -> None:
        self.law = law
        self.target = target
        self.level = level

    def plot(self, ax: Any = None) -> Self:
        """Draw on ``ax``, or on new axes."""
        from privfeat.analysis._axes import axes_or_new

        self.ax_, self.figure_ = axes_or_new(ax)
        low = min(self.law.batch_sizes)
        sizes = np.geomspace(low, max(self.target, *self.law.batch_sizes), 60)
        band = [self.law.predict(size, level=self.level) for size in sizes]
        self.ax_.plot(sizes, [point.mean for point in band], linestyle="--")
        self.ax_.fill_between(
            sizes, [p.low for p in band], [p.high for p in band], alpha=0.15
        )
        self.ax_.plot(self.law.batch_sizes, self.law.accuracies, "kx", label="runs")
        mean = self.law.predict(self.target).mean
        self.ax_.plot(self.target, mean, "o", label=f"prediction {mean:.3f}")
        self.ax_.set_xscale("log", base=2)
        self.ax_.set_xlabel("batch size")
        self.ax_.set_ylabel("accuracy")
        self.ax_.legend()
        return self
