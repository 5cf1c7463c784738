"""Whether a network multiplies tokens of several texts together, by what they hold."""

import re
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode


def depends_on_others(model: torch.nn.Module, run: Callable[[], object]) -> bool:
    """Return whether shapes of products in ``run`` follow from values of all texts.

    Experts get the tokens that chose them, of all texts of a batch, and some networks
    leave out what texts are filled up with: as many rows are multiplied as all texts
    have together, and rounded by it. Trials cannot tell: few numbers of rows differ. So
    an operation of the kind that PyTorch marks is enough (``dynamic_output_shape``), or
    a part of the network that is called after experts.
    """
    names = (f"{name} {type(part).__name__}" for name, part in model.named_modules())
    if any(re.search("expert|router|moe", name, re.IGNORECASE) for name in names):
        return True
    with _Watch() as watch:
        run()
    return watch.found


class _Watch(TorchDispatchMode):
    """Sees every operation, and whether the shape of a result follows from values."""

    found = False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if func._schema.name == "aten::index":
            places = [place for place in args[1] if place is not None]
            self.found |= any(p.dtype in (torch.bool, torch.uint8) for p in places)
        elif torch.Tag.dynamic_output_shape in func.tags:
            self.found = True
        self.found |= "grouped_mm" in func._schema.name
        return result
