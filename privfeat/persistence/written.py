"""What is written of one fitted estimator: JSON and arrays, without seed or ledger.

And what a folder says beside the model: names of classes, features and columns.
"""

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from privfeat._encoding import encode
from privfeat._types import STAYS_AT_HOME
from privfeat.persistence.model_folder import Arrays
from privfeat.persistence.saved_models import OPTIONAL, PARAMETER, fitted_of, home_of

if TYPE_CHECKING:
    from privfeat.core.statement.privacy_statement import PrivacyStatement

# What a statement of a fit on a table assumes beside what others do.
DECLARED = (
    "the declaration of the columns: their names and kinds, bounds, categories, and "
    "what missing values become"
)


@dataclass(frozen=True)
class Described:
    """What `load` found beside a model, as its attribute ``described_``.

    It is of one fit, whose statement it holds: after another one `save` forgets it.
    """

    fit: "PrivacyStatement"
    class_names: list[str] | None
    features: Mapping[str, Any] | None
    table: Mapping[str, Any] | None


def describe(estimator: Any, document: Mapping[str, Any]) -> None:
    """Give an estimator what the document that it was read from says beside it."""
    names = (document["class_names"], document.get("features"), document.get("table"))
    if any(name is not None for name in names):
        estimator.described_ = Described(statement_of(estimator), *names)


def described(estimator: Any) -> Described | None:
    """Return what is known of an estimator that was loaded, if it is still that fit."""
    found = getattr(estimator, "described_", None)
    return found if found and found.fit is statement_of(estimator) else None


def statement_of(estimator: Any) -> Any:
    """Return the statement of an estimator, or of the step of a pipeline that has one.

    None if there is none.
    """
    steps = (step for _, step in getattr(estimator, "steps", ()))
    found = (getattr(part, "privacy_", None) for part in (estimator, *steps))
    return next((one for one in found if one is not None), None)


@dataclass(frozen=True)
class Written:
    """What is written of a model or a step: its part of the document, and arrays."""

    entry: dict[str, Any]
    arrays: Arrays
    table: dict[str, Any] | None = None

    def of_table(self) -> "Written":
        """Return the same, with statements that take its declaration as public."""
        entry = copy.deepcopy(self.entry)
        for part in (entry, *entry.get("steps", ())):
            if "privacy" in part:
                others = [one for one in part["privacy"]["public"] if one != DECLARED]
                part["privacy"]["public"] = [*others, DECLARED]
        return replace(self, entry=entry)


def written_model(estimator: Any) -> Written:
    """Return what is written of a fitted estimator of privfeat."""
    from sklearn.utils.validation import check_is_fitted

    name = type(estimator).__name__
    array_names, count_names = (
        [n for n in names if n not in OPTIONAL or hasattr(estimator, n)]
        for names in fitted_of(name)
    )
    # all of them: a fit that was broken off leaves some
    network = ["parameters_"] if home_of(name) == "privfeat.networks" else []
    check_is_fitted(estimator, ["privacy_", *array_names, *count_names, *network])
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
    """Return the parameters of the fit in written form, but what stays at home."""
    from privfeat.estimation.bases import params_of_fit

    # a network may be told later how to predict, as by n_votes
    network = hasattr(estimator, "parameters_")
    given = estimator.get_params(deep=False) if network else params_of_fit(estimator)
    params = {name: value for name, value in given.items() if name not in without}
    params |= {name: None for name in STAYS_AT_HOME if name in params}
    if hasattr(params.get("prior"), "coef_"):
        from privfeat.linear.parameters import prior

        params["prior"] = (
            prior.as_array(params["prior"], estimator)
            if hasattr(estimator, "classes_")
            else prior.regression_prior_as_array(params["prior"])
        )
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
    return is_from(home_of(type(estimator).__name__), estimator)


def is_from(home: str | None, estimator: Any) -> bool:
    """Return whether its class is that which a package has by this name."""
    name = type(estimator).__name__
    return home is not None and type(estimator) is getattr(import_module(home), name)
