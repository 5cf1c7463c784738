"""The batch law: Section 3.4 of Sander, Stock & Sablayrolles 2023.

At constant noise of a step the accuracy is a line in the logarithm of the batch size,
so that cheap runs predict the expensive one. ``benchmarks/practice.py`` tries it.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats


class Prediction(NamedTuple):
    """An accuracy with its prediction interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class BatchLaw:
    """Accuracy as a line in the logarithm of the batch size; from `fit_batch_law`.

    ``slope`` is the change when the batch doubles, ``intercept`` the accuracy at batch
    size 1, ``residual_stddev`` the scatter of the runs about the line.
    """

    slope: float
    intercept: float
    residual_stddev: float
    batch_sizes: tuple[float, ...]
    accuracies: tuple[float, ...]

    def predict(self, batch_size: float, *, level: float = 0.95) -> Prediction:
        """Return the accuracy to expect of **one** run at ``batch_size``.

        ``level`` is the coverage of the interval, if the law holds and the scatter is
        Gaussian. The interval grows with the distance from the runs.
        """
        x, known = math.log2(batch_size), np.log2(self.batch_sizes)
        n_runs = len(known)
        spread = float(np.sum((known - known.mean()) ** 2))
        variance = 1.0 + 1.0 / n_runs + (x - known.mean()) ** 2 / spread
        quantile = float(stats.t.ppf(0.5 + level / 2.0, n_runs - 2))
        half = quantile * self.residual_stddev * math.sqrt(variance)
        mean = self.intercept + self.slope * x
        return Prediction(mean, mean - half, mean + half)


def fit_batch_law(batch_sizes: ArrayLike, accuracies: ArrayLike) -> BatchLaw:
    """Fit the law on at least three runs of at least two batch sizes.

    The runs share the noise of a step and the number of steps.
    """
    sizes, scores = np.asarray(batch_sizes, float), np.asarray(accuracies, float)
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
    stddev = math.sqrt(float(residuals @ residuals) / (len(x) - 2))
    return BatchLaw(line.slope, line.intercept, stddev, (*sizes,), (*scores,))


def draw_law(law: BatchLaw, target: float, ax: Any, *, level: float = 0.95) -> None:
    """Draw the runs, the line with its band, and the prediction at ``target``."""
    sizes = np.geomspace(min(law.batch_sizes), max(target, *law.batch_sizes), 60)
    mean, low, high = zip(*(law.predict(x, level=level) for x in sizes), strict=True)
    ax.plot(sizes, mean, linestyle="--")
    ax.fill_between(sizes, low, high, alpha=0.15)
    ax.plot(law.batch_sizes, law.accuracies, "kx", label="runs")
    found = law.predict(target).mean
    ax.plot(target, found, "o", label=f"prediction {found:.3f}")
    ax.set_xscale("log", base=2)
    ax.set_xlabel("batch size")
    ax.set_ylabel("accuracy")
    ax.legend()
