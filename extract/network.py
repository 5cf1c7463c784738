"""Features of a frozen network, batch after batch."""

import os
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from .arguments import Options
from .backbones import load_backbone
from .batches import FeatureBatch
from .errors import ExtractError
from .loading import Batch, load_batches
from .ranks import Rank
from .transforms import ResizeCrop

DTYPES = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}


class NetworkExtractor:
    """Runs images through a timm network.

    Parameters
    ----------
    options : Options
        Of the command.
    rank : Rank
        Which GPU of the host to take, and with how many processes to share its cores.

    Attributes
    ----------
    n_features : int
        Number of features.
    metadata : dict
        How the features are made, for the feature file.
    arguments : dict
        What determines the features, for the check on resuming.

    Raises
    ------
    ExtractError
        If the device or precision is not available, or as for `load_backbone`.
    """

    def __init__(self, options: Options, rank: Rank | None = None) -> None:
        rank = rank or Rank()
        self.device = _device(options.device, rank.local)
        self.precision = _precision(options.precision, self.device)
        on_gpu = self.device.type == "cuda"
        self.batch_size = options.batch_size or (256 if on_gpu else 32)
        self.workers = (
            _default_workers(on_gpu, rank.local_count)
            if options.workers is None
            else options.workers
        )
        resize, crop = options.sizes(384, 256)
        backbone = load_backbone(
            options.model,
            pretrained=options.pretrained,
            checkpoint=options.checkpoint,
            model_kwargs=options.model_kwargs,
            crop=crop,
        )
        mean = _channels(options.mean, backbone.mean)
        std = _channels(options.std, backbone.std)
        self.transform = ResizeCrop(
            resize, crop, options.interpolation or backbone.interpolation
        )
        self.n_features = backbone.n_features
        self._layout = (
            torch.channels_last if options.channels_last else torch.contiguous_format
        )
        self._model: Any = backbone.model.to(self.device).to(memory_format=self._layout)
        if options.compile:
            self._model = torch.compile(self._model)
        # In units of pixels, and as wide as an image: a CPU would take six times as
        # long to scale three channels that lie side by side with three numbers.
        self._mean, self._std = (
            torch.tensor(values, device=self.device)
            .mul_(255.0)
            .view(1, 3, 1, 1)
            .expand(1, 3, 1, crop)
            .contiguous(memory_format=self._layout)
            for values in (mean, std)
        )
        self.metadata = {
            **backbone.metadata,
            "input_size": [3, crop, crop],
            "resize": resize,
            "crop": crop,
            "interpolation": self.transform.interpolation,
            "mean": mean,
            "std": std,
            "precision": self.precision,
        }
        if options.weights_license:
            self.metadata["weights_license"] = options.weights_license
        self.arguments = dict(self.metadata)

    def batches(
        self, images: Any, *, start: int, stop: int | None
    ) -> Iterator[FeatureBatch]:
        """Yield features of the images from ``start`` on, in order.

        Parameters
        ----------
        images : ImageList or ImageStream
            One split.
        start : int
            Images to leave out at the beginning.
        stop : int or None
            Number of the image to stop before.

        Raises
        ------
        ExtractError
            If the device has too little memory, or a worker process dies.
        """
        loaded = load_batches(
            images,
            self.transform,
            batch_size=self.batch_size,
            start=start,
            stop=stop,
            workers=self.workers,
            pin=self.device.type == "cuda",
        )
        try:
            # One batch is always in flight, so that the GPU does not wait for the disk.
            waiting: _Pending | None = None
            for batch in loaded:
                started = self._start(batch)
                if waiting is not None:
                    yield waiting.collect()
                waiting = started
            if waiting is not None:
                yield waiting.collect()
        except torch.OutOfMemoryError as error:
            raise ExtractError(
                f"--batch-size must fit into the memory of {self.device}, but "
                f"{self.batch_size} images do not. Pass a smaller one."
            ) from error
        except RuntimeError as error:
            if "DataLoader worker" not in str(error):
                raise
            raise ExtractError(
                "a process that decodes images died, perhaps for lack of memory "
                f"({str(error).splitlines()[0]}). Pass fewer --workers."
            ) from error

    @torch.inference_mode()
    def _start(self, batch: Batch) -> "_Pending":
        """Ask the device for the features of a batch, without waiting for them."""
        pixels, count = batch.pixels, len(batch.pixels)
        if count == 0:
            return _Pending(torch.empty((0, self.n_features)), batch, None)
        # Of another shape a batch is rounded otherwise, so that an image more would
        # change the features of others (and compiled code is compiled anew).
        if count < self.batch_size:
            pixels = torch.cat(
                [pixels, pixels[:1].expand(self.batch_size - count, -1, -1, -1)]
            )
        images = pixels.to(self.device, non_blocking=True)
        images = images.to(torch.float32, memory_format=self._layout)
        images = images.sub_(self._mean).div_(self._std)
        with self._autocast():
            features: torch.Tensor = self._model(images)
        features, done = features[:count].float(), None
        if self.device.type == "cuda":
            # A copy that is asked for later would wait for the next batch as well.
            features, done = features.to("cpu", non_blocking=True), torch.cuda.Event()
            done.record(torch.cuda.current_stream(self.device))
        return _Pending(features, batch, done)

    def _autocast(self) -> Any:
        if self.precision == "float32":
            return nullcontext()
        return torch.autocast(self.device.type, DTYPES[self.precision])


@dataclass(frozen=True)
class _Pending:
    """Features on their way from the device."""

    features: torch.Tensor
    batch: Batch
    done: Any  # a CUDA event, or None where there is nothing to wait for

    def collect(self) -> FeatureBatch:
        if self.done is not None:
            self.done.synchronize()
        rows = np.asarray(self.features.cpu())
        return FeatureBatch(rows, self.batch.labels, self.batch.failures)


def _device(name: str, local_rank: int) -> torch.device:
    """Return the device, and make a GPU the current one, where pinned memory is."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name.startswith("cuda") and not torch.cuda.is_available():
        raise ExtractError(
            f"--device must be available, but torch finds no GPU for {name!r}. "
            "Pass --device cpu."
        )
    try:
        device = torch.device(name)
        if device.type == "cuda":
            if device.index is None:
                device = torch.device("cuda", local_rank % torch.cuda.device_count())
            torch.cuda.set_device(device)
    except RuntimeError as error:
        raise ExtractError(
            f"--device must be auto, cpu, cuda or cuda:N, one of the "
            f"{torch.cuda.device_count()} GPUs, got {name!r}."
        ) from error
    return device


def _default_workers(on_gpu: bool, local_count: int) -> int:
    """Decode in other processes, but not where the network needs every core itself."""
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    share = cpus // local_count
    return min(8, max(share, 1)) if on_gpu else min(8, share // 4)


def _precision(name: str, device: torch.device) -> str:
    if name != "auto":
        return name
    if device.type != "cuda":
        return "float32"
    return "bfloat16" if torch.cuda.is_bf16_supported() else "float16"


def _channels(given: list[float] | None, own: tuple[float, ...]) -> list[float]:
    values = list(own) if given is None else given
    return values * 3 if len(values) == 1 else values
