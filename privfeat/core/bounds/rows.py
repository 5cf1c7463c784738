"""Rows of bounded norm, on a grid: what every sum over records is made of."""

import math
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Float64

from privfeat._checks import check_choice, check_real
from privfeat._types import ROW_SCALINGS, RowScaling
from privfeat.core.bounds.clipping import SHRINK
from privfeat.core.bounds.grid import CLIP_RANGE, check_width, grid_step

# Squared norm of a row below which it counts as zero: a device that takes subnormal
# numbers to be zero, or now and then, changes longer rows by less than the margin.
_SMALLEST_SQUARES = 2.0**-192
# Largest entries of rows, and the powers of two above them by which they are divided:
# no square overflows, and subnormal numbers become less than those of float32.
_SCALES = (2.0**-897, 2.0**999)


class ClippedRows(NamedTuple):
    """Bounded rows, and what was seen of them on the way. Sensitive.

    Attributes
    ----------
    rows : float32 array of shape (n_samples, n_columns)
        Whole numbers in steps of the grid.
    norms : float64 array of shape (n_samples,)
        At least the norms of the bounded rows, in feature units.
    finite : bool array of shape (n_samples,)
        Which rows had neither NaN nor infinity.
    """

    rows: Float[Array, "n c"]
    norms: Float[Array, " n"]
    finite: Bool[Array, " n"]


def clip_rows(
    features: Float64[Array | np.ndarray, "n d"],
    *,
    clip_norm: float,
    row_scaling: RowScaling,
    intercept_scaling: float | None = None,
) -> ClippedRows:
    """Bound every row to a Euclidean norm of at most ``clip_norm``, on a grid.

    Parameters
    ----------
    features : array of shape (n_samples, n_features), float64
        One row per record, in feature units. Sensitive. Of one type: a program for
        another would add squares in another order, and one record of float64 makes all
        of an array float64.
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
    clipped : ClippedRows
        Of n_features columns, or one more, in units of ``grid_step(clip_norm)``.

    Raises
    ------
    TypeError, ValueError
        If ``features`` are not float64, a public parameter is not in its range, or
        there are 200,000 columns or more.

    Notes
    -----
    **Guarantee.** Each output row, times the grid step, has norm at most ``clip_norm``
    as a real number, and at most what ``norms`` says of it; it depends on the same
    input row alone, if compiled code rounds a row alike in every slot (assumed). A row
    with an infinite or NaN entry becomes zero, the constant included. So does a row of
    norm below ``2**-992``, but the constant stays.

    **Proof.** Let ``v`` be the numbers that are scaled: products of the entries with
    one number for the row. Both reads of a row compute this one product, so a compiler
    cannot fuse it and round it differently. Let ``N`` be the norm of ``v``, and ``u =
    2**-53``.

    - Nothing overflows: ``abs(v) <= 2**128``, so ``d < 2**18`` squares sum to less than
      ``2**274``. Hence the sum is finite if and only if the row is. Where the sum is at
      least ``2**-192``, squares that underflow are less than ``2**-800`` of it, and
      those of subnormal entries, in ``v`` below ``2**-126``, less than ``2**-42``,
      whether a device takes these for zero or not.
    - Each square and each of ``d - 1`` additions, in any order, takes at most the
      factor ``1 - u``. The root, the quotient ``f = C / N``, the few factors of ``C``
      and the product ``v f`` take at most 90 more, where a device rounds some of them
      less than best. Hence ``norm(v f) <= C (1 + u)**(d / 2 + 90) (1 + 2**-42)``, and
      ``f`` is lowered by ``1 - 2**-36``, which is more for ``d < 2e5``.
    - Rounding towards zero shrinks every entry, and whole numbers of at most ``2**20``
      are float32.

    ``norms`` is ``C`` for ``"unit"``; for ``"clip"`` the smaller of ``C`` and the norm
    found, raised by ``2**-36``. For ``"unit"`` with constant ``s`` the row is bounded
    by ``C / sqrt(1 + s^2)`` and the constant coordinate by ``C s / sqrt(1 + s^2)``:
    squares sum to ``C^2``.

    **Source.** Mehta et al. 2023, Algorithm 2, line 1. Differs in the rounding, in
    ``"unit"``, and in dropping rows that are not finite.

    Examples
    --------
    >>> clipped = clip_rows(
    ...     np.array([[0.0, 2.0], [0.5, 0.0]]), clip_norm=1.0, row_scaling="clip"
    ... )
    >>> print((clipped.rows * grid_step(1.0)).round(3))
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
    check_width(features.shape[1])
    if features.dtype != np.float64:
        raise TypeError(f"features must be float64, got {features.dtype}.")
    with jax.enable_x64(True):
        clipped: ClippedRows = _clip_rows(
            jnp.asarray(features), clip_norm, row_scaling, intercept_scaling
        )
    return clipped


@partial(jax.jit, static_argnames=("clip_norm", "row_scaling", "intercept_scaling"))
def _clip_rows(
    features: Float64[Array, "n d"],
    clip_norm: float,
    row_scaling: RowScaling,
    intercept_scaling: float | None,
) -> ClippedRows:
    """Return bounded rows, from ``features`` of shape (n, d): `clip_rows`, compiled."""
    step, share = grid_step(clip_norm), 1.0
    appended = intercept_scaling if row_scaling == "clip" else None
    scale = _scales(features, appended or 0.0)
    inverse = 1.0 / scale
    scaled = features * inverse
    squares = jnp.sum(scaled * scaled, axis=1, keepdims=True)
    if appended is not None:
        squares += (appended * inverse) ** 2
    finite = jnp.isfinite(squares)
    kept = finite & (squares >= _SMALLEST_SQUARES)
    norms = jnp.sqrt(jnp.where(kept, squares, 1.0))
    if row_scaling == "unit" and intercept_scaling is not None:
        share = 1.0 / math.hypot(1.0, intercept_scaling)
    radius = clip_norm * share * SHRINK
    factor, bounds = radius / norms, jnp.full(len(norms), clip_norm)
    if row_scaling == "clip":
        factor = jnp.minimum(factor, scale)
        bounds = jnp.minimum(bounds, (norms * scale / SHRINK).ravel())
    # 0 * NaN is NaN, so mask before scaling
    scaled = jnp.where(kept, features, 0.0) * inverse
    rows = jnp.trunc(scaled * (factor / step)).astype(jnp.float32)
    if intercept_scaling is not None:
        constant = radius if appended is None else factor * inverse
        constant = jnp.where(finite, constant * intercept_scaling / step, 0.0)
        rows = jnp.append(rows, jnp.trunc(constant).astype(jnp.float32), axis=1)
    return ClippedRows(rows, bounds, finite.ravel())


def _scales(features: Float64[Array, "n d"], appended: float) -> Float64[Array, "n 1"]:
    """Return what brings rows to where squares stay within float64, by division.

    A power of two, which rounds nothing.
    """
    largest = jnp.max(jnp.abs(features), axis=1, keepdims=True, initial=appended)
    low, high = _SCALES
    size = jnp.where(largest < high, jnp.maximum(largest, low), high)
    return jnp.ldexp(jnp.ones_like(size), jnp.frexp(size)[1])
