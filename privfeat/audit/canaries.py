"""Records that a fit remembers if it remembers any: directions and labels of chance."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfeat.audit._randomness import Generator


@dataclass(frozen=True)
class Canaries:
    """Planted records, each of which takes part in the fit if its fair coin says so.

    Attributes
    ----------
    X : array of shape (n_canaries, n_features)
        Rows of one norm, orthogonal within each block of ``n_features``.
    y : array of shape (n_canaries,)
    included : array of shape (n_canaries,)
    """

    X: NDArray[np.float64]
    y: NDArray[Any]
    included: NDArray[np.bool_]


def make_canaries(
    n_canaries: int,
    n_features: int,
    classes: NDArray[Any],
    *,
    norm: float,
    rng: Generator,
) -> Canaries:
    """Return canaries with random directions, labels and coins.

    Orthogonal directions keep a canary's score free of what the others left in the
    coefficients; beyond ``n_features`` canaries the directions of the blocks mix.
    """
    blocks = []
    for start in range(0, n_canaries, n_features):
        size = min(n_features, n_canaries - start)
        columns, _ = np.linalg.qr(rng.normal(size=(n_features, size)))
        blocks.append(columns.T)
    return Canaries(
        norm * np.concatenate(blocks),
        rng.choice(classes, size=n_canaries),
        rng.random(n_canaries) < 0.5,
    )
