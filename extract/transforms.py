"""From a decoded image to pixels of the size that the model takes."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

INTERPOLATIONS = ("nearest", "bilinear", "bicubic", "lanczos", "box", "hamming")

_MOST_PIXELS = 2**28


@dataclass(frozen=True)
class ResizeCrop:
    """Resize the shorter side, then cut out the centre; in pixels."""

    resize: int  # the shorter side
    crop: int  # side of the square that is kept, at most ``resize``
    interpolation: str  # one of ``INTERPOLATIONS``

    def __call__(self, image: Any) -> NDArray[np.uint8]:
        """Return RGB pixels of shape (crop, crop, 3).

        Sizes and offsets are those of torchvision's ``Resize`` and ``CenterCrop``.
        BadImageError if the image cannot be converted to RGB, or is so narrow that,
        resized, it is larger than what Pillow takes for a bomb.
        """
        from PIL import Image

        # h5py is slow to load for --help
        from privfeat.data.pixels import BadImageError, converted

        if isinstance(image, np.ndarray):
            image = Image.fromarray(image)
        image = converted(image, "RGB")
        width, height = image.size
        short = min(width, height)
        size = (self.resize * width // short, self.resize * height // short)
        if size[0] * size[1] > _MOST_PIXELS:
            raise BadImageError("its longer side is too many times the shorter one")
        if size != image.size:
            image = image.resize(size, Image.Resampling[self.interpolation.upper()])
        left = round((size[0] - self.crop) / 2.0)
        top = round((size[1] - self.crop) / 2.0)
        if size != (self.crop, self.crop):
            image = image.crop((left, top, left + self.crop, top + self.crop))
        return np.asarray(image)
