"""Resize grey images with NumPy alone, in the way of Pillow."""

import numpy as np
from numpy.typing import NDArray

SUPPORT = {"box": 0.5, "bilinear": 1.0, "bicubic": 2.0}


def resize_grey(
    image: NDArray[np.float64], height: int, width: int, interpolation: str
) -> NDArray[np.float64]:
    """Resample one image; when it shrinks, the filter widens (no aliasing).

    Bicubic values may overshoot a little.
    """
    rows = _weights(image.shape[0], height, interpolation)
    columns = _weights(image.shape[1], width, interpolation)
    resized: NDArray[np.float64] = rows @ image @ columns.T
    return resized


def _weights(old: int, new: int, interpolation: str) -> NDArray[np.float64]:
    """Return the (new, old) matrix of filter weights; each row sums to one."""
    scale = old / new
    stretch = max(scale, 1.0)
    centre = (np.arange(new) + 0.5) * scale
    distance = (np.arange(old) + 0.5 - centre[:, None]) / stretch
    weights = _kernel(np.abs(distance), interpolation)
    normalized: NDArray[np.float64] = weights / weights.sum(axis=1, keepdims=True)
    return normalized


def _kernel(x: NDArray[np.float64], interpolation: str) -> NDArray[np.float64]:
    if interpolation == "box":
        return (x <= SUPPORT["box"]).astype(np.float64)
    if interpolation == "bilinear":
        return np.maximum(0.0, 1.0 - x)
    near = (1.5 * x - 2.5) * x * x + 1.0  # cubic convolution with a = -0.5
    far = ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0
    return np.where(x < 1.0, near, np.where(x < SUPPORT["bicubic"], far, 0.0))
