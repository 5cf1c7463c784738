"""Bounds on what one record contributes, which hold in floating point.

Bounded values are whole numbers of a *grid step*, a power of two, and at most ``2**20``
of it. Sums of their products are then exact (see ``sums.statistics``): the bounds of
``sensitivity`` hold for the numbers computed, in any order of summation, which they do
not for ordinary float sums (Casacuberta et al. 2022, arXiv:2207.10635).

Rounding never lifts a value over its bound: norms are taken in float64, the scale
factor is lowered by ``2**-36``, and values are rounded towards zero.
"""

from typing import Any

import numpy as np
from jaxtyping import Array, Float, Float64

from privfeat._types import Loss
from privfeat.core.bounds.grid import grid_step
from privfeat.core.bounds.sensitivity import curvature_norm

SHRINK = 1.0 - 2.0**-36


def clip_residuals(
    residuals: Float[Array | np.ndarray, "n m"],
    row_norms: Float[Array | np.ndarray, " n"],
    *,
    clip_norm: float,
    radius: float,
    largest: float,
    weights: Float[Array | np.ndarray, " n"] | None = None,
) -> Float[Any, "n m"]:
    """Scale residuals so that each gradient ``r x^T`` has norm at most ``clip_norm``.

    The gradient of a linear model is the outer product of residual ``r`` and row ``x``,
    with norm ``norm(r) norm(x)``: clipping it is one factor per record, and no
    per-record gradient is formed. For arrays of NumPy, and of JAX in a float64 trace.

    Parameters
    ----------
    residuals : array of shape (n_samples, n_outputs), float64
        Derivative of the loss by the scores, one row per record. Sensitive.
    row_norms : array of shape (n_samples,), float64
        At least the norms of the rows, in feature units: from `rows.clip_rows`, or
        computed of sparse rows, which may take a relative ``2**-50``. Sensitive.
    clip_norm, radius, largest : float
        Bounds on the norm of a gradient, and on the norm and on each entry of a
        residual. Public.
    weights : array of shape (n_samples,), float64, optional
        In [0, 1], by which clipped residuals are multiplied. Sensitive.

    Returns
    -------
    clipped : array of shape (n_samples, n_outputs), float64
        Whole numbers in units of ``grid_step(largest)``. Still sensitive.

    Notes
    -----
    **Guarantee.** With ``s = grid_step(largest)``: ``norm(clipped[i]) s row_norms[i] <=
    clip_norm``, ``norm(clipped[i]) s <= radius``, and every entry is at most ``2**20``,
    by the argument of `rows.clip_rows`, for fewer than 200,000 outputs, as
    `sensitivity.residual_norm` demands. Where squares underflow that matters only to a
    norm far below a step, all of whose entries become zero anyway. A residual whose
    norm is not finite becomes zero. Weights make no entry larger: in floating
    point, too, a factor times a number in [0, 1] is at most the factor.

    **Source.** Goodfellow 2015 (arXiv:1510.01799) for the norm; Mehta et al. 2023,
    Algorithm 4, line 6.
    """
    xp, step = residuals.__array_namespace__(), grid_step(largest)
    norms = xp.sqrt(xp.sum(residuals * residuals, axis=1))
    finite = xp.isfinite(norms)
    norms = xp.where(finite, norms, 0.0)
    limit = xp.minimum(radius, clip_norm / xp.maximum(row_norms, 1e-300))
    factor = xp.minimum(1.0, limit / xp.maximum(norms, 1e-300)) * (SHRINK / step)
    factor = factor if weights is None else factor * weights
    kept = xp.where(finite[:, None], residuals, 0.0) * factor[:, None]
    whole = xp.trunc(xp.minimum(xp.maximum(kept, -largest / step), largest / step))
    clipped: Float[Any, "n m"] = whole
    return clipped


def bounded_roots(
    weights: Float[Array | np.ndarray, "b m"], loss: Loss
) -> Float64[Any, "b m"]:
    """Return the roots of weights, 0 for NaN, after a cut to `curvature_norm`.

    For arrays of JAX, inside a float64 trace, and of NumPy.
    """
    xp = weights.__array_namespace__()
    weights = xp.nan_to_num(weights.astype(xp.float64), nan=0.0).clip(0.0, 0.25)
    norms = xp.linalg.norm(weights, axis=1, keepdims=True)
    # float32 probabilities may exceed the real bound by a rounding error
    limit = curvature_norm(loss, weights.shape[1]) * SHRINK
    roots: Float64[Any, "b m"] = xp.sqrt(weights * (limit / xp.maximum(norms, limit)))
    return roots
