"""Whether a search of scikit-learn charges the fits of all its candidates, or none."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from privfeat.core.callers.stack import callers
from privfeat.core.callers.stateless import is_exactly

_FROZEN = {"sklearn": {"FrozenEstimator"}}


def fits_of(names: Mapping[str, Any]) -> tuple[Any, list[Mapping[str, Any]], bool]:
    """Return what a function of scikit-learn fits in folds, by its local names.

    The estimator, its candidates, and whether the best is fitted to all records.
    """
    search, candidates = names.get("self"), names.get("candidate_params")
    if candidates is not None and search is not None:
        return search.estimator, list(candidates), search.refit is not False
    if "param_range" in names:  # of validation_curve
        name = str(names.get("param_name"))
        candidates = [{name: value} for value in names["param_range"]]
    return names.get("estimator"), candidates or [{}], False


def copies_of(estimator: Any, candidates: Iterable[Mapping[str, Any]]) -> Iterator[Any]:
    """Yield what each candidate makes of an estimator, unfitted."""
    from sklearn.base import clone

    for values in candidates:
        changed = {name: clone(value, safe=False) for name, value in values.items()}
        yield clone(estimator).set_params(**changed)


def are_charged(estimator: Any, candidates: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether the fits of all candidates are charged; False if none is.

    ValueError if some are: those of the others would not be, and the best of all may be
    one of them. What a candidate is made of is asked, not what it changes: it may be an
    estimator, or a pipeline, with a ledger of its own.
    """
    candidates = list(candidates)
    given = [item for values in candidates for item in values.items()]
    if not (_has_ledger(estimator) or any(_gives_ledger(*item) for item in given)):
        return False  # without a copy of each, as every fit in older folds asks
    found = {_has_ledger(copy) for copy in copies_of(estimator, candidates)}
    if len(found) > 1:
        raise ValueError(
            "all candidates of a search must have the ledger, or none, got some "
            "without: their fits would not be charged. Nothing was charged."
        )
    return found == {True}


def check_candidates_around() -> None:
    """Raise ValueError if a search around this fit charges some candidates only.

    For folds that were drawn before: they did not see who fits in them. Fits without a
    ledger ask as well, else the search would go on with those alone.
    """
    for caller in callers("sklearn"):
        names = caller.frame.f_locals
        if "candidate_params" in names or "param_range" in names:
            are_charged(*fits_of(names)[:2])


def _gives_ledger(name: str, value: Any) -> bool:
    """Return whether a parameter is a ledger, or a part that has one."""
    is_one = name.rpartition("__")[2] == "ledger" and value is not None
    return is_one or _has_ledger(value)


def _has_ledger(part: Any) -> bool:
    """Return whether a part that would be fitted, or one within it, has a ledger."""
    if isinstance(part, list | tuple):  # steps, by their names
        return any(map(_has_ledger, part))
    if not hasattr(part, "get_params") or isinstance(part, type):
        return False
    if is_exactly(part, _FROZEN):
        return False
    params = part.get_params(deep=False)
    return any(_gives_ledger(*item) for item in params.items())
