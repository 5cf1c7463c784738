"""scikit-learn's bundled handwritten digits: 1,797 grey images of 8 x 8 pixels."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import ExtractError
from .sources import Source, digest_of_list

SPLITS = ("train", "test")


class DigitImages:
    """One split of the digits: grey values from 0 to 255, of shape (n, 8, 8).

    ``names`` are positions in the bundled data.
    """

    def __init__(
        self, pixels: NDArray[np.uint8], labels: NDArray[Any], names: list[str]
    ) -> None:
        self.pixels, self.labels, self.names = pixels, labels, names

    def __len__(self) -> int:
        return len(self.names)

    def load(self, index: int) -> tuple[NDArray[np.uint8], int]:
        """Return the grey image as an array, and its label."""
        return self.pixels[index], int(self.labels[index])


def open_digits(splits: Sequence[str] | None) -> Source:
    """Load the digits; every fifth image, numbers 4, 9, 14, ..., is the test split.

    That makes 1,438 training and 359 test images. ExtractError if a split is neither
    ``train`` nor ``test``.
    """
    from sklearn.datasets import load_digits

    for split in splits or ():
        if split not in SPLITS:
            raise ExtractError(f"--splits must be among {SPLITS}, got {split!r}.")
    bunch = load_digits()
    pixels = np.rint(bunch.images * (255.0 / 16.0)).astype(np.uint8)
    number = np.arange(len(pixels))
    parts = {}
    for split in splits or SPLITS:
        rows = number[(number % 5 == 4) == (split == "test")]
        parts[split] = DigitImages(
            pixels[rows], bunch.target[rows], [f"digit-{row:04d}" for row in rows]
        )
    return Source(
        name="digits",
        splits=parts,
        class_names=[str(name) for name in bunch.target_names],
        digests={s: digest_of_list(p.names, p.labels) for s, p in parts.items()},
    )
