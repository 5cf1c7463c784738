"""Clip bounds that follow the norms of the gradients: van der Veen et al. 2018, 2.2.

The gradient has ``m`` parts (`clipping.part_of`: layers, say). In step ``t`` part ``l``
is bounded by ``C_l``, and norms are counted up to ``K_l = 2 C_l``; the next bound is
``clip_norm`` times the released mean of ``min(norm, K_l)``, over the expected number of
records. The first bounds are mean norms on random inputs: they cost nothing.

**One release a step.** What a step releases of the drawn records is the vector

    sqrt((1 - f)/m) sum_i clip(g_il, C_l)/C_l,    sqrt(f/m) sum_i min(n_il, K_l)/K_l

over all parts ``l``, with ``n_il`` the norm of part ``l`` of record ``i``'s gradient
and ``f = NORM_SHARE``, under one noise of one stddev.

**Sensitivity.** 1 under add/remove, 2 under replace-one, as without adaptive bounds.

*Proof.* Given the earlier releases, ``C_l`` and ``K_l`` are fixed. A record adds, in
each part, a vector of norm at most ``sqrt((1 - f)/m)`` and a number in
``[0, sqrt(f/m)]``; the squares sum to at most ``m ((1 - f)/m + f/m) = 1``. Two records
differ by at most twice that.

**Why not two queries.** Norms and gradients are of the *same* Poisson sample. To
account them as two sampled releases would be to assume two independent samples, which
under-reports: whoever is drawn is seen twice. One vector under one noise is one sampled
Gaussian release, whatever is in it. The paper's ``sigma`` and ``sigma_l2`` become the
noise multiplier over ``sqrt(1 - f)`` and ``sqrt(f/m)``, for bounds of all parts.

**Difference from the paper.** Bounds at most double or halve in a step, so that noise
cannot end a fit: post-processing of releases. The mean is over the expected number of
records, not over the number that was drawn, which is secret.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float
from numpy.typing import NDArray

from privfeat.core.bounds.clipping import CLIP_RANGE
from privfeat.core.noise import draws
from privfeat.core.noise.keys import KeyStream
from privfeat.networks.engine import ClipRule, RecordParts, parts_of
from privfeat.networks.loop import Trainer
from privfeat.networks.model import Parameters
from privfeat.networks.optimizers import Optimizer

Clipping = Literal["fixed", "adaptive"]
CLIPPINGS: tuple[Clipping, ...] = get_args(Clipping)

# Bounds travel among the parameters, so that they are kept and restored with them. No
# attribute of a network is called this.
BOUNDS = "@bounds"
# Part of the squared sensitivity that norms get: gradients get 5 % more noise for it.
NORM_SHARE = 0.1
_BETA = 2.0
_NOISE_INPUTS = 32


def check_adaptive(clip_norm: Any) -> None:
    """Raise ValueError for a schedule: the bounds make one themselves."""
    if isinstance(clip_norm, tuple):
        raise ValueError(
            f"clip_norm must be a number for clipping='adaptive', got {clip_norm!r}. "
            "Pass the multiple of the mean norm, such as 1."
        )


def with_adaptive_bounds(
    trainer: Trainer,
    parts_of_batch: Callable[..., RecordParts],
    rule: ClipRule,
    initial: Parameters,
    records: NDArray[Any],
    targets: NDArray[Any],
    n_outputs: int,
    alone: Callable[[Any, Any], tuple[Any, Any]],
) -> tuple[Trainer, Parameters]:
    """Return a trainer whose bounds follow the norms, and what it starts with.

    Parameters
    ----------
    trainer : Trainer
        Of a fixed clip norm: the multiple of the mean norm that is to be the bound.
    parts_of_batch : callable
        From `engine.record_parts`.
    rule : ClipRule
    initial : dict of name to array
    records, targets : arrays of length 1
        Only their shapes and types are used.
    n_outputs : int
    alone : callable
        From `Units`: random records are units of one record each.
    """
    *batch, valid = _noise_batch(trainer.keys, records, targets, n_outputs)
    alpha = trainer.clip_phases[0][1]
    norms = jax.jit(lambda *args: jnp.stack([*parts_of_batch(*args).norms.values()]))
    found = np.asarray(norms(initial, *alone(*batch), valid), np.float64)
    means = alpha * found.mean(axis=1)
    bounds = np.clip(np.nan_to_num(means, nan=1.0), *CLIP_RANGE)
    parts = parts_of(trainer.names, rule.style).values()
    places = {name: place for place, names in enumerate(parts) for name in names}
    adapted = replace(
        trainer,
        clipped_sum=adaptive_sum(parts_of_batch, rule),
        optimizer=adaptive_optimizer(trainer.optimizer, places, alpha),
        names=(*trainer.names, BOUNDS),
        clip_phases=((0.0, 1.0),),
    )
    return adapted, initial | {BOUNDS: jnp.asarray(bounds, jnp.float32)}


def adaptive_sum(
    parts_of_batch: Callable[..., RecordParts], rule: ClipRule
) -> Callable[..., Parameters]:
    """Return what `engine.clipped_sum` does, with the bounds among the parameters.

    Its result is the vector of the module's docstring, times ``clip_norm``: gradients
    by name, and under ``BOUNDS`` the sums of norms. Sensitive.
    """

    @jax.jit
    def compute(
        parameters: Parameters,
        inputs: Any,
        targets: Float[Array, "n ..."],
        valid: Bool[Array, " n"],
        clip_norm: Float[Array, ""],
    ) -> Parameters:
        found = parts_of_batch(parameters, inputs, targets, valid)
        bounds = dict(zip(found.norms, parameters[BOUNDS], strict=True))
        gradients = found.clipped_sum(bounds, rule.factor)
        of_gradients, of_norms = (clip_norm * unit for unit in _units(len(bounds)))
        total = {}
        for part, names in found.names.items():
            for name in names:
                total[name] = gradients[name] * (of_gradients / bounds[part])
        counted = [
            jnp.where(found.usable, jnp.minimum(norm / (_BETA * bounds[part]), 1.0), 0)
            for part, norm in found.norms.items()
        ]
        total[BOUNDS] = of_norms * jnp.sum(jnp.stack(counted), axis=1)
        return total

    return compute


def adaptive_optimizer(
    inner: Optimizer, places: dict[str, int], alpha: float
) -> Optimizer:
    """Return an optimizer that undoes the scaling, and moves the bounds as well.

    Parameters
    ----------
    inner : optax optimizer
        Gets gradients in their own units.
    places : dict of name to int
        Which bound holds for each parameter.
    alpha : float
        The bound as a multiple of the mean norm.
    """

    def init(parameters: Any) -> Any:
        return inner.init(_without_bounds(parameters))

    def update(updates: Any, state: Any, parameters: Any) -> Any:
        bounds = parameters[BOUNDS]
        of_gradients, of_norms = _units(bounds.size)
        gradients = {
            name: updates[name] * (bounds[place] / of_gradients)
            for name, place in places.items()
        }
        moves, state = inner.update(gradients, state, _without_bounds(parameters))
        wanted = alpha * _BETA * bounds * updates[BOUNDS] / of_norms
        moved = jnp.clip(wanted, bounds / 2.0, bounds * 2.0)
        return moves | {BOUNDS: jnp.clip(moved, *CLIP_RANGE) - bounds}, state

    return optax.GradientTransformation(init, update)


def _units(n_parts: int) -> tuple[float, float]:
    """Return the largest share that a part's gradient, and its norm, may have."""
    return math.sqrt((1.0 - NORM_SHARE) / n_parts), math.sqrt(NORM_SHARE / n_parts)


def _without_bounds(parameters: Any) -> Any:
    return {name: leaf for name, leaf in parameters.items() if name != BOUNDS}


def _noise_batch(
    keys: KeyStream, records: NDArray[Any], targets: NDArray[Any], n_outputs: int
) -> tuple[Any, Any, Any]:
    """Return random inputs, random targets of the type of ``targets``, all valid."""
    n = _NOISE_INPUTS
    inputs = draws.gaussian(keys.draw_noise_key(), (n, 1, *records.shape[1:]), 1.0)
    if targets.dtype.kind in "iu":
        drawn = jax.random.randint(keys.draw(), (n,), 0, n_outputs)
    else:
        shape = (n, *targets.shape[1:])
        values = draws.gaussian(keys.draw_noise_key(), shape, 1.0)
        drawn = jnp.asarray(values, jnp.float32)
    return jnp.asarray(inputs, jnp.float32), drawn, jnp.ones(n, bool)
