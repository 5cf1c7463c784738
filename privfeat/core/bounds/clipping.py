"""Bounds on what one record contributes, which hold in floating point.

Bounded values are whole numbers of a *grid step*, a power of two, and at most ``2**20``
of it. Sums of their products are then exact (see ``sums.statistics``): the bounds of
``sensitivity`` hold for the numbers computed, in any order of summation, which they do
not for ordinary float sums (Casacuberta et al. 2022, arXiv:2207.10635).

Rounding never lifts a value over its bound: norms are taken in float64, the scale
factor is lowered by ``2**-36``, and values are rounded towards zero.
"""

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from privfeat._checks import check_choice, check_real
from privfeat._types import ROW_SCALINGS, RowScaling
from privfeat.core.bounds.grid import grid_step

MAX_COLUMNS = 200_000
CLIP_RANGE = (1e-6, 1e6)
SHRINK = 1.0 - 2.0**-36


def clip_rows(
    features: Float[Array | np.ndarray, "n d"],
    *,
    clip_norm: float,
    row_scaling: RowScaling,
    intercept_scaling: float | None = None,
) -> Float[Array, "n c"]:
    """Bound every row to a Euclidean norm of at most ``clip_norm``, on a grid.

    Parameters
    ----------
    features : array of shape (n_samples, n_features), float32 or float64
        One row per record, in feature units. Sensitive.
    clip_norm : float
        Radius ``C`` of the ball, in feature units; in [1e-6, 1e6]. Public.
    row_scaling : {"unit", "clip"}
        ``"unit"`` scales every row to norm ``C`` (a zero row stays zero); ``"clip"``
        scales down only rows longer than ``C``. Public.
    intercept_scaling : float, optional
        Value of a constant coordinate appended to each row before it is bounded: to the
        row of unit norm for ``"unit"``, to the raw row for ``"clip"``. In [1e-6, 1e6].
        Public.

    Returns
    -------
    rows : float32 array of shape (n_samples, n_features), or one column more
        Whole numbers in units of ``grid_step(clip_norm)``. Still sensitive.

    Raises
    ------
    TypeError, ValueError
        If a public parameter is not in its range, or there are 200,000 columns or more.

    Notes
    -----
    **Guarantee.** Each output row, times the grid step, has norm at most ``clip_norm``
    as a real number, and depends on the same input row alone. A row with an infinite or
    NaN entry becomes zero, the constant included.

    **Proof.** A row is first divided by its largest entry, so no square overflows. Let
    ``f`` be the float64 factor ``C / norm`` times ``1 - 2**-36``. The
    relative error of norm, quotient and products is below ``(d/2 + 5) 2**-53 < 2**-36``
    for ``d <= 2e5``, so ``norm(f x) <= C``; rounding towards zero shrinks every entry.
    For ``"unit"`` with constant ``s`` the row is bounded by ``C / sqrt(1 + s^2)`` and
    the constant coordinate by ``C s / sqrt(1 + s^2)``: squares sum to ``C^2``.

    **Source.** Mehta et al. 2023, Algorithm 2, line 1. Differs in the rounding, in
    ``"unit"``, and in dropping rows that are not finite.

    Examples
    --------
    >>> rows = clip_rows(
    ...     jnp.array([[0.0, 2.0], [0.5, 0.0]]), clip_norm=1.0, row_scaling="clip"
    ... )
    >>> print((rows * grid_step(1.0)).round(3))
    [[0.  1. ]
     [0.5 0. ]]
    """
    clip_norm = check_real(
        "clip_norm", clip_norm, low=CLIP_RANGE[0], high=CLIP_RANGE[1]
    )
    check_choice("row_scaling", row_scaling, ROW_SCALINGS)
    if intercept_scaling is not None:
        intercept_scaling = check_real(
            "intercept_scaling", intercept_scaling, low=1e-6, high=1e6
        )
    if features.shape[1] >= MAX_COLUMNS:
        raise ValueError(
            f"features must have fewer than {MAX_COLUMNS} columns, got "
            f"{features.shape[1]}. The rounding margin covers no more."
        )
    with jax.enable_x64(True):
        rows: Float[Array, "n c"] = _clip_rows(
            jnp.asarray(features), clip_norm, row_scaling, intercept_scaling
        )
    return rows


