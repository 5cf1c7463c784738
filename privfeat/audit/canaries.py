"""Records that a fit remembers if it remembers any: random directions and labels."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfeat.audit.random_numbers import Generator


@dataclass(frozen=True)
class Canaries:
    """Planted records, each of which takes part in the fit if its fair coin says so."""

    X: NDArray[np.float64]  # rows of one norm, orthogonal within each block
    y: NDArray[Any]
    included: NDArray[np.bool_]


def make_canaries(
    n_canaries: int,
    n_features: int,
    classes: NDArray[Any],
    *,
    norm: float,
    avoid: NDArray[np.float64],
    rng: Generator,
) -> Canaries:
    """Return canaries with random directions, labels and coins.

    Each has this ``norm``, in feature units. ``avoid``, of shape (n_avoided,
    n_features), are directions that other records leave in the coefficients, such as
    class means: canaries are orthogonal to them if they are at most half of the
    features. The score of a canary does not depend on what orthogonal records left in
    the coefficients. Where there are more canaries than directions, it does.
    """
    if 2 * len(avoid) > n_features:
        avoid = avoid[:0]
    room = n_features - len(avoid)
    blocks = []
    for start in range(0, n_canaries, room):
        size = min(room, n_canaries - start)
        random = rng.normal(size=(n_features, size))
        columns, _ = np.linalg.qr(np.column_stack([avoid.T, random]))
        blocks.append(columns[:, len(avoid) :].T)
    return Canaries(
        norm * np.concatenate(blocks),
        rng.choice(classes, size=n_canaries),
        rng.random(n_canaries) < 0.5,
    )
