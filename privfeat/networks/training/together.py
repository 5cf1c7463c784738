"""What the processes of one fit have in common: what the first has, all have.

Only public things pass here: parameters, states and numbers that follow from releases,
and, as sums do, the sample of a step (the network between the processes is trusted).
"""

from typing import TypeVar

import jax
import numpy as np
from jaxtyping import Bool

from privfeat.core.noise.observation import Sampler
from privfeat.core.sums.processes import Team

T = TypeVar("T")


def first_of(team: Team, tree: T, what: str) -> T:
    """Return the arrays that the first process passes, bit for bit, to each process.

    All pass a tree of the same structure, with arrays of the same shapes and types;
    those of the others do not count.
    """
    if team.size == 1:
        return tree
    leaves, structure = jax.tree.flatten(tree)
    arrays = [np.asarray(leaf) for leaf in leaves]
    content = b"".join(array.tobytes() for array in arrays)
    padded = np.frombuffer(content + bytes(-len(content) % 8), np.int64)
    content, start, found = team.from_first(padded, what).tobytes(), 0, []
    for array in arrays:
        end = start + array.nbytes
        values = np.frombuffer(content[start:end], array.dtype)
        found.append(values.reshape(array.shape))
        start = end
    whole: T = jax.tree.unflatten(structure, found)
    return whole


def sampled(team: Team, sampler: Sampler | None, n: int) -> Bool[np.ndarray, " n"]:
    """Return which of ``n`` units a step takes; None is the sampler of all.

    Where all processes have the same units the first tosses the coin of each, for all.
    Where each has its own, it tosses their coins itself. Sensitive.
    """
    if sampler is None:
        return np.ones(n, bool)
    if team.rows == "own" or team.size == 1:
        return sampler(n)
    mask = sampler(n) if team.index == 0 else np.zeros(n, bool)
    packed = first_of(team, np.packbits(mask), "sample")
    return np.unpackbits(packed, count=n).astype(bool)
