"""Features of several layers of one network."""

from collections.abc import Sequence
from typing import Any

import torch
from timm.layers import SelectAdaptivePool2d

from .errors import ExtractError
from .values import OUTPUT

POOLS = ("avg", "max", "avgmax", "catavgmax")  # of a stage


class Layers(torch.nn.Module):
    """A network that gives one array of features for each of some layers.

    ``model`` is a timm model without classifier. ``layers`` are numbers of stages, as
    timm's ``forward_intermediates`` counts them, from 0 or, if negative, from the end;
    ``"output"`` is what the model gives by itself. ``pool`` says how the maps of a
    stage become one row; the model pools its own output.

    ``stages`` are their numbers from 0, ascending, and ``names`` the layers in the
    order of their features: stages, then the output. ExtractError if the model has no
    such stage, or does not give stages.

    The default is what a model gives by itself: not every model gives its stages, and
    each adds columns to the file. On 2,500 images of CIFAR-10 the last stage beside the
    output gained 2 to 4.5 points at epsilon 1 and 1.5 to 3.6 at 8; another pooling than
    the model's changed less than the errors tell in all cells but one
    (``benchmarks/RESULTS.md``, *Views of an image*).
    """

    def __init__(
        self, model: torch.nn.Module, layers: Sequence[int | str], pool: str
    ) -> None:
        super().__init__()
        self.model = model
        numbers = [layer for layer in layers if isinstance(layer, int)]
        self.with_output = OUTPUT in layers
        self.stages = _from_zero(model, numbers) if numbers else []
        self.names = [*self.stages, *([OUTPUT] if self.with_output else [])]
        if self.stages and pool not in POOLS:
            raise ExtractError(
                f"--pool must be one of {', '.join(POOLS)} beside --layers, got "
                f"{pool!r}."
            )
        self.pool: Any = SelectAdaptivePool2d(pool_type=pool, flatten=True)

    def forward(self, images: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return one array of shape (m, n_features of the layer) for each layer."""
        if not self.stages:
            return (self.model(images),)
        model: Any = self.model
        last, maps = model.forward_intermediates(images, indices=self.stages)
        rows = [self.pool(found) for found in maps]
        return (*rows, *([model.forward_head(last)] if self.with_output else []))


def _from_zero(model: Any, numbers: Sequence[int]) -> list[int]:
    """Return the numbers of stages, counted from the first, in ascending order."""
    known = len(getattr(model, "feature_info", ()))
    if not known or not hasattr(model, "forward_intermediates"):
        raise ExtractError(
            f"--layers must be {OUTPUT!r} for a model that does not give its stages, "
            f"got {list(numbers)}."
        )
    for number in numbers:
        if not -known <= number < known:
            raise ExtractError(
                f"--layers must be in [{-known}, {known - 1}] for this model, got "
                f"{number}."
            )
    return sorted({number % known for number in numbers})
