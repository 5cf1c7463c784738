"""Which engine trains a network."""

from collections.abc import Callable
from typing import Any, Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from privfeat.networks.engine.clipped_sums import RecordLoss, dry_run, record_parts
from privfeat.networks.engine.network import Network
from privfeat.networks.layers.basic import FastEngineError, Tape

Engine = Literal["auto", "fast", "reference"]
ENGINES: tuple[Engine, ...] = get_args(Engine)


def choose_engine(
    engine: Engine,
    network: Network,
    tape: Tape,
    trial: Callable[[], None] | None = None,
    *,
    trusted: bool = True,
) -> Literal["fast", "reference"]:
    """Return the engine that trains the network of this tape.

    Parameters
    ----------
    engine : {"auto", "fast", "reference"}
    network : Network
    tape : Tape
    trial : callable, optional
        `check_rows`, for a network that is not one of ours.
    trusted : bool
        Whether the network is known to treat every record by itself. No trial shows
        that: a network may mix the records of larger batches, or those of some values.

    Raises
    ------
    FastEngineError
        If ``engine`` is ``"fast"`` and the network is not made for it, or not trusted.
    """
    if engine == "reference" or (engine == "auto" and not trusted):
        return "reference"
    if not trusted:
        raise FastEngineError(
            "trust_model must be True for engine='fast' and a network that is not "
            "named, got False. Pass engine='reference', which shows it one record at a "
            "time; or True, if it treats every record by itself, whatever their values."
        )
    try:
        tape.check_knows(network.initial)
        if trial is not None:
            trial()
    except FastEngineError:
        if engine == "fast":
            raise
        return "reference"
    return "fast"


def check_rows(network: Network, loss: RecordLoss, inputs: Any, targets: Any) -> None:
    """Raise `FastEngineError` unless layers see the rows of a record side by side.

    The fast engine takes the first rows that a layer sees for those of the first
    record, and so on. A network may keep records apart and still show them in another
    order, views or positions first, or show a table that belongs to them all: then
    norms are of parts of several records, and bound the gradient of none.

    A trial on two records that are not of the data, with parameters that are not zero:
    the norms of the first record must not move with the second, which is not a number
    once. And the gradients of both must add up to what differentiation finds: a
    parameter that is used outside of its layer as well, or by two, has a part there
    that no layer knows of.

    Parameters
    ----------
    network : Network
    loss : callable
    inputs, targets : arrays of length 1
        Only their shapes and types are used.
    """
    first, labels = _waves(inputs, 1.0), jnp.asarray(np.zeros_like(targets))
    moved = {name: leaf + _waves(leaf, 0.1) for name, leaf in network.initial.items()}
    parts = record_parts(network, loss, "layerwise", "fast", tuple(moved))

    @jax.jit
    def norms(second: Float[Array, "1 ..."]) -> Float[Array, " m"]:
        records = jnp.concatenate([first, second])[:, None]
        both = jnp.concatenate([labels, labels]), jnp.ones(2, bool)
        found = parts(moved, records, *both).norms.values()
        return jnp.stack([norm[0] for norm in found])

    @jax.jit
    def differences(second: Float[Array, "1 ..."]) -> Float[Array, "2 m"]:
        records, ones = jnp.concatenate([first, second]), jnp.ones(2)
        both = jnp.concatenate([labels, labels])
        found = parts(moved, records[:, None], both, ones > 0.0).found
        whole = jax.grad(lambda p: jnp.sum(loss(network(p, records), both)))(moved)
        rows = [(found[name].weighted_sum(ones), whole[name]) for name in whole]
        pairs = [jnp.stack([_length(a - b), _length(b)]) for a, b in rows]
        return jnp.stack(pairs, axis=1)

    seen = dry_run(network, jnp.concatenate([first, first])).shapes.values()
    divided = all(shape and shape[0] % 2 == 0 for shape in seen)
    others = (-2.0 * first, jnp.full_like(first, jnp.nan))
    if not divided or not jnp.array_equal(*map(norms, others)):
        raise FastEngineError(
            "model must show its layers the rows of a record side by side, and those "
            "of records alone, for engine='fast', got another order, or what belongs "
            "to all records. Pass engine='reference'."
        )
    errors, lengths = differences(-2.0 * first)
    if not jnp.all(errors <= 1e-2 * lengths + 1e-4 * jnp.max(lengths)):
        raise FastEngineError(
            "every parameter must be used by one layer alone for engine='fast', got "
            "one that is used elsewhere as well. Pass engine='reference'."
        )


def _length(values: Float[Array, "..."]) -> Float[Array, ""]:
    return jnp.sqrt(jnp.sum(jnp.square(values)))


def _waves(like: Any, height: float) -> Float[Array, "..."]:
    """Return numbers between ``-height`` and ``height``, in the shape of ``like``."""
    places = jnp.arange(1, 1 + like.size).astype(like.dtype)
    return (height * jnp.sin(places)).reshape(like.shape)
