"""Which engine trains a network, and its sum of a batch, over all local devices."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec
from jaxtyping import Array, Float

from privfeat.networks.engine.clipped_sums import (
    RecordLoss,
    UsedEngine,
    clipped_sum,
    dry_run,
    record_parts,
)
from privfeat.networks.engine.clipping import ClipFactor, ClipStyle, Shares
from privfeat.networks.engine.network import Network, Parameters
from privfeat.networks.layers.basic import FastEngineError, Tape

_AXIS = "records"
Engine = Literal["auto", "fast", "reference"]


def choose_engine(
    engine: Engine,
    network: Network,
    tape: Tape,
    trial: Callable[[], None] | None = None,
    *,
    trusted: bool = True,
) -> Literal["fast", "reference"]:
    """Return the engine that trains the network of this tape.

    ``trial`` is `check_rows`, for a network that is not one of ours. ``trusted``: it is
    known to treat every record by itself. No trial shows that: a network may mix the
    records of larger batches, or those of some values. FastEngineError if ``engine`` is
    ``"fast"`` and the network is not made for it, or not trusted.
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

    A trial on two records that are not of the data, with parameters that are not zero;
    of ``inputs`` and ``targets``, of length 1, shapes and types alone are used:

    - The norms of the first record must not move with the second, which is not a number
      once.
    - The norm that a layer states of a gradient must not be below that of what it sums:
      a layer of a user may err.
    - The gradients of both must add up to what differentiation finds: a parameter that
      is used outside of its layer as well, or by two, has a part there that no layer
      knows of.
    """
    first = _waves(inputs, 1.0)
    labels = jnp.asarray(np.zeros((2, *targets.shape[1:]), targets.dtype))
    moved = {name: leaf + _waves(leaf, 0.1) for name, leaf in network.initial.items()}
    parts = record_parts(network, loss, "layerwise", "fast", tuple(moved))
    norm = jnp.linalg.norm

    @jax.jit
    def trial(second: Float[Array, "1 ..."]) -> tuple[Float[Array, " _"], ...]:
        records = jnp.concatenate([first, second])
        own = parts(moved, records[:, None], labels, jnp.ones(2, bool))
        stated = [norms[0] for norms in own.norms.values()]
        of_first = {n: own.found[n].weighted_sum(jnp.array([1.0, 0.0])) for n in moved}
        lengths = [
            norm(jnp.stack([norm(of_first[name]) for name in names]))
            for names in own.names.values()
        ]
        of_both = {name: own.found[name].weighted_sum(jnp.ones(2)) for name in moved}
        whole = jax.grad(lambda p: jnp.sum(loss(network(p, records), labels)))(moved)
        errors = [norm(of_both[name] - whole[name]) for name in moved]
        sizes = [norm(whole[name]) for name in moved]
        return tuple(map(jnp.stack, (stated, lengths, errors, sizes)))

    seen = dry_run(network, jnp.concatenate([first, first])).shapes.values()
    divided = all(shape and shape[0] % 2 == 0 for shape in seen)
    if divided:
        stated, lengths, errors, sizes = trial(-2.0 * first)
        beside_nan = trial(jnp.full_like(first, jnp.nan))[0]
    if not divided or not jnp.array_equal(stated, beside_nan):
        raise FastEngineError(
            "model must show its layers the rows of a record side by side, and those "
            "of records alone, for engine='fast', got another order, or what belongs "
            "to all records. Pass engine='reference'."
        )
    if jnp.any(stated < lengths * (1.0 - 2.0**-8)):
        raise FastEngineError(
            "layers must state the norm of a record's gradient in full for "
            "engine='fast', got one that is too small. Pass engine='reference'."
        )
    if not jnp.all(errors <= 1e-2 * sizes + 1e-4 * jnp.max(sizes)):
        raise FastEngineError(
            "every parameter must be used by one layer alone for engine='fast', got "
            "one that is used elsewhere as well. Pass engine='reference'."
        )


def _waves(like: Any, height: float) -> Float[Array, "..."]:
    """Return numbers between ``-height`` and ``height``, in the shape of ``like``."""
    places = jnp.arange(1, 1 + like.size).astype(like.dtype)
    return (height * jnp.sin(places)).reshape(like.shape)


class BatchSum(NamedTuple):
    """What is summed over a batch: see `record_parts` and `clipped_sum`."""

    loss: RecordLoss
    style: ClipStyle
    engine: UsedEngine
    trainable: tuple[str, ...]
    factor: ClipFactor
    exact: bool
    shares: Shares = None


def sum_of_batch(network: Network, what: BatchSum) -> Callable[..., Parameters]:
    """Return the `clipped_sum` of `record_parts`, `over_devices`.

    For equal networks and the engines that have a name it is one function, which all
    fits of a process share: it is compiled once.
    """
    if network.recipe is None or not isinstance(what.engine, str):
        return _made(network, what)
    return _shared(network.outline(), what)


def _made(network: Network, what: BatchSum) -> Callable[..., Parameters]:
    parts = record_parts(network, what.loss, what.style, what.engine, what.trainable)
    own = clipped_sum(parts, what.factor, exact=what.exact, shares=what.shares)
    return over_devices(own)


# Of fits with other networks, or parameters of the sum, so many are kept.
_shared = lru_cache(maxsize=8)(_made)


def over_devices(clipped_sum: Callable[..., Parameters]) -> Callable[..., Parameters]:
    """Return `clipped_sum` on all local devices, each with a part of the records.

    With the same arguments; the number of slots must be a multiple of that of devices.
    **Guarantee.** That of ``clipped_sum``: a device bounds its own records by
    themselves, and the sums of all are added. No noise is drawn here; it is added once,
    to the total.
    """
    devices = jax.local_devices()
    if len(devices) == 1:
        return clipped_sum

    def part(*given: Any) -> Parameters:
        own = clipped_sum(*given)
        total: Parameters = jax.lax.psum(own, _AXIS)  # type: ignore[no-untyped-call]
        return total

    dealt, whole = PartitionSpec(_AXIS), PartitionSpec()  # type: ignore[no-untyped-call]
    # The check would take the taps of the fast engine for shared by all devices, and
    # sum their cotangents: the gradients of several records would be mixed.
    return jax.jit(
        jax.shard_map(
            part,
            mesh=Mesh(devices, (_AXIS,)),
            in_specs=(whole, dealt, dealt, dealt, whole),
            out_specs=whole,
            check_vma=False,
        )
    )
