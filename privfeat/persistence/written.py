"""What is written of one fitted estimator: JSON and arrays, without what stays home."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from privfeat._encoding import encode
from privfeat._types import STAYS_AT_HOME
from privfeat.persistence.model_folder import Arrays
from privfeat.persistence.saved_models import OPTIONAL, PARAMETER, fitted_of, home_of


@dataclass(frozen=True)
class Written:
    """What is written of a model or a step: its part of the document, and arrays."""

    entry: dict[str, Any]
    arrays: Arrays
    table: dict[str, Any] | None = None


def written_model(estimator: Any) -> Written:
    """Return what is written of a fitted estimator of privfeat."""
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(estimator)
    array_names, count_names = (
        [n for n in names if n not in OPTIONAL or hasattr(estimator, n)]
        for names in fitted_of(type(estimator).__name__)
    )
    arrays = {n: np.asarray(getattr(estimator, n)) for n in array_names}
    for leaf, array in getattr(estimator, "parameters_", {}).items():
        arrays[PARAMETER + leaf] = array
    entry = {
        "params": written_params(estimator),
        "fitted": {n: int(getattr(estimator, n)) for n in count_names},
        "privacy": json.loads(estimator.privacy_.to_json()),
    }
    return Written(entry, arrays)


def written_params(estimator: Any, without: frozenset[str] = frozenset()) -> Any:
    """Return the constructor parameters in written form, but what stays at home."""
    given = estimator.get_params(deep=False)
    params = {name: value for name, value in given.items() if name not in without}
    params |= {name: None for name in STAYS_AT_HOME if name in params}
    if hasattr(params.get("prior"), "coef_"):
        from privfeat.linear.parameters.prior import as_array

        params["prior"] = as_array(params["prior"], estimator)
    if isinstance(params.get("columns"), Mapping):
        from privfeat.preprocessing import plain_columns

        params["columns"] = plain_columns(params["columns"])
    return as_text({key: encode(key, value) for key, value in params.items()})


def as_text(written: dict[str, Any]) -> dict[str, Any]:
    """Return what can be written in UTF-8; else ValueError."""
    try:
        json.dumps(written, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ValueError(
            "names of classes and parameters must be text in UTF-8, got one that is "
            "not. Rename it: classes are named after folders."
        ) from None
    return written


def is_ours(estimator: Any) -> bool:
    """Return whether this is an estimator of privfeat, and no subclass of one."""
    name = type(estimator).__name__
    home = home_of(name)
    return home is not None and type(estimator) is getattr(import_module(home), name)
