"""Scores and residuals of NumPy, of rows that are sparse or not."""

import math

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int

from privfeat._types import Loss
from privfeat.core.bounds import losses
from privfeat.core.bounds.clipping import clip_residuals
from privfeat.core.bounds.sensitivity import largest_residual, residual_norm


def scaled(
    products: Float64[np.ndarray, "r m"], grid_step: float
) -> Float32[np.ndarray, "r m"]:
    """Return products of coefficients as scores; they may overflow."""
    with np.errstate(all="ignore"):
        products *= grid_step
        return np.asarray(products, np.float32)


def residuals_of(
    scores: Float32[np.ndarray, "r m"],
    labels: Int[np.ndarray, "r k"],
    row_norms: Float64[np.ndarray, " r"],
    kept: Bool[np.ndarray, " r"] | None,
    *,
    loss: Loss,
    clip_norm: float | None,
    radius: float = math.inf,
    weights: Float64[np.ndarray, " l"] | None = None,
) -> Float64[np.ndarray, "r m"]:
    """Return residuals, whole in their grid with privacy; zero where not ``kept``."""
    weight = None if weights is None else weights[labels[:, 0]]
    # numbers that are not finite are made zero, and are no news
    with np.errstate(all="ignore"):
        residual = losses.residuals(loss, scores, labels).astype(np.float64)
        if clip_norm is not None:
            residual = clip_residuals(
                residual,
                row_norms,
                clip_norm=clip_norm,
                radius=min(radius, residual_norm(loss, scores.shape[1])),
                largest=largest_residual(loss),
                weights=weight,
            )
        elif weight is not None:
            residual *= weight[:, None]
    if kept is not None:
        residual[~kept] = 0.0
    return np.asarray(residual)
