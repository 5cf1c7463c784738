"""Check a search of scikit-learn with a ledger before the first of its fits.

scikit-learn asks for all folds before it fits in the first, and charges one by one:
what a later fit would meet costs the charges of those before. So the folds look at
who asked for them, and refuse what cannot be paid (`affordable`), what a fit would
refuse, and what cannot be scored (`rehearsal`).
"""

from collections.abc import Mapping
from typing import Any

from privfeat._warnings import warn
from privfeat.core.callers.folds import SCORES
from privfeat.core.callers.stack import callers
from privfeat.selection.affordable import check_affordable
from privfeat.selection.rehearsal import (
    check_all_charged,
    has_ledger,
    rehearse,
    try_scorer,
)

_USERS = (
    "groups of a search must reach its fits to protect users, got groups that repeat, "
    "for the folds alone: each record is protected on its own there. Pass "
    "max_group_size, and call sklearn.set_config(enable_metadata_routing=True) and "
    "set_fit_request(groups=True) of the estimator."
)


def look_ahead(n_splits: int, *, repeated: bool, empty: bool) -> None:
    """Raise what a search that asked for folds would meet after its first charge.

    And warn of what the charges do not cover. Nothing is done where no function of
    scikit-learn that fits in folds has called.

    Parameters
    ----------
    n_splits : int
    repeated : bool
        Whether two records share an id, as those of a user.
    empty : bool
        Whether a fold has no record.

    Raises
    ------
    ValueError
        If a fold of a search that is charged is empty, a candidate has no ledger, or
        its scorer cannot score.
    BudgetExceededError
        If the ledger cannot pay for all fits.
    Exception
        What a fit of all records would refuse of them.
    """
    asking = (caller.frame.f_locals for caller in callers("sklearn"))
    names = next((names for names in asking if "routed_params" in names), None)
    if names is None:
        return
    fit_params = names["routed_params"].estimator.fit
    estimator, candidates, refit = _fits_of(names)
    charged = has_ledger(estimator, candidates)
    if empty and charged:
        raise ValueError(
            "every fold must have a record in a search that is charged, got an "
            "empty one. Pass fewer n_splits, or split once more, with another key. "
            "Nothing was charged."
        )
    if charged:
        check_all_charged(estimator, candidates)
    check_affordable(estimator, candidates, n_splits, refit=refit)
    around = names if "error_score" in names else vars(names.get("self", object))
    every = around.get("error_score", "raise") == "raise"
    data = names.get("X"), names.get("y")
    rehearse(estimator, candidates, *data, fit_params, every=every)
    if charged:
        try_scorer(estimator, names)
    of = (
        f", in the folds of HashKFold({n_splits}) neither: a ledger counts the fits "
        f"alone, {n_splits} of each candidate"
    )
    warn(f"{SCORES.format(of=of)}; search_cost says what the fits cost.")
    if repeated and "groups" not in fit_params:
        warn(_USERS)


def _fits_of(names: Mapping[str, Any]) -> tuple[Any, list[Mapping[str, Any]], bool]:
    """Return what a function of scikit-learn fits in its folds, by its local names.

    The estimator, its candidates, and whether the best is fitted to all records.
    """
    search, candidates = names.get("self"), names.get("candidate_params")
    if candidates is not None and search is not None:
        return search.estimator, list(candidates), search.refit is not False
    if "param_range" in names:  # of validation_curve
        name = str(names.get("param_name"))
        candidates = [{name: value} for value in names["param_range"]]
    return names.get("estimator"), candidates or [{}], False
