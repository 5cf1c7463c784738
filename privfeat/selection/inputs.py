"""What a search accepts, and what it says before it runs."""

import math
from collections import deque
from collections.abc import Mapping
from typing import Any

from sklearn.base import clone, is_classifier, is_regressor
from sklearn.model_selection import ParameterSampler
from sklearn.utils.validation import (
    check_consistent_length,
    column_or_1d,
    validate_data,
)

from privfeat._messages import array_of, without_data, without_warnings
from privfeat.core.accounting.plan import ReleasePlan
from privfeat.core.callers.stateless import is_exactly
from privfeat.core.statement.privacy_statement import PrivacyStatement
from privfeat.core.statement.selection import Selection
from privfeat.data import LazyFeatures
from privfeat.data.sharing import check_apart, finite_blocks
from privfeat.estimation.fitting import check_readable
from privfeat.estimation.inputs import (
    array_of_records,
    check_labels,
    checked,
    floats_of,
)
from privfeat.estimation.names import check_names, names_of
from privfeat.estimation.plain import frame_of
from privfeat.exceptions import UnsupportedEventError

BUDGET = ("epsilon", "delta", "rho", "noise_multiplier", "accounting", "adjacency")
# What the search sets itself, or what its guarantee needs all runs to share.
RESERVED = {
    *BUDGET,
    *("arithmetic", "classes", "ledger", "max_group_size"),
    *("random_state", "sampling_prob", "verbose"),
}
# Steps that are public as they are: no candidate may have another in its place.
_DECLARED = {"privfeat": {"PublicColumns"}, "sklearn": {"FrozenEstimator"}}
# How often a fit may get no record: in 100 fits less often than any delta.
_RARELY = 1e-12
# How a first step reads texts: another way may refuse one of them.
_READING = {"encoding", "decode_error", "input", "input_type"}
# What a search assumes of public parameters, where a candidate has them.
_ASSUMED = {
    "prior": "that priors were made without the records",
    "public": "the public rows, which the guarantee does not cover, and that they hold "
    "no record of the fits",
}


def check_estimator(estimator: Any) -> None:
    """Raise TypeError unless a private classifier can be given a budget by ``rho``."""
    params = _params_of(estimator)
    needed = {*BUDGET, classes_name(estimator)} - {"noise_multiplier"}
    if not needed <= set(params) or not is_classifier(estimator):
        pipeline = (
            " Pass PrivatePipeline(steps)." if hasattr(estimator, "steps") else ""
        )
        raise TypeError(
            "estimator must be a private classifier with the parameters "
            f"{', '.join(BUDGET)} and classes, got {type(estimator).__name__}."
            f"{pipeline}"
        )
    _check_free(estimator, params)


def check_validated(estimator: Any) -> None:
    """Raise TypeError unless it is a private classifier, or regressor, for folds."""
    params = _params_of(estimator)
    private = {*BUDGET} - {"noise_multiplier"} <= set(params)
    if not (private and is_regressor(estimator)):
        check_estimator(estimator)
    _check_free(estimator, params)


def _params_of(estimator: Any) -> dict[str, Any]:
    is_object = hasattr(estimator, "get_params") and not isinstance(estimator, type)
    return dict(estimator.get_params()) if is_object else {}


def _check_free(estimator: Any, params: Mapping[str, Any]) -> None:
    """Raise unless ledger and users are left to what fits it several times."""
    if params.get("ledger") is not None:
        raise ValueError(
            "ledger must be None in the estimator of a search, which is charged as a "
            "whole, got a ledger. Pass it to the search."
        )
    if params.get("max_group_size") is not None:
        raise UnsupportedEventError(
            "max_group_size must be None in the estimator of a search, which protects "
            f"records, not users, got {estimator.max_group_size!r}. To "
            "private_cross_val_score pass it with groups."
        )


def classes_name(estimator: Any) -> str:
    """Return the parameter of the classes: in a pipeline that of its last step."""
    named = getattr(estimator, "steps", None)
    return f"{named[-1][0]}__classes" if named else "classes"


def reads_by_itself(estimator: Any) -> bool:
    """Return whether it is a pipeline whose first step is public, and reads rows."""
    return bool(getattr(estimator, "first_step_reads", False))


def budget_of(rho: float) -> dict[str, Any]:
    """Return a budget as parameters; an infinite one is no privacy."""
    if math.isfinite(rho):
        return {"epsilon": None, "rho": rho}
    return {"epsilon": math.inf, "rho": None}


def budgeted(estimator: Any, shared: Mapping[str, Any], **budget: Any) -> Any:
    """Return a clone with a budget, and with what is the same in every fit: classes."""
    params = {
        **{"noise_multiplier": None, "random_state": None, **budget},
        "verbose": 0,  # a progress bar for each fit would show their number
    }
    known = estimator.get_params(deep=False)
    mine = {name: value for name, value in params.items() if name in known}
    return clone(estimator).set_params(**mine, **shared)


def read_records(search: Any, X: Any, y: Any) -> tuple[Any, Any]:
    """Return records and labels, checked as far as a fit checks before it is charged.

    Rows that a mask chooses from: an array, or a table for a pipeline that reads it.
    """
    check_labels(y, X)
    y = array_of(y) if isinstance(y, list | tuple) else y  # none makes texts of all
    if not reads_by_itself(search.estimator):
        found: tuple[Any, Any] = checked(
            validate_data, search, in_memory(X), y, dtype=floats_of(X)
        )
        return found
    X = frame_of(X)  # rows are chosen from it
    rows = X if hasattr(X, "iloc") else array_of_records(in_memory(X))
    search.estimator.check_records(rows)
    without_data(validate_data, search, X, skip_check_array=True)
    labels = checked(column_or_1d, y)
    without_data(check_consistent_length, rows, labels)
    return rows, labels


