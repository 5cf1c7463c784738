"""All local devices at work on one physical batch."""

from collections.abc import Callable
from typing import Any

import jax
from jax.sharding import Mesh, PartitionSpec
from jaxtyping import Array, Bool, Float

from privfeat.networks.model import Parameters

_AXIS = "records"


def over_devices(clipped_sum: Callable[..., Parameters]) -> Callable[..., Parameters]:
    """Return `engine.clipped_sum` with the records dealt out to all local devices.

    Parameters
    ----------
    clipped_sum : callable
        From `engine.clipped_sum`.

    Returns
    -------
    f : callable
        With the same arguments. The number of slots must be a multiple of the number of
        devices.

    Notes
    -----
    **Guarantee.** That of ``clipped_sum``: a device bounds its own records by
    themselves, and the sums of all are added. No noise is drawn here; it is added once,
    to the total.
    """
    devices = jax.local_devices()
    if len(devices) == 1:
        return clipped_sum

    def part(
        parameters: Parameters,
        inputs: Any,
        targets: Float[Array, "n ..."],
        valid: Bool[Array, " n"],
        clip_norm: Float[Array, ""],
    ) -> Parameters:
        own = clipped_sum(parameters, inputs, targets, valid, clip_norm)
        total: Parameters = jax.lax.psum(own, _AXIS)  # type: ignore[no-untyped-call]
        return total

    dealt, whole = PartitionSpec(_AXIS), PartitionSpec()  # type: ignore[no-untyped-call]
    # The check would take the taps of the fast engine for shared by all devices, and
    # sum their cotangents: records would no longer be told apart.
    return jax.jit(
        jax.shard_map(
            part,
            mesh=Mesh(devices, (_AXIS,)),
            in_specs=(whole, dealt, dealt, dealt, whole),
            out_specs=whole,
            check_vma=False,
        )
    )


def whole_batches(microbatch_size: int) -> int:
    """Return the next multiple of the number of local devices."""
    n_devices = jax.local_device_count()
    return -(-microbatch_size // n_devices) * n_devices
