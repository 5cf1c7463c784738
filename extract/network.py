"""Features of a frozen network, batch after batch."""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from .arguments import Options
from .backbones import Backbone, load_backbone
from .batches import FeatureBatch
from .devices import default_workers, find_device, find_precision, kind_of
from .errors import ExtractError
from .loading import Batch, load_batches
from .ranks import Rank
from .slots import find_batch_size
from .views import VIEWS, crops_of

DTYPES = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}


class NetworkExtractor:
    """Runs images through a timm network, on the GPU that the rank says.

    ``metadata`` says in the feature file how the features are made, and ``arguments``
    is what determines them, for the check on resuming. ExtractError if the device or
    precision is not available, or as for `load_backbone`.
    """

    def __init__(self, options: Options, rank: Rank | None = None) -> None:
        rank = rank or Rank()
        self.device = find_device(options.device, rank.local)
        self.precision = find_precision(options.precision, self.device)
        on_gpu = self.device.type == "cuda"
        self.batch_size = options.batch_size or (256 if on_gpu else 32)
        self.workers = (
            default_workers(on_gpu, rank.local_count)
            if options.workers is None
            else options.workers
        )
        resize, crop = options.sizes(384, 256)
        backbones = [load_backbone(network, crop) for network in options.networks]
        views = VIEWS[: options.views]
        interpolation = options.interpolation or _one_interpolation(backbones)
        self.transform, self._views = crops_of(views, resize, crop, interpolation)
        self.n_features = sum(backbone.n_features for backbone in backbones)
        self._layout = (
            torch.channels_last if options.channels_last else torch.contiguous_format
        )
        self._networks = [self._prepared(b, options.compile) for b in backbones]
        self.metadata = {
            **_side_by_side([backbone.metadata for backbone in backbones]),
            "input_size": [3, crop, crop],
            "resize": resize,
            "crop": crop,
            "interpolation": interpolation,
            "precision": self.precision,
            # Left out of a single view, so that files of earlier releases go on.
            **({"views": [str(view) for view in views]} if len(views) > 1 else {}),
        }
        self.arguments = dict(self.metadata)
        self.batch_size = find_batch_size(self._tried, self.batch_size)
        flags = f"{self._layout} compile={options.compile} {self.batch_size}"
        self.device_kind = [*kind_of(self.device), flags]

    def _prepared(self, backbone: Backbone, compiled: bool) -> "_Network":
        """Move a network to the device, with the numbers that scale its pixels."""
        model: Any = backbone.model.to(self.device).to(memory_format=self._layout)
        # In units of pixels, and as wide as an image: a CPU would take six times as
        # long to scale three channels that lie side by side with three numbers.
        mean, std = (
            torch.tensor(backbone.metadata[name], device=self.device)
            .mul_(255.0)
            .view(1, 3, 1, 1)
            .expand(1, 3, 1, self.transform.crops[0].crop)
            .contiguous(memory_format=self._layout)
            for name in ("mean", "std")
        )
        return _Network(torch.compile(model) if compiled else model, mean, std)

    def batches(self, images: Any, *, start: int, stop: int) -> Iterator[FeatureBatch]:
        """Yield features of the images from ``start`` on, before ``stop``, in order.

        ExtractError if the device has too little memory, or a worker process dies.
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
    def _tried(self, order: NDArray[np.intp]) -> NDArray[np.float32]:
        """Return the features of images of noise, as `find_batch_size` asks."""
        crops = self.transform.crops
        shape = (len(crops), 3, crops[0].crop, crops[0].crop)
        draws = (np.random.default_rng(number) for number in order)
        noise = [draw.integers(0, 256, shape, np.uint8) for draw in draws]
        pixels = torch.from_numpy(np.stack(noise, axis=1))
        return np.asarray(self._mean_over_views([*pixels.to(self.device)]).cpu())

    @torch.inference_mode()
    def _start(self, batch: Batch) -> "_Pending":
        """Ask the device for the features of a batch, without waiting for them."""
        pixels, count = batch.pixels, batch.pixels.shape[1]
        if count == 0:
            return _Pending(torch.empty((0, self.n_features)), batch, None)
        # Of another shape a batch is rounded otherwise, so that an image more would
        # change the features of others (and compiled code is compiled anew).
        if count < self.batch_size:
            filler = pixels[:, :1].expand(-1, self.batch_size - count, -1, -1, -1)
            pixels = torch.cat([pixels, filler], dim=1)
        crops = [crop.to(self.device, non_blocking=True) for crop in pixels]
        features, done = self._mean_over_views(crops)[:count], None
        if self.device.type == "cuda":
            # A copy that is asked for later would wait for the next batch as well.
            features, done = features.to("cpu", non_blocking=True), torch.cuda.Event()
            done.record(torch.cuda.current_stream(self.device))
        return _Pending(features, batch, done)

    def _mean_over_views(self, crops: list[torch.Tensor]) -> torch.Tensor:
        """Return one row for each image, its parts side by side.

        A part is what one layer of one network gives, its mean over the views. Several
        are scaled to norm one each, so that none outweighs the others.
        """
        sums: list[torch.Tensor] = []
        for number, mirrored in self._views:
            pixels = crops[number].flip(3) if mirrored else crops[number]
            parts = [part for net in self._networks for part in self._run(net, pixels)]
            sums = [a + b for a, b in zip(sums, parts, strict=True)] if sums else parts
        means = [part / len(self._views) for part in sums]
        if len(means) > 1:
            means = [torch.nn.functional.normalize(part) for part in means]
        return torch.cat(means, dim=1)

    def _run(self, network: "_Network", pixels: torch.Tensor) -> list[torch.Tensor]:
        """Return the features of each layer in float32."""
        images = pixels.to(torch.float32, memory_format=self._layout)
        images = images.sub_(network.mean).div_(network.std)
        with self._autocast():
            return [part.float() for part in network.model(images)]

    def _autocast(self) -> Any:
        if self.precision == "float32":
            return nullcontext()
        return torch.autocast(self.device.type, DTYPES[self.precision])


class _Network(NamedTuple):
    """A network on its device, and the mean and spread of its pixels there."""

    model: Any
    mean: torch.Tensor
    std: torch.Tensor


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


def _one_interpolation(backbones: Sequence[Backbone]) -> str:
    """Return how all networks want images resized."""
    first, *others = sorted({backbone.interpolation for backbone in backbones})
    if others:
        raise ExtractError(
            f"--interpolation must be one for all --model, but they want {first} and "
            f"{others[0]}. Pass --interpolation."
        )
    return first


def _side_by_side(of_networks: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return what is known of the networks; of several, a list under each name."""
    if len(of_networks) == 1:
        return dict(of_networks[0])
    names = {name: None for one in of_networks for name in one}
    return {name: [one.get(name) for one in of_networks] for name in names}
