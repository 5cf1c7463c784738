"""Clip bounds that follow the norms of the gradients: van der Veen et al. 2018, 2.2.

The gradient has ``m`` parts, such as layers (`engine.clipping`). In step ``t`` part
``l`` is bounded by ``C_l``, and norms are counted up to ``K_l = beta C_l``; the next
bound is ``alpha`` (``clip_norm``) times the released mean of ``min(norm, K_l)``, over
the expected number of records. The first bounds are ``alpha`` times mean norms on
random inputs, or ``initial_clip_norm``: they cost nothing.

**One release a step.** What a step releases of the drawn records is the vector

    sqrt((1 - f)/m) sum_i clip(g_il, C_l)/C_l,    sqrt(f/m) sum_i min(n_il, K_l)/K_l

over all parts ``l``, with ``n_il`` the norm of part ``l`` of record ``i``'s gradient
and ``f = norm_share``, under one noise of one stddev.

**Sensitivity.** 1 under add/remove, 2 under replace-one, as without adaptive bounds.

*Proof.* Given the earlier releases, ``C_l`` and ``K_l`` are fixed. A record adds, in
each part, a vector of norm at most ``sqrt((1 - f)/m)`` and a number in
``[0, sqrt(f/m)]``; the squares sum to at most ``m ((1 - f)/m + f/m) = 1``. Two records
differ by at most twice that. Rounding to whole numbers (`core.sums.batches`) adds at
most ``2**-9``, and the margins of the gradients, by which the clip is lowered, take
more: ``(1 - f) (2**-8 - 2**-10 - 2**-10.8) > 2**-9`` for ``f <= 0.15``, with room for
what is of second order. Neither ``alpha`` nor ``beta`` nor the first bounds, all of
them public, are used.

**Why not two queries.** Norms and gradients are of the *same* Poisson sample. Two
sampled releases would be accounted as if their samples were independent, which reports
too little: a record that is drawn is in both. One vector under one noise is one sampled
Gaussian release, whatever is in it. The paper's ``sigma`` and ``sigma_l2`` become the
noise multiplier over ``sqrt(1 - f)`` and ``sqrt(f/m)``, for bounds of all parts.

**Difference from the paper.** Bounds at most double or halve in a step, so that noise
cannot end a fit: post-processing of releases. The mean is over the expected number of
records, not over the number that was drawn, which is secret.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float
from numpy.typing import NDArray

from privfeat.core.bounds.grid import CLIP_RANGE
from privfeat.core.noise import draws
from privfeat.core.noise.keys import KeyStream
from privfeat.core.sums.batches import UNIT, on_grid
from privfeat.networks.engine.clipped_sums import RecordParts, compiled_sum
from privfeat.networks.engine.clipping import ClipFactor, ClipStyle, parts_of
from privfeat.networks.engine.network import Parameters
from privfeat.networks.layers.contributions import added
from privfeat.networks.training.loop import Trainer
from privfeat.networks.training.optimizers import Optimizer

# Bounds travel among the parameters, so that they are kept and restored with them. No
# attribute of a network is called this.
BOUNDS = "@bounds"
_NOISE_INPUTS = 32


class NormBounds(NamedTuple):
    """How bounds follow the norms. Public."""

    beta: float = 2.0  # up to which multiple of the bound a norm counts
    # part of the squared sensitivity that norms get, at most 0.15; at 0.1 gradients get
    # 5 % more noise for it
    norm_share: float = 0.1
    # the first bound of all parts; None: ``alpha`` times the mean norm on random inputs
    initial: float | None = None

    def shares(self, n_parts: int) -> tuple[float, float]:
        """Return the largest share that a part's gradient, and its norm, may have."""
        f = self.norm_share
        return math.sqrt((1.0 - f) / n_parts), math.sqrt(f / n_parts)


