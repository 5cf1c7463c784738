"""What a step samples, bounds and protects as one: a record, or a user."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import Any
from weakref import WeakKeyDictionary

import jax
import jax.numpy as jnp
import numpy as np
from numpy.random import Generator, default_rng  # noqa: TID251 - public inputs
from numpy.typing import NDArray

from privfeat._types import Unit
from privfeat.core.noise.keys import key_of
from privfeat.core.sums.batches import LARGEST_BATCH
from privfeat.core.sums.processes import Team
from privfeat.exceptions import PrivacyError
from privfeat.networks.engine.clipped_sums import UsedEngine
from privfeat.networks.engine.network import Network, Parameters
from privfeat.networks.images.augment import Views
from privfeat.networks.layers.basic import Tape

_BYTES = 2**30
_LARGEST = 32
# Of the trial of a compiled sum: public records, and how often they have a slot.
_RECORDS, _BATCHES, _PLACES = 16, 16, 256
_BLOCK = 2**16  # of parameters
_RADII = (1e-6, *(4.0**k for k in range(-10, 11)))
# What trials found, by compiled sum.
_found: WeakKeyDictionary[Any, dict[str, bytes]] = WeakKeyDictionary()


@dataclass(frozen=True)
class Units:
    """All records of a fit, by the units that neighbouring data sets differ in."""

    kind: Unit
    n_units: int  # that this process has; public, since samples are drawn by it
    # arrays, or what is indexed like one: the numbers of some units give what they
    # hold, one slice each; sensitive
    records: Any
    targets: Any
    # from such a part of ``records``, the units' numbers and the key of the step to the
    # inputs that ``engine`` takes
    prepare: Callable[..., Any]
    engine: UsedEngine
    # from inputs and targets of records to those of units of one record each
    alone: Callable[[Any, Any], tuple[Any, Any]]
    # from public records, targets, numbers and a key to the inputs, as ``prepare``
    # makes them, and targets of units that hold as many records as may count: each unit
    # the same record again and again
    whole: Callable[..., tuple[Any, Any]]
    public: tuple[str, ...]  # what is assumed public of the units


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
        lambda records, targets, *how: (views(records, *how), targets),
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
    one that is no power of two, to the next below, where compiled code treats slots
    alike most often. Whether it does is tried by `alike_microbatch`.
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


def alike_microbatch(
    units: Units,
    clipped_sum: Callable[..., Parameters],
    microbatch_size: int,
    team: Team,
    parameters: Parameters,
    records: NDArray[Any],
    targets: NDArray[Any],
) -> int:
    """Return the most units, up to so many, of which each counts alike in every slot.

    Half as many are tried after each that do not, down to one on each device: the same
    number in all processes. Of ``records`` and ``targets``, of length 1, shapes and
    types alone are used. PrivacyError if one unit on each device does not count alike
    on all, or not in all processes: CPUs of two kinds may round in two ways.
    """
    one = [np.zeros((1, *of.shape[1:]), of.dtype) for of in (records, targets)]
    # what the sum is compiled for: of numbers themselves it knows nothing
    how = jax.eval_shape(partial(units.whole, *one, np.arange(1)), key_of(0))
    known, n_devices = _found.setdefault(clipped_sum, {}), jax.local_device_count()
    size, told = microbatch_size, ""
    if team.size > 1:  # what processes compare is of these very parameters
        leaves = [np.asarray(parameters[name]) for name in sorted(parameters)]
        told = sha256(b"".join(leaf.tobytes() for leaf in leaves)).hexdigest()
    while size > 1 or team.size > 1:
        key = f"{size} {how} {told}"
        if key not in known:
            given = clipped_sum, size, parameters, records, targets
            known[key] = counts_alike(units, *given)
        own = known[key]
        if all([own] if team.size == 1 else team.each(own != b"")):
            if team.size > 1:
                team.check_same("gradients of a record, so CPUs of one kind", own)
            break
        if size == n_devices:
            raise PrivacyError(
                "a record must count alike on all local devices, and does not. Use one."
            )
        size = size // n_devices // 2 * n_devices
    return size


def counts_alike(
    units: Units,
    clipped_sum: Callable[..., Parameters],
    n_slots: int,
    parameters: Parameters,
    records: NDArray[Any],
    targets: NDArray[Any],
) -> bytes:
    """Return a digest if public records count alike in every slot of a compiled sum.

    It is of what they add, empty if they do not count alike.

    Each of a few is summed alone, in the first slot. Then batches are made of them by
    chance, in one half of which about half of the slots are empty: their sums must be
    those of the records, in every bit. One record is not a number: without a gradient,
    it must move nothing. Records are noise, parameters those given, moved where they
    are zero, and the radius is so small that gradients have the full length of a part.
    """
    draw = default_rng(0)
    noise = _noise(draw, (_RECORDS, *records.shape[1:]), records.dtype)
    labels = _noise(draw, (_RECORDS, *targets.shape[1:]), targets.dtype, 2)
    if noise.dtype.kind == "f":
        noise[-1] = np.nan
    moved = {name: _moved(draw, leaf) for name, leaf in parameters.items()}
    key = key_of(0)

    def total(chosen: NDArray[Any], valid: NDArray[Any], radius: float) -> Any:
        batch = units.whole(noise[chosen], labels[chosen], chosen, key)
        inputs, wanted = batch[0], jnp.asarray(batch[1])
        with jax.default_matmul_precision("highest"):
            found = clipped_sum(
                moved, inputs, wanted, jnp.asarray(valid), jnp.float32(radius)
            )
        return np.concatenate([np.ravel(found[name]) for name in sorted(found)])

    first = np.arange(n_slots) == 0
    alone = [np.full(n_slots, number) for number in range(_RECORDS)]
    # where longer gradients count as none, a small radius leaves nothing to compare
    sizes = (np.linalg.norm(total(alone[0], first, radius)) for radius in _RADII)
    radius = _RADII[next((place for place, size in enumerate(sizes) if size), 0)]
    own = [total(each, first, radius) for each in alone]
    for batch in range(max(_BATCHES, _PLACES // n_slots)):
        chosen = draw.integers(0, _RECORDS, n_slots)
        valid = np.ones(n_slots, bool) if batch % 2 else draw.random(n_slots) < 0.5
        counts = np.bincount(chosen[valid], minlength=_RECORDS)
        if not _adds_up(total(chosen, valid, radius), counts, own):
            return b""
    return sha256(b"".join(part.tobytes() for part in own)).digest()


def _adds_up(found: NDArray[Any], counts: NDArray[Any], own: list[Any]) -> bool:
    """Return whether a sum is that of records so many times, a block at a time.

    A product of all at once would hold them in 64 bits.
    """
    blocks = [slice(start, start + _BLOCK) for start in range(0, len(found), _BLOCK)]
    return all(
        np.array_equal(found[block], counts @ np.stack([each[block] for each in own]))
        for block in blocks
    )


def _noise(
    draw: Generator, shape: tuple[int, ...], dtype: Any, most: int = 256
) -> NDArray[Any]:
    """Return public numbers of a type; whole ones are below ``most``.

    Others have another size in each record: one layer after another has the longest
    part of the gradient, where its rounding shows.
    """
    if dtype.kind in "iu":
        return draw.integers(0, most, shape).astype(dtype)
    sizes = np.resize(4.0 ** np.arange(-4, 4), (shape[0], *[1] * (len(shape) - 1)))
    return (sizes * draw.normal(size=shape)).astype(dtype)


def _moved(draw: Generator, leaf: Any) -> Any:
    """Return a parameter that is nowhere zero, so that gradients pass through it."""
    values = np.asarray(leaf)
    if not np.any(values == 0):
        return leaf
    other = 0.1 * draw.normal(size=values.shape)
    return jnp.asarray(np.where(values == 0, other.astype(values.dtype), values))


def _power_of_two(number: int) -> int:
    """Return the largest that is at most so large."""
    return 1 << (number.bit_length() - 1)
