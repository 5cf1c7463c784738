"""How much of a record's gradient counts: the factor by which it is multiplied.

Every factor bounds the norm of what is left by a radius ``R``:

- ``abadi``: ``min(1, R/norm)``. Abadi et al. 2016, Algorithm 1.
- ``automatic``: ``R/(norm + 0.01)``. Bu et al. 2023, section 2.2.
- ``normalize``: ``R/norm``, the same without the stabilizer.
- ``global``: ``1[norm <= R]``. Bu et al. 2023, appendix D.

**Proof.** With ``x = norm >= 0``: ``x min(1, R/x) <= R``; ``x R / (x + 0.01) < R``;
``x R/x = R``, and a zero gradient stays zero; ``x 1[x <= R] <= R``.

**Several parts.** When the parts ``r`` of a gradient (one per layer, or per block) are
bounded by radii ``R_r``, the whole has norm at most ``sqrt(sum R_r^2)``,
since parts are orthogonal coordinates. `part_radius` gives every one of ``m`` parts
``clip_norm / sqrt(m)``, so the sensitivity is ``clip_norm`` in every style.

**Rounding.** Norms are computed in float32. Whatever the network, the relative error of
a squared norm is below ``2**-9``, of a norm below ``2**-10`` (`contributions.summed`):
``2**-10`` for the numbers of one parameter, as much for the sum over parameters.
Factors are lowered by ``2**-8`` (and a norm counts as larger by as much for
``global``), which covers that, the rounding of the factor and the rounding of its
products. What cancellation takes from a norm by Gram matrices is added beforehand
(`contributions.gram`).

What is added up of a record is its own gradient in float32, rounded to whole numbers:
sums of records have no error, whatever the physical batches (`core.sums.batches`).
That gradient is longer than the norm that was stated, of real numbers, by a factor of
at most ``1 + 2**-10.8``. *Proof.* Where it was formed before, the norm is its own. A
product of ``a`` and ``e`` is off by two roundings. With ``T`` positions and a Gram
matrix (``k = d + o + 2 T <= 2**16`` terms, ``u = 2**-24``) it is off by at most
``(T + 3) u M``, while the stated norm is at least ``sqrt(norm^2 + 0.9 k u M^2)``
(`contributions.gram`). By Cauchy-Schwarz the quotient is at most
``sqrt(1 + (T + 3)^2 u / (0.9 k))``, and ``T <= k / 2 < 2**15``.

**What is supposed.** The float32 inputs and cotangents of a record are the same in
every slot of a physical batch. Compiled code that rounded them otherwise in another
slot would move records that a neighbour only shifts: a test compares slots, bit by bit.
"""

import math
from collections.abc import Callable
from typing import Any, Literal, get_args

import jax.numpy as jnp
from jaxtyping import Array, Float

from privfeat._checks import check_real
from privfeat.core.bounds.grid import CLIP_RANGE

ClipFactor = Literal["abadi", "automatic", "normalize", "global"]
ClipStyle = Literal["flat", "layerwise", "blockwise"]

CLIP_FACTORS: tuple[ClipFactor, ...] = get_args(ClipFactor)
CLIP_STYLES: tuple[ClipStyle, ...] = get_args(ClipStyle)

MARGIN = 2.0**-8
_STABILIZER = 0.01
_TINY = 1e-30
_SMALLEST = 2.0**-40


def clip_factors(
    norms: Float[Array, "..."], radius: Float[Array, ""] | float, factor: ClipFactor
) -> Float[Array, "..."]:
    """Return the numbers that bound gradients of these norms by ``radius``.

    Zero for a norm that is not finite: such a record does not count.

    Examples
    --------
    >>> norms = jnp.array([0.5, 4.0, jnp.nan])
    >>> print(clip_factors(norms, 2.0, "abadi").round(2))
    [1.  0.5 0. ]
    """
    finite = jnp.isfinite(norms)
    norms = jnp.where(finite, norms, 1.0)
    factors = _RULES[factor](norms, radius) * (1.0 - MARGIN)
    return jnp.where(finite, factors, 0.0)


def part_of(name: str, style: ClipStyle) -> str:
    """Return the part of the gradient to which the layer called ``name`` belongs.

    ``"blockwise"`` takes the first component of the name: an attribute of the network,
    which is a stage or a block; list entries keep their number.
    """
    if style == "flat":
        return ""
    if style == "layerwise":
        return name
    head, *rest = name.split("/")
    return f"{head}/{rest[0]}" if rest and rest[0].isdigit() else head


def parts_of(names: tuple[str, ...], style: ClipStyle) -> dict[str, list[str]]:
    """Return the names of the parameters in each part of the gradient."""
    parts: dict[str, list[str]] = {}
    for name in names:
        parts.setdefault(part_of(name.rpartition("/")[0], style), []).append(name)
    return parts


def part_radius(clip_norm: float, n_parts: int) -> float:
    """Return the radius of each of ``n_parts`` parts for a whole of ``clip_norm``."""
    return clip_norm / math.sqrt(n_parts)


def check_phases(clip_norm: Any) -> tuple[tuple[float, float], ...]:
    """Return a clip norm, or its schedule, as pairs of (start, clip norm).

    Raises
    ------
    TypeError, ValueError
        If a norm is not in [1e-6, 1e6], or starts are not shares of the fit that
        increase from 0.

    Examples
    --------
    >>> check_phases(1.0)
    ((0.0, 1.0),)
    """
    low, high = CLIP_RANGE
    if not isinstance(clip_norm, tuple):
        return ((0.0, check_real("clip_norm", clip_norm, low=low, high=high)),)
    phases: list[tuple[float, float]] = []
    for place, phase in enumerate(clip_norm):
        if not (isinstance(phase, tuple) and len(phase) == 2):
            raise TypeError(
                "clip_norm must be a number or a tuple of pairs (start, clip_norm), "
                f"got {clip_norm!r}."
            )
        start = check_real("start of clip_norm", phase[0], low=0.0, high=1.0)
        norm = check_real("clip_norm", phase[1], low=low, high=high)
        if start <= phases[-1][0] if place else start != 0.0:
            raise ValueError(
                f"starts of clip_norm must increase from 0, got {clip_norm!r}."
            )
        phases.append((start, norm))
    if not phases:
        raise ValueError("clip_norm must have at least one phase, got ().")
    return tuple(phases)


_Rule = Callable[[Float[Array, "..."], Float[Array, ""] | float], Float[Array, "..."]]
_RULES: dict[ClipFactor, _Rule] = {
    "abadi": lambda norms, radius: jnp.minimum(1.0, radius / jnp.maximum(norms, _TINY)),
    "automatic": lambda norms, radius: radius / (norms + _STABILIZER),
    # far below the norms of use, and far above what is lost of those of tiny gradients
    "normalize": lambda norms, radius: jnp.where(
        norms > _SMALLEST, radius / jnp.maximum(norms, _SMALLEST), 0.0
    ),
    "global": lambda norms, radius: jnp.where(
        norms * (1.0 + MARGIN) <= radius, 1.0, 0.0
    ),
}