def with_adaptive_bounds(
    trainer: Trainer,
    parts_of_batch: Callable[..., RecordParts],
    factor: ClipFactor,
    style: ClipStyle,
    initial: Parameters,
    records: NDArray[Any],
    targets: NDArray[Any],
    n_outputs: int,
    how: NormBounds,
) -> tuple[Trainer, Parameters]:
    """Return a trainer whose bounds follow the norms, and what it starts with.

    The ``trainer`` has a fixed clip norm: the multiple of the mean norm that is to be
    the bound. ``parts_of_batch`` is from `clipped_sums.record_parts`. Of ``records``
    and ``targets``, of length 1, shapes and types alone are used.
    """
    parts, alpha = parts_of(trainer.names, style).values(), trainer.clip_phases[0][1]
    if how.initial is not None:
        bounds = np.full(len(parts), how.initial)
    else:
        batch = _noise_batch(trainer.keys, records.shape[1:], targets, n_outputs)
        batch, valid = trainer.units.alone(*batch), jnp.ones(_NOISE_INPUTS, bool)
        norms = jax.jit(lambda *a: jnp.stack([*parts_of_batch(*a).norms.values()]))
        found = np.asarray(norms(initial, *batch, valid), np.float64)
        means = np.nan_to_num(alpha * found.mean(axis=1), nan=1.0)
        bounds = np.clip(means, *CLIP_RANGE)
    places = {name: place for place, names in enumerate(parts) for name in names}
    adapted = replace(
        trainer,
        clipped_sum=adaptive_sum(parts_of_batch, factor, how),
        optimizer=adaptive_optimizer(trainer.optimizer, places, alpha, how),
        names=(*trainer.names, BOUNDS),
        clip_phases=((0.0, 1.0),),
    )
    return adapted, initial | {BOUNDS: jnp.asarray(bounds, jnp.float32)}


def adaptive_sum(
    parts_of_batch: Callable[..., RecordParts],
    factor: ClipFactor,
    how: NormBounds,
) -> Callable[..., Parameters]:
    """Return what `clipped_sum` does, with the bounds among the parameters.

    Its result is the vector of the module's docstring, in units of ``UNIT`` whatever
    the clip norm is that it is called with: gradients by name, and under ``BOUNDS`` the
    sums of norms. Sensitive.
    """

    def sum_of(
        found: RecordParts, parameters: Parameters, clip_norm: Float[Array, ""]
    ) -> Parameters:
        bounds = dict(zip(found.norms, parameters[BOUNDS], strict=True))
        of_gradients, of_norms = (share / UNIT for share in how.shares(len(bounds)))
        scales = {part: of_gradients / bound for part, bound in bounds.items()}
        total = found.clipped_sum(bounds, scales, factor)
        norms = [
            found.norms[part] / (how.beta * bound) for part, bound in bounds.items()
        ]
        limited = jnp.minimum(jnp.stack(norms, axis=1), 1.0)
        counted = jnp.where(found.usable[:, None], limited, 0.0) * of_norms
        return total | {BOUNDS: added(counted, on_grid)}

    return compiled_sum(parts_of_batch, sum_of)


def adaptive_optimizer(
    inner: Optimizer,
    places: dict[str, int],
    alpha: float,
    how: NormBounds,
) -> Optimizer:
    """Return an optimizer that undoes the scaling, and moves the bounds as well.

    ``inner`` gets gradients in their own units. ``places`` says which bound holds for
    each parameter, and ``alpha`` is the bound as a multiple of the mean norm.
    """

    def trained(parameters: Any) -> Any:
        return {name: parameters[name] for name in places}

    def update(updates: Any, state: Any, parameters: Any) -> Any:
        bounds = parameters[BOUNDS]
        of_gradients, of_norms = how.shares(bounds.size)
        gradients = {
            name: updates[name] * (bounds[place] / of_gradients)
            for name, place in places.items()
        }
        moves, state = inner.update(gradients, state, trained(parameters))
        wanted = alpha * how.beta * bounds * updates[BOUNDS] / of_norms
        moved = jnp.clip(wanted, bounds / 2.0, bounds * 2.0)
        return moves | {BOUNDS: jnp.clip(moved, *CLIP_RANGE) - bounds}, state

    return optax.GradientTransformation(lambda p: inner.init(trained(p)), update)


def _noise_batch(
    keys: KeyStream, shape: tuple[int, ...], targets: NDArray[Any], n_outputs: int
) -> tuple[Any, Any]:
    """Return random inputs, and random targets of the type of ``targets``."""
    n = _NOISE_INPUTS
    drawn = draws.gaussian(keys.draw_noise_key(), (n, 1, *shape), 1.0)
    inputs = jnp.asarray(drawn, jnp.float32)
    if targets.dtype.kind in "iu":
        return inputs, jax.random.randint(keys.draw(), (n,), 0, n_outputs)
    values = draws.gaussian(keys.draw_noise_key(), (n, *targets.shape[1:]), 1.0)
    return inputs, jnp.asarray(values, jnp.float32)
