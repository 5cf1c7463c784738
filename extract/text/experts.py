"""Whether a network computes one text by what others of its batch hold."""

import re
from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

# Functions whose result has a shape that follows from values, or that hand values to
# Python, which may make shapes of them.
_BY_VALUES = frozenset(
    {"argwhere", "bincount", "histc", "item", "masked_select", "nonzero"}
    | {"repeat_interleave", "tolist", "unique", "unique_consecutive"}
)


def depends_on_others(model: torch.nn.Module, run: Callable[[], object]) -> bool:
    """Return whether a text may be computed in ``run`` by what other texts hold.

    Experts get the tokens that chose them, of all texts of a batch, and some networks
    leave out what texts are filled up with: as many rows are multiplied as all texts
    have together, and rounded by it. Others make one number of all texts, as T5 asks
    whether a value anywhere is infinite, and then bounds all. Trials cannot tell: few
    numbers of rows differ, and few values are so large. So one function of that kind is
    enough, or a part that is called after experts.
    """
    names = (f"{name} {type(part).__name__}" for name, part in model.named_modules())
    if any(re.search("expert|router|moe", name, re.IGNORECASE) for name in names):
        return True
    with _Watch() as watch:
        run()
    return watch.found


class _Watch(TorchFunctionMode):
    """Sees every function of PyTorch, and whether one follows from values."""

    found = False

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        name = getattr(func, "__name__", "")
        self.found |= name in _BY_VALUES or "grouped_mm" in name
        self.found |= name == "where" and len(args) + len(kwargs or {}) == 1
        if name == "__getitem__":
            places = args[1] if isinstance(args[1], tuple) else (args[1],)
            self.found |= any(map(_is_mask, places))
        made = func(*args, **(kwargs or {}))
        self.found |= _is_of_all(made, [*args, *(kwargs or {}).values()])
        return made


def _is_of_all(made: Any, given: list[Any]) -> bool:
    """Return whether one number was made of values of several texts.

    Not of a mask of fillers: it has a place for each token, whatever a text holds.
    """
    if not isinstance(made, torch.Tensor) or made.numel() != 1:
        return False
    many = [
        each
        for each in given
        if isinstance(each, torch.Tensor) and each.ndim and len(each) > 1
        if not isinstance(each, torch.nn.Parameter)
    ]
    return any(each.is_floating_point() or each.ndim > 2 for each in many)


def _is_mask(place: Any) -> bool:
    masks = (torch.bool, torch.uint8)
    return isinstance(place, torch.Tensor) and place.dtype in masks