def clip_residuals(
    residuals: Float[Array | np.ndarray, "n m"],
    row_norms: Float[Array | np.ndarray, " n"],
    *,
    clip_norm: float,
    radius: float,
    largest: float,
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
        Norms of the rows, in feature units. Sensitive.
    clip_norm, radius, largest : float
        Bounds on the norm of a gradient, and on the norm and on each entry of a
        residual. Public.

    Returns
    -------
    clipped : array of shape (n_samples, n_outputs), float64
        Whole numbers in units of ``grid_step(largest)``. Still sensitive.

    Notes
    -----
    **Guarantee.** With ``s = grid_step(largest)``: ``norm(clipped[i]) s row_norms[i] <=
    clip_norm``, ``norm(clipped[i]) s <= radius``, and every entry is at most ``2**20``,
    by the argument of `clip_rows`, for fewer than 200,000 outputs. A residual whose
    norm is not finite becomes zero.

    **Source.** Goodfellow 2015 (arXiv:1510.01799) for the norm; Mehta et al. 2023,
    Algorithm 4, line 6.
    """
    xp, step = residuals.__array_namespace__(), grid_step(largest)
    norms = xp.sqrt(xp.sum(residuals * residuals, axis=1))
    finite = xp.isfinite(norms)
    norms = xp.where(finite, norms, 0.0)
    limit = xp.minimum(radius, clip_norm / xp.maximum(row_norms, 1e-300))
    factor = xp.minimum(1.0, limit / xp.maximum(norms, 1e-300)) * (SHRINK / step)
    kept = xp.where(finite[:, None], residuals, 0.0) * factor[:, None]
    whole = xp.trunc(xp.minimum(xp.maximum(kept, -largest / step), largest / step))
    clipped: Float[Any, "n m"] = whole
    return clipped


@partial(jax.jit, static_argnames=("clip_norm", "row_scaling", "intercept_scaling"))
def _clip_rows(
    features: Float[Array, "n d"],
    clip_norm: float,
    row_scaling: RowScaling,
    intercept_scaling: float | None,
) -> Float[Array, "n c"]:
    rows = features.astype(jnp.float64)
    finite = jnp.all(jnp.isfinite(rows), axis=1, keepdims=True)
    rows = jnp.where(finite, rows, 0.0)  # 0 * NaN is NaN, so mask before scaling
    step = grid_step(clip_norm)
    constant = jnp.zeros((rows.shape[0], 0), jnp.float64)
    share = 1.0
    if intercept_scaling is not None:
        constant = jnp.where(finite, jnp.float64(intercept_scaling), 0.0)
        if row_scaling == "unit":
            share = 1.0 / math.hypot(1.0, intercept_scaling)
            constant = constant * (clip_norm * share * SHRINK)
        else:
            rows = jnp.concatenate([rows, constant], axis=1)
    # Dividing by the largest entry first keeps squares from overflow and underflow.
    largest = jnp.max(jnp.abs(rows), axis=1, keepdims=True, initial=0.0)
    direction = rows / jnp.where(largest > 0.0, largest, 1.0)
    length = jnp.linalg.norm(direction, axis=1, keepdims=True)
    radius = clip_norm * share * SHRINK
    scale = radius / jnp.maximum(length, 1.0)  # length >= 1 unless the row is zero
    if row_scaling == "clip":
        scale = jnp.minimum(scale, largest)
    rows = direction * scale
    if row_scaling == "unit":
        rows = jnp.concatenate([rows, constant], axis=1)
    return jnp.trunc(rows / step).astype(jnp.float32)
