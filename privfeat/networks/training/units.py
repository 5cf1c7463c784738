"""What a step samples, bounds and protects as one: a record, or a user."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
from numpy.typing import NDArray

from privfeat._types import Unit
from privfeat.core.sums.batches import LARGEST_BATCH
from privfeat.core.sums.processes import Team
from privfeat.networks.engine.clipped_sums import UsedEngine
from privfeat.networks.engine.network import Network
from privfeat.networks.images.augment import Views
from privfeat.networks.layers.basic import Tape

_BYTES = 2**30
_LARGEST = 32


@dataclass(frozen=True)
class Units:
    """All records of a fit, by the units that neighbouring data sets differ in.

    Attributes
    ----------
    kind : {"record", "user"}
    n_units : int
        That this process has. Public, since samples are drawn by it.
    records, targets : array, or what is indexed like one
        The numbers of some units give what they hold, one slice each. Sensitive.
    prepare : callable
        From such a part of ``records``, the units' numbers and the key of the step to
        the inputs that ``engine`` takes.
    engine : {"fast", "reference"}, or callable
        For `engine.clipped_sums`.
    alone : callable
        From inputs and targets of records to those of units of one record each.
    public : tuple of str
        What is assumed public of the units.
    """

    kind: Unit
    n_units: int
    records: Any
    targets: Any
    prepare: Callable[..., Any]
    engine: UsedEngine
    alone: Callable[[Any, Any], tuple[Any, Any]]
    public: tuple[str, ...]

    def number_in(self, team: Team) -> int:
        """Return the number of units of all processes together."""
        return sum(team.each(self.n_units)) if team.rows == "own" else self.n_units


def single_records(
    records: NDArray[Any], targets: NDArray[Any], views: Views, engine: UsedEngine
) -> Units:
    """Return every record as one unit."""
    return Units(
        "record",
        len(records),
        records,
        targets,
        views,
        engine,
        lambda inputs, targets: (inputs, targets),
        ("the number of records, which the sampling probability is made of",),
    )


def fitting_microbatch(
    network: Network,
    tape: Tape,
    microbatch_size: int | str | None,
    n_views: int,
    n_gradients: int = 1,
) -> int:
    """Return how many units are worked on at once, a multiple of the local devices.

    Without a ``microbatch_size``, as many as fit in about a gibibyte of each device: a
    power of two, <= 32, since more gain nothing, measured on CPUs. A unit needs the
    outputs of layers for so many views at a time, with inputs and cotangents, and up to
    so many gradients: all of it public sizes. A ``microbatch_size`` above what sums are
    proved for, or above 32 on a CPU, where sums of more are slower, is lowered to that;
    one that is no power of two, to the next below: in products of 5 and of 6 records
    compiled code was seen to round the last ones otherwise.
    """
    n_devices = jax.local_device_count()
    if isinstance(microbatch_size, str | None):
        outputs = sum(math.prod(shape) for shape in tape.shapes.values())
        size = sum(leaf.size for leaf in network.initial.values())
        per_unit = 4 * (3 * outputs * n_views + n_gradients * size)
        each = min(max(_BYTES // per_unit, 1), _LARGEST)
    else:
        each = -(-microbatch_size // n_devices)
    return _power_of_two(min(int(each), most_on_a_device())) * n_devices


def most_on_a_device() -> int:
    """Return how many units a device may work on at once, a power of two."""
    most = LARGEST_BATCH // jax.local_device_count()
    on_cpu = jax.default_backend() == "cpu"
    return _power_of_two(max(min(most, _LARGEST) if on_cpu else most, 1))


def _power_of_two(number: int) -> int:
    """Return the largest that is at most so large."""
    return 1 << (number.bit_length() - 1)
