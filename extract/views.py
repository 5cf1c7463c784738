"""Views of an image: fixed crops and their mirror images, whose features are averaged.

The mean of an image's features over its views is one row that depends on that image
alone, so a view costs time and no privacy. Views are the same for every image and every
run: none is drawn at random.

The default is one view: N views take N times as long, and letters, or left and right,
are not what they were in a mirror. Measured on 2,500 held-out training images of
CIFAR-10 with two networks, the four views are 4.7 to 6.5 points above one view at
epsilon 1 and 8, and the mirror image alone 1.0 to 3.0; on all images the mirror image
adds 1.3 to 1.6 (``benchmarks/RESULTS.md``, *Views of an image*). No zoom but 1.2 was
measured.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .transforms import ResizeCrop


@dataclass(frozen=True)
class View:
    """One way to look at an image."""

    # factor on the length that the image is resized to, >= 1: the square that is cut
    # out stays the same, so that less of the image is seen, and larger
    zoom: float = 1.0
    mirrored: bool = False  # left and right exchanged

    def __str__(self) -> str:
        return f"zoom {self.zoom:g}{' mirrored' * self.mirrored}"


ZOOMS = (1.0, 1.2)
# The first N are the views of ``--views N``.
VIEWS = tuple(View(zoom, mirrored) for zoom in ZOOMS for mirrored in (False, True))


@dataclass(frozen=True)
class Crops:
    """The squares of an image, of one size, that some views are made of."""

    crops: tuple[ResizeCrop, ...]

    def __call__(self, image: Any) -> NDArray[np.uint8]:
        """Return pixels of shape (n_crops, crop, crop, 3), see `ResizeCrop`."""
        return np.stack([crop(image) for crop in self.crops])


def crops_of(
    views: Sequence[View], resize: int, crop: int, interpolation: str
) -> tuple[Crops, list[tuple[int, bool]]]:
    """Return the squares to cut out, and for each view its square and its mirroring."""
    zooms = sorted({view.zoom for view in views})
    crops = tuple(ResizeCrop(round(z * resize), crop, interpolation) for z in zooms)
    return Crops(crops), [(zooms.index(view.zoom), view.mirrored) for view in views]
