"""From the records of a step to physical batches of one shape."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int
from numpy.typing import NDArray

from privfeat.networks.model import Network, Parameters, count
from privfeat.networks.tape import Tape

_BYTES = 2**30
_LARGEST = 32


class PhysicalBatch(NamedTuple):
    """Slots of one call of the engine. Sensitive.

    Attributes
    ----------
    records : array of shape (microbatch_size,)
        Indices; of any record where the slot is empty.
    valid : array of shape (microbatch_size,)
        Which slots hold a record.
    """

    records: Int[np.ndarray, " m"]
    valid: Bool[np.ndarray, " m"]


def physical_batches(
    records: Int[np.ndarray, " b"], microbatch_size: int
) -> Iterator[PhysicalBatch]:
    """Yield the records in physical batches, the last one filled up; none for none."""
    for start in range(0, len(records), microbatch_size):
        part = records[start : start + microbatch_size]
        padding = microbatch_size - len(part)
        yield PhysicalBatch(
            np.pad(part, (0, padding)),
            np.pad(np.ones(len(part), bool), (0, padding)),
        )


def fitting_microbatch(
    network: Network, tape: Tape, n_views: int, n_gradients: int = 1
) -> int:
    """Return how many units' work fits in about a gibibyte: a power of two, <= 32.

    A unit needs the outputs of layers for so many views at a time, with inputs and
    cotangents, and up to so many gradients: all of it public sizes. More than 32 gain
    nothing, measured on CPUs.
    """
    outputs = sum(math.prod(shape) for shape in tape.shapes.values())
    per_unit = 4 * (3 * outputs * n_views + n_gradients * count(network.initial))
    fitting = max(_BYTES // per_unit, 1)
    return int(min(2 ** (int(fitting).bit_length() - 1), _LARGEST))


def flatten(parameters: Parameters, names: tuple[str, ...]) -> NDArray[np.float64]:
    """Return the named arrays as one vector, in that order."""
    return np.concatenate(
        [np.asarray(parameters[name], np.float64).ravel() for name in names]
    )


def unflatten(
    vector: NDArray[np.float64], like: Parameters, names: tuple[str, ...]
) -> dict[str, NDArray[np.float32]]:
    """Return a vector as the named arrays, in the shapes of ``like``."""
    ends = np.cumsum([like[name].size for name in names])[:-1]
    return {
        name: part.reshape(like[name].shape).astype(np.float32)
        for name, part in zip(names, np.split(vector, ends), strict=True)
    }
