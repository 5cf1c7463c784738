"""Figures with intervals that hold sampling and noise: all of it post-processing.

What is estimated is the figure of the population that the test records are a sample of.
The variance of the noise is known. Records are taken to be independent; where users
have several, the variance of the sampling is multiplied by the most that count of one:
the variance of a sum of ``k`` numbers is at most ``k`` times the sum of theirs.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

Floats = NDArray[np.float64]
# Variance of the noise of two counts, and their covariance.
Noise = tuple[ArrayLike, ArrayLike, ArrayLike]


@dataclass(frozen=True)
class Estimate:
    """A figure and the ends of its interval: numbers, or arrays of one shape.

    Attributes
    ----------
    value : float or array
        NaN where the noise is too large to tell.
    low, high : float or array
        The interval; the whole range of the figure where ``value`` is NaN.
    """

    value: Any
    low: Any
    high: Any

    def each(self) -> "list[Estimate]":
        """Return the estimates of an array of shape (n,), one by one."""
        parts = zip(self.value, self.low, self.high, strict=True)
        return [number(*part) for part in parts]

    def __str__(self) -> str:
        """Return a number with its interval, for people."""
        if np.ndim(self.value) == 1:
            return "\n".join(map(str, self.each()))
        if np.ndim(self.value):
            return f"{np.shape(self.value)} estimates"
        shown = "unknown" if math.isnan(self.value) else f"{self.value:.4g}"
        return f"{shown} ({self.low:.4g} to {self.high:.4g})"


@dataclass(frozen=True)
class Width:
    """How wide intervals are: normal quantile, and records of one user that count."""

    z: float
    cluster: int = 1

    @classmethod
    def of(cls, confidence: float, cluster: int = 1) -> "Width":
        """Return the width of two-sided intervals of this confidence, in (0, 1)."""
        return cls(float(ndtri(0.5 + 0.5 * confidence)), cluster)


def number(value: Any, low: Any, high: Any) -> Estimate:
    """Return an estimate of plain numbers."""
    return Estimate(float(value), float(low), float(high))


def around(
    value: float, variance: float, width: Width, low: float, high: float
) -> Estimate:
    """Return a normal interval, cut to the range of the figure."""
    half = width.z * math.sqrt(max(variance, 0.0))
    found = np.array([value, value - half, value + half])
    return number(*found.clip(low, high))


def proportion(yes: ArrayLike, no: ArrayLike, noise: Noise, width: Width) -> Estimate:
    """Return ``yes / (yes + no)`` of noisy counts, with score intervals.

    Wilson's interval [1]_ with noise, by Fieller's argument: of a true proportion ``a``
    the number ``(1 - a) yes - a no`` has mean zero and variance ``n a (1 - a) + (1 -
    a)^2 v - 2 a (1 - a) c + a^2 w``. The interval holds each ``a`` for which its square
    is at most ``z^2`` times that: between the roots of a quadratic. Where this is no
    interval, the noise is too large to tell.

    .. [1] Wilson. Probable Inference, the Law of Succession, and Statistical Inference.
       JASA 1927.
    """
    told, *found = _ratio(yes, no, noise, width)
    value, low, high = (np.clip(one, 0.0, 1.0) for one in found)
    low = np.fmin(np.where(told, low, 0.0), value)
    high = np.fmax(np.where(told, high, 1.0), value)
    return Estimate(value, low, high) if np.ndim(value) else number(value, low, high)


def mean_proportion(
    yes: ArrayLike, no: ArrayLike, noise: Noise, width: Width
) -> Estimate:
    """Return the mean of independent proportions, arrays of shape (n,).

    Intervals from those of the parts: Zou & Donner, Construction of Confidence Limits
    about Effect Measures, Statistics in Medicine 2008, Equation 6. Parts are cut to [0,
    1] together, as their mean: noise above 1 makes good what noise below it takes. The
    bias of a ratio, to second order (delta method), is taken off: that of many parts
    does not average out, while their interval gets narrower.
    """
    told, value, low, high = _ratio(yes, no, noise, width)
    if not np.all(told):
        parts = proportion(yes, no, noise, width)
        return number(math.nan, np.mean(parts.low), np.mean(parts.high))
    below, above = (
        math.sqrt(float(np.sum(np.square(part)))) / np.size(value)
        for part in (value - low, high - value)
    )
    v, w, c = (np.asarray(one, np.float64) for one in noise)
    n = np.asarray(yes, np.float64) + np.asarray(no, np.float64)
    bias = ((v + w + 2.0 * c) * value - (v + c)) / n**2
    middle = float(np.mean(value - bias))
    ends = np.array([middle, middle - below, middle + above])
    return number(*ends.clip(0.0, 1.0))


def _ratio(
    yes: ArrayLike, no: ArrayLike, noise: Noise, width: Width
) -> tuple[NDArray[np.bool_], Floats, Floats, Floats]:
    """Return where a ratio is told, and its value and ends: beyond 0 and 1 as well."""
    x, y = np.asarray(yes, np.float64), np.asarray(no, np.float64)
    v, w, c = (np.asarray(one, np.float64) for one in noise)
    n, square = x + y, width.z**2
    spread = width.cluster * np.maximum(n, 0.0)
    # a^2 (first) - 2 a (second) + third <= 0
    first = n**2 + square * (spread - v - w - 2.0 * c)
    second = n * x + square * (0.5 * spread - v - c)
    third = x**2 - square * v
    told = (n > 0.0) & (n**2 > square * (v + w + 2.0 * c)) & (first > 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        root = np.sqrt(np.maximum(second**2 - first * third, 0.0))
        value = np.where(told, x / n, np.nan)
        return told, value, (second - root) / first, (second + root) / first


def expected_count(counts: ArrayLike, variance: ArrayLike, width: Width) -> Estimate:
    """Return noisy counts with score intervals of their expectation, at least 0.

    As `proportion`: a count of expectation ``m`` has variance ``m`` before its noise,
    at most.
    """
    given, square = np.asarray(counts, np.float64), width.z**2
    middle = given + 0.5 * width.cluster * square
    noise = np.asarray(variance, np.float64)
    inside = square * (width.cluster * given + 0.25 * width.cluster**2 * square + noise)
    half = np.sqrt(np.maximum(inside, 0.0))
    low, high = np.maximum(middle - half, 0.0), np.maximum(middle + half, 0.0)
    return Estimate(given.clip(low, high), low, high)