def in_memory(X: Any) -> Any:
    """Return the rows of a feature file; others as they are."""
    return X[:] if isinstance(X, LazyFeatures) else X


def check_candidates(candidates: Any, estimator: Any) -> None:
    """Raise unless candidates can be drawn, and leave the budget alone."""
    listed = [candidates] if isinstance(candidates, Mapping) else candidates
    if not isinstance(listed, list | tuple) or not all(
        isinstance(one, Mapping) for one in listed
    ):
        raise TypeError(
            "param_distributions must be a mapping or a list of mappings, got "
            f"{type(candidates).__name__}."
        )
    drawn = [values for one in listed for values in one.values()]
    if not listed or any(hasattr(each, "__len__") and not len(each) for each in drawn):
        raise ValueError("param_distributions must hold values to draw, got none.")
    names = {name for one in listed for name in one}
    params = estimator.get_params()
    steps = dict(getattr(estimator, "steps", ()))
    # their columns, and what is in them, refuse records that another candidate takes
    fixed = [name for name, step in steps.items() if is_exactly(step, _DECLARED)]
    whole = {"steps", *steps, *(n for n in params if n.partition("__")[0] in fixed)}
    reserved = RESERVED | _READING
    known = {n for n in params if n.rpartition("__")[2] not in reserved} - whole
    if not names <= known:
        raise ValueError(
            f"param_distributions must hold parameters among {sorted(known)}, got "
            f"{sorted(names - known)}."
        )
    ParameterSampler(candidates, 1)  # raises TypeError for what it cannot draw from


def check_public(candidates: Any, estimator: Any, X: Any) -> None:
    """Raise ValueError if public rows are the records, or are not finite.

    Or if what has a number for each column has them in another order than ``X``, of
    which fits get an array. A pipeline whose first step reads tables gets its names.
    """
    names = [] if reads_by_itself(estimator) else without_data(names_of, X)
    for param in ("bounds", "center", "prior", "public"):
        for value in _known(candidates, estimator, param):
            check_names({param: value}, names)
    for public in _known(candidates, estimator, "public"):
        if not hasattr(public, "rvs"):
            check_apart(public, X)
            deque(finite_blocks(public), maxlen=0)


def checked_plan(estimator: Any, X: Any, y: Any, n_features: int) -> ReleasePlan:
    """Return the plan of a fit; raise what it would refuse before it is charged."""
    with without_warnings():  # a fit warns again
        check_readable(estimator)
        plan: ReleasePlan = estimator.planned(n_features)
        estimator.check_targets(X, y, n_features)
    return plan


def assumed(candidates: Any, estimator: Any) -> list[str]:
    """Return what is assumed of public parameters, and of steps declared public."""
    facts = [fact for n, fact in _ASSUMED.items() if _known(candidates, estimator, n)]
    return facts + declared_steps(estimator)


def _known(candidates: Any, estimator: Any, name: str) -> list[Any]:
    """Return what an estimator, or a step, may have of a parameter, but for None."""
    steps = getattr(estimator, "steps", None)
    keys = [f"{step}__{name}" for step, _ in steps] if steps else [name]
    params = estimator.get_params(deep=bool(steps))
    found = [params.get(key) for key in keys]
    for one in [candidates] if isinstance(candidates, Mapping) else candidates:
        for values in (one[key] for key in keys if key in one):
            found += [values] if hasattr(values, "rvs") else values
    return [value for value in found if value is not None]


def declared_steps(estimator: Any) -> list[str]:
    """Return what a pipeline assumes of steps that its user declared public."""
    return [
        f"{name}: that it was fitted without the records, or for a charge of its own, "
        "and keeps nothing of a record for the next"
        for name, step in getattr(estimator, "steps", ())
        if type(step).__module__.startswith("sklearn.frozen")
    ]


def fewest_records(left_out: float) -> int:
    """Return how many records, or users, must be there, lest a fit get none of them.

    ``left_out`` is the probability of each not to be trained on.

    >>> fewest_records(1 / 2), fewest_records(1 / 5)
    (40, 18)
    """
    return math.ceil(math.log(_RARELY) / math.log(left_out))


def check_trained_on(n_records: int, fewest: int) -> None:
    """Refuse, before a search is charged, records that its coins may all hold out."""
    if n_records < fewest:
        raise ValueError(
            f"X must have at least {fewest} records, so that not all are held out, got "
            "fewer. Pass a smaller validation_fraction, or public validation data."
        )


def statement_of(
    selection: Selection,
    estimator: Any,
    *,
    epsilon: float,
    delta: float,
    features: str,
    seeded: bool,
    candidates: Any,
    fewest: int,
) -> PrivacyStatement:
    """Return the statement of a search that has not released anything yet."""
    given = estimator.get_params()[classes_name(estimator)]
    source = "read from y" if given is None else "given"
    public = [
        features,
        f"the set of classes ({source})",
        "the candidates, and all constructor parameters but random_state",
        "that all values are finite and all labels are among the classes",
    ]
    public += assumed(candidates, estimator)
    if estimator.adjacency == "replace_one":
        public.append("the number of records")
    if selection.scored_on == "public":
        public.append("the validation data, which has no protection")
    else:
        public.append(f"that there are at least {fewest} records")
    return PrivacyStatement(
        epsilon=float(epsilon),
        delta=float(delta),
        rho=None,
        mu=None,
        adjacency=estimator.adjacency,
        accounting="selection",
        releases=(),
        public=tuple(public),
        seeded=seeded,
        selection=selection,
        arithmetic=getattr(estimator, "arithmetic", "float64"),
    )
