"""Scores of a trained network, in batches of one shape."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from privfeat.networks.augment import Augmentation, voted
from privfeat.networks.images import TO_UNIT_RANGE, to_inputs
from privfeat.networks.model import Network

_RECORDS = 64


def scores_of(
    network: Network,
    parameters: Mapping[str, NDArray[Any]],
    records: NDArray[Any],
    augmentation: Augmentation,
    n_votes: int,
    scale: NDArray[Any] = TO_UNIT_RANGE,
    *,
    alone: bool = False,
) -> NDArray[np.float64]:
    """Return the scores of every record, means over its views, (n_samples, n_outputs).

    Parameters
    ----------
    network : Network
    parameters : mapping of name to array
    records : array of shape (n_samples, ...)
    augmentation : str
    n_votes : int
        Views of a record; 1 is the record itself.
    scale : array of shape (2, 1) or (2, 3)
        Mean and deviation by which bytes are scaled.
    alone : bool
        Whether the network must not see two records at once, so that a score depends
        on its record alone, whatever the network does to a batch.
    """
    leaves = {name: jnp.asarray(leaf) for name, leaf in parameters.items()}
    of_views = partial(voted, augmentation=augmentation, n_votes=n_votes)

    @jax.jit
    def forward(leaves: Any, inputs: Any) -> Any:
        score = partial(network, leaves)
        if not alone:
            return of_views(score, inputs)
        return jax.vmap(lambda one: of_views(score, one[None])[0])(inputs)

    scores = []
    for start in range(0, len(records), _RECORDS):
        part = records[start : start + _RECORDS]
        padding = [(0, _RECORDS - len(part))] + [(0, 0)] * (part.ndim - 1)
        inputs = jnp.asarray(to_inputs(np.pad(part, padding), scale))
        scores.append(np.asarray(forward(leaves, inputs))[: len(part)])
    return np.concatenate(scores).astype(np.float64)
