"""Decode images in worker processes and hand them on in batches."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import DataLoader, Dataset

from privfeat.data.pixels import BadImageError

from .errors import ExtractError


@dataclass
class Batch:
    """Some consecutive images of a split."""

    # bytes of those that could be decoded, (n_crops, m, 3, h, w), channels last
    pixels: torch.Tensor
    labels: NDArray[np.int64]
    # name and reason of each image that could not be decoded
    failures: list[tuple[str, str]] = field(default_factory=list)

    def pin_memory(self) -> "Batch":
        """Lock the pixels in memory for a fast copy to the GPU; torch calls this."""
        self.pixels = self.pixels.pin_memory()
        return self


class _Batches(Dataset[Batch]):
    """Batch ``i`` of a list, built as a whole inside one worker."""

    def __init__(self, images: Any, transform: Callable[[Any], Any]) -> None:
        self.images, self.transform = images, transform

    def __getitem__(self, rows: Sequence[int]) -> Batch:
        pixels, labels, failures = [], [], []
        for row in rows:
            try:
                image, label = self.images.load(row)
                pixels.append(self.transform(image))
                labels.append(label)
            except BadImageError as error:
                failures.append((self.images.names[row], str(error)))
        return _stack(pixels, labels, failures)


def load_batches(
    images: Any,
    transform: Callable[[Any], NDArray[np.uint8]],
    *,
    batch_size: int,
    start: int,
    stop: int,
    workers: int,
    pin: bool,
) -> Iterator[Batch]:
    """Return the images from ``start`` on, before ``stop``, in order, in batches.

    ``images`` is an ImageList. ``transform``, which must be picklable, makes of an
    image bytes of shape (n_crops, h, w, 3). ``workers`` processes decode; 0 decodes in
    this one. ``pin`` locks batches in memory for the GPU. ExtractError for a label that
    is no class.
    """
    options: dict[str, Any] = {"batch_size": None, "pin_memory": pin}
    options["sampler"] = [
        range(first, min(first + batch_size, stop))
        for first in range(start, stop, batch_size)
    ]
    workers = min(workers, len(options["sampler"]))
    if workers:
        options["prefetch_factor"] = 4
    dataset = _Batches(images, transform)
    try:
        yield from DataLoader(dataset, num_workers=workers, **options)
    except ExtractError as error:  # of a worker it comes with its whole traceback
        raise ExtractError(str(error).rpartition("ExtractError: ")[2].strip()) from None


def _stack(
    pixels: list[Any], labels: list[int], failures: list[tuple[str, str]]
) -> Batch:
    nothing = np.empty((1, 0, 1, 1, 3), np.uint8)
    stacked = np.stack(pixels, axis=1) if pixels else nothing
    # In memory the channels stay last, as Pillow gives them and most GPUs want them.
    tensor = torch.from_numpy(stacked).permute(0, 1, 4, 2, 3)
    return Batch(tensor, np.asarray(labels, np.int64), failures)
