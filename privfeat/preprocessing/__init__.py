"""Records as they come, made into features by public facts, or by private releases."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from privfeat.preprocessing.columns_file import draft_columns, read_columns
from privfeat.preprocessing.columns_file import plain_columns as plain_columns  # ours
from privfeat.preprocessing.public_columns import PublicColumns

if TYPE_CHECKING:
    from privfeat.preprocessing.class_counts import DPClassCounts
    from privfeat.preprocessing.pca import DPPCA
    from privfeat.preprocessing.quantiles import DPQuantiles
    from privfeat.preprocessing.standard_scaler import (
        DPStandardScaler,
        after_scaling,
    )

# They import JAX, which takes long: only when a name is first used.
_HOMES = {
    "DPPCA": "pca",
    "DPClassCounts": "class_counts",
    "DPQuantiles": "quantiles",
    "DPStandardScaler": "standard_scaler",
    "after_scaling": "standard_scaler",
}

__all__ = [
    "DPPCA",
    "DPClassCounts",
    "DPQuantiles",
    "DPStandardScaler",
    "PublicColumns",
    "after_scaling",
    "draft_columns",
    "read_columns",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
