"""Features without weights: the wavelet scattering transform of grey images."""

from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfeat.data.pixels import BadImageError, converted

from .arguments import Options
from .batches import FeatureBatch
from .errors import ExtractError
from .resampling import SUPPORT, resize_grey

DEFAULTS = {"J": 2, "L": 8, "max_order": 1}


class ScatteringExtractor:
    """Runs grey images through kymatio's ``Scattering2D``, in NumPy.

    Needs neither torch nor timm, and for the digits not Pillow either. ``model_kwargs``
    may set ``J`` (octaves), ``L`` (angles) and ``max_order`` (1 or 2). ExtractError if
    kymatio is not installed or a parameter does not fit.

    **Source.** Bruna and Mallat, Invariant Scattering Convolution Networks, 2013, as
    implemented by kymatio. Averages of the moduli of wavelet coefficients over squares
    of ``2**J`` pixels, all kept, in the order (channel, row, column).
    """

    def __init__(self, options: Options) -> None:
        try:
            # Its own module: kymatio's front page also wants torch.
            from kymatio.scattering2d.frontend.numpy_frontend import ScatteringNumPy2D
        except ImportError as error:
            raise ExtractError(
                f"--model scattering needs kymatio, which is not installed ({error}). "
                "Run pip install 'privfeat[quickstart]'."
            ) from error
        (network,) = options.networks
        unknown = sorted(set(network.model_kwargs) - set(DEFAULTS))
        if unknown:
            raise ExtractError(
                f"--model-kwargs of scattering must be among {sorted(DEFAULTS)}, "
                f"got {unknown[0]!r}."
            )
        kwargs = {**DEFAULTS, **network.model_kwargs}
        default = 16 if options.data == "digits" else 32
        self.resize, self.crop = options.sizes(default, default)
        self.interpolation = options.interpolation or "bilinear"
        if self.interpolation not in SUPPORT:
            raise ExtractError(
                f"--interpolation of scattering must be among {sorted(SUPPORT)}, "
                f"got {self.interpolation!r}."
            )
        try:
            self._transform = ScatteringNumPy2D(shape=(self.crop, self.crop), **kwargs)
            self.n_features = self._features(np.zeros((1, self.crop, self.crop))).size
        except (ValueError, RuntimeError, TypeError, ZeroDivisionError) as error:
            raise ExtractError(
                f"--model-kwargs must fit images of {self.crop} pixels, got {kwargs}: "
                f"{error}."
            ) from error
        self.batch_size = options.batch_size or 64
        self.metadata = {
            "model": "scattering",
            "model_name": "scattering",
            "model_tag": f"kymatio {version('kymatio')}",
            "model_kwargs": kwargs,
            "weights_sha256": "",
            "weights_source": "none",
            "weights_license": network.weights_license or "none",
            "pooling": "none",
            "input_size": [1, self.crop, self.crop],
            "resize": self.resize,
            "crop": self.crop,
            "interpolation": self.interpolation,
            "mean": [0.0],
            "std": [1.0],
            "precision": "float32",
        }
        self.arguments = dict(self.metadata)
        self.device_kind: list[str] = []

    def batches(self, images: Any, *, start: int, stop: int) -> Iterator[FeatureBatch]:
        """Yield features of the images from ``start`` on, before ``stop``, in order."""
        for first in range(start, stop, self.batch_size):
            pixels, labels, failures = [], [], []
            for row in range(first, min(first + self.batch_size, stop)):
                try:
                    image, label = images.load(row)
                    pixels.append(self._pixels(image))
                    labels.append(label)
                except BadImageError as error:
                    failures.append((images.names[row], str(error)))
            rows = np.empty((0, self.n_features), np.float32)
            if pixels:
                rows = self._features(np.stack(pixels))
            yield FeatureBatch(rows, np.asarray(labels, np.int64), failures)

    def _pixels(self, image: Any) -> NDArray[np.float64]:
        """Return grey values in [0, 1] of shape (crop, crop)."""
        if not isinstance(image, np.ndarray):
            image = np.asarray(converted(image, "L"))
        grey = image.astype(np.float64) / 255.0
        height, width = grey.shape
        short = min(height, width)
        size = (self.resize * height // short, self.resize * width // short)
        if size != grey.shape:
            grey = resize_grey(grey, *size, self.interpolation)
        top, left = ((side - self.crop) // 2 for side in size)
        cut: NDArray[np.float64] = grey[top : top + self.crop, left : left + self.crop]
        return cut

    def _features(self, pixels: NDArray[np.float64]) -> NDArray[np.float32]:
        rows = self._transform(pixels.astype(np.float32))
        flat: NDArray[np.float32] = rows.reshape(len(pixels), -1).astype(np.float32)
        return flat
