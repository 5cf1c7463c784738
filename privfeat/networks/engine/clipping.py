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
since parts are orthogonal coordinates. `equal_share` gives every one of ``m`` parts
``clip_norm / sqrt(m)``, so the sensitivity is ``clip_norm`` in every style.

**A bound for each part** (Bu et al. 2023, equation 4.4). Users may choose each ``R_r``.
Let ``C = sqrt(sum R_r^2)``, over the parts that are trained. By the bound above, a
record's clipped gradient ``g`` has norm at most ``C``: ``norm(g)^2 = sum norm(g_r)^2 <=
sum R_r^2``. So the sum moves by at most ``C`` when a record is added, and by ``2 C``
when one is replaced: in units of ``C``, in which noise is drawn, by 1 and 2, as with
one bound. `shares_of` gives ``C``, rounded up, and ``R_r / C``: the squares of these
shares sum to at most 1. The bounds are public: chosen without a look at the records.

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

**What is tried.** The whole numbers of a record are the same in every slot of a
physical batch, whatever the others hold. Compiled code that rounded them otherwise
would move records that a neighbour only shifts: before a fit is charged, its own code
is tried on public records, and gets fewer at a time if they count otherwise somewhere
(`training.units.alike_microbatch`). That it treats the data as those is supposed.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias, get_args

import jax.numpy as jnp
from jaxtyping import Array, Float

from privfeat._checks import check_real
from privfeat.core.bounds.grid import CLIP_RANGE

ClipFactor = Literal["abadi", "automatic", "normalize", "global"]
ClipStyle = Literal["flat", "layerwise", "blockwise"]
# The bound on each part of a gradient over that on the whole.
Shares: TypeAlias = tuple[tuple[str, float], ...] | None

CLIP_FACTORS: tuple[ClipFactor, ...] = get_args(ClipFactor)
CLIP_STYLES: tuple[ClipStyle, ...] = get_args(ClipStyle)

MARGIN = 2.0**-8
_STABILIZER = 0.01
_TINY = 1e-30
_SMALLEST = 2.0**-40
_ROUND_UP = 1.0 + 2.0**-40  # covers the rounding of the norm and of the shares


def clip_factors(
    norms: Float[Array, "..."], radius: Float[Array, ""] | float, factor: ClipFactor
) -> Float[Array, "..."]:
    """Return the numbers that bound gradients of these norms by ``radius``.

    Zero for a norm that is not finite: such a record does not count.

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


def equal_share(n_parts: int) -> float:
    """Return the radius of each of ``n_parts`` parts for a whole of 1."""
    return 1.0 / math.sqrt(n_parts)


def shares_of(
    clip_norm: Any, names: tuple[str, ...], style: ClipStyle
) -> tuple[tuple[tuple[float, float], ...], Shares]:
    """Return the phases of a clip norm, and the share of each part, None for equal.

    A ``clip_norm`` by name holds, for each part of the gradient, its bound ``R_r``
    under the longest beginning of its name, of whole words between slashes; ``names``
    are those of the trained parameters. TypeError or ValueError as `check_clip_norm`,
    and if there is no bound for a part, or one for none.

    >>> names = ("hidden/kernel", "hidden/bias", "head/kernel")
    >>> ((_, whole),), shares = shares_of({"": 3.0, "head": 4.0}, names, "layerwise")
    >>> round(whole, 3), [(part, round(share, 3)) for part, share in shares]
    (5.0, [('hidden', 0.6), ('head', 0.8)])
    """
    if not isinstance(clip_norm, Mapping):
        return check_phases(clip_norm), None
    bounds = dict(clip_norm)  # which nobody else can change
    check_clip_norm(bounds, style)
    radii, used = {}, set()
    for part in parts_of(names, style):
        beginnings = (b for b in bounds if not b or f"{part}/".startswith(f"{b}/"))
        found = max(beginnings, key=len, default=None)
        if found is None:
            raise ValueError(
                f"clip_norm must have a bound for {part!r}, got {bounds!r}. Add it, or "
                "'' for all that have no other."
            )
        used.add(found)
        radii[part] = float(bounds[found])
    if unused := bounds.keys() - used:
        raise ValueError(
            f"clip_norm must name parts that are trained, got {min(unused)!r}. They "
            f"are {', '.join(radii)}."
        )
    whole = math.hypot(*radii.values()) * _ROUND_UP
    return ((0.0, whole),), tuple((part, r / whole) for part, r in radii.items())


def check_clip_norm(clip_norm: Any, style: ClipStyle) -> None:
    """Raise TypeError or ValueError unless it is one for `shares_of`, of any network.

    A number, a schedule (see `check_phases`), or bounds in [1e-6, 1e6] by name, for
    which the style must not be ``"flat"``.
    """
    if not isinstance(clip_norm, Mapping):
        check_phases(clip_norm)
        return
    low, high = CLIP_RANGE
    for name, radius in clip_norm.items():
        if not isinstance(name, str):
            raise TypeError(f"names in clip_norm must be strings, got {name!r}.")
        check_real(f"clip_norm of {name!r}", radius, low=low, high=high)
    if style == "flat" or not clip_norm:
        raise ValueError(
            "clip_style must be 'layerwise' or 'blockwise' for bounds by name, and "
            f"clip_norm hold one, got {style!r} and {clip_norm!r}. Pass them, or a "
            "number."
        )


def check_phases(clip_norm: Any) -> tuple[tuple[float, float], ...]:
    """Return a clip norm, or its schedule, as pairs of (start, clip norm).

    TypeError or ValueError if a norm is not in [1e-6, 1e6], or starts are not shares of
    the fit that increase from 0.

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
