"""The largest physical batch that memory holds: found by sizes alone, which are public.

Van der Veen et al. 2018, section 2.1, sums a large batch over such parts; their size
changes memory and time alone.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from privfeat._memory import memory_bytes
from privfeat.core.noise.keys import key_of
from privfeat.networks.engine.network import Parameters
from privfeat.networks.training.loop import Trainer
from privfeat.networks.training.units import most_on_a_device

# Of all memory, whatever is free: records take some, so that one more would change how
# many are worked on at a time, and by that how each is rounded. The rest is for them,
# other code, and what compilers do not count.
_OF_A_DEVICE, _OF_THE_HOST = 0.8, 0.5


def largest_microbatch(
    trainer: Trainer,
    parameters: Parameters,
    records: NDArray[Any],
    targets: NDArray[Any],
) -> int:
    """Return how many records fit, by what the compiled sum of so many needs.

    Half as many are tried after each that does not fit, from what sums are proved for,
    or 32 on each CPU, down to one on each device. Of ``records`` and ``targets``, of
    length 1, shapes and types alone are used. Nothing is computed.
    """
    n_devices, limit = jax.local_device_count(), room_on_a_device()
    fitting = most_on_a_device()
    while fitting > 1:
        needed = bytes_needed(
            trainer, fitting * n_devices, parameters, records, targets
        )
        if needed <= limit:
            break
        fitting //= 2
    return fitting * n_devices


def bytes_needed(
    trainer: Trainer,
    n_records: int,
    parameters: Parameters,
    records: NDArray[Any],
    targets: NDArray[Any],
) -> int:
    """Return what each device needs for the clipped sum of so many records."""
    stored = np.zeros((n_records, *records.shape[1:]), records.dtype)
    numbers, key = np.zeros(n_records, np.intp), key_of(0)
    prepared = jax.eval_shape(
        lambda numbers, key: trainer.units.prepare(stored, numbers, key), numbers, key
    )
    labels = jnp.zeros((n_records, *targets.shape[1:]), targets.dtype)
    given = parameters, prepared, labels, jnp.ones(n_records, bool), jnp.float32(1.0)
    with jax.default_matmul_precision("highest"):
        made: Any = trainer.clipped_sum
        found = made.lower(*given).compile().memory_analysis()
    sizes = found.argument_size_in_bytes, found.output_size_in_bytes
    return int(sum(sizes) + found.temp_size_in_bytes)


def room_on_a_device() -> float:
    """Return the bytes of each device for a sum, which no record changes."""
    stats = jax.local_devices()[0].memory_stats() or {}
    if "bytes_limit" in stats:
        return _OF_A_DEVICE * float(stats["bytes_limit"])
    return _OF_THE_HOST * memory_bytes() / jax.local_device_count()
