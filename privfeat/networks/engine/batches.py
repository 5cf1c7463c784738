"""The sum of a batch of records: compiled once, and shared by all local devices."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import jax
from jax.sharding import Mesh, PartitionSpec

from privfeat.networks.engine.clipped_sums import (
    RecordLoss,
    UsedEngine,
    clipped_sum,
    record_parts,
)
from privfeat.networks.engine.clipping import ClipFactor, ClipStyle, Shares
from privfeat.networks.engine.network import Network, Parameters

_AXIS = "records"


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
