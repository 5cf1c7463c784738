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
    search = names.get("self")
    candidates = names.get("candidate_params", names.get("all_candidate_params"))
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


def are_charged(names: Mapping[str, Any]) -> bool:
    """Return whether the fits of all candidates are charged; False if none is to be.

    ``names`` are those of a function of scikit-learn. ValueError if there is a ledger,
    in the estimator or among what its parameters may be, and a candidate is fitted
    without: the best of all may be that one. What a candidate is made of is asked, not
    what it changes: it may be a whole estimator, in the place of the one that has it.
    """
    estimator, candidates, _ = fits_of(names)
    kinds = ("param_grid", "param_distributions")
    named = [getattr(names.get("self"), kind, None) for kind in kinds]
    if not _has_ledger([estimator, candidates, named]):
        return False  # without a copy of each, as every fit in older folds asks
    if not all(map(_has_ledger, copies_of(estimator, candidates))):
        raise ValueError(
            "all candidates of a search must have the ledger, or none, got some "
            "without: their fits would not be charged. Nothing was charged."
        )
    return True


def check_candidates_around(*, in_folds: bool) -> None:
    """Raise ValueError if a search around this fit has candidates without its ledger.

    Also one around that search. Before its last fit, to all records; and ``in_folds``
    that were drawn before, which did not see who fits in them. Fits without a ledger
    ask as well, else the search would go on with those alone.
    """
    trying = set()  # searches: not after their last candidate
    for caller in callers("sklearn"):
        names = caller.frame.f_locals
        if "candidate_params" in names or "param_range" in names:
            trying.add(id(names.get("self")))
            if in_folds:
                are_charged(names)
        elif "all_candidate_params" in names and id(names.get("self")) not in trying:
            are_charged(names)


def _has_ledger(part: Any) -> bool:
    """Return whether it is a ledger, or holds one by which a fit would be charged."""
    if isinstance(part, Mapping):
        part = list(part.values())
    if isinstance(part, list | tuple):  # steps, by their names, and values to try
        return any(map(_has_ledger, part))
    if is_exactly(part, _FROZEN):
        return False
    if hasattr(part, "get_params") and not isinstance(part, type):
        return _has_ledger(part.get_params(deep=False))
    return any(kind.__name__ == "PrivacyLedger" for kind in type(part).__mro__)
