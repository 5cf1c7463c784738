"""Check a search of scikit-learn with a ledger before the first of its fits.

scikit-learn asks for all folds before it fits in the first, and charges one by one:
what a later fit would meet costs the charges of those before. So the folds look at
who asked for them, and refuse what cannot be paid (`affordable`), what a fit would
refuse, and what cannot be scored (`rehearsal`).
"""

from privfeat._warnings import warn
from privfeat.core.callers.candidates import are_charged, fits_of
from privfeat.core.callers.folds import SCORES
from privfeat.core.callers.stack import callers
from privfeat.selection.affordable import check_affordable
from privfeat.selection.rehearsal import rehearse, try_scorer

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
    estimator, candidates, refit = fits_of(names)
    charged = are_charged(names)
    if empty and charged:
        raise ValueError(
            "every fold must have a record in a search that is charged, got an "
            "empty one. Pass fewer n_splits, or split once more, with another key. "
            "Nothing was charged."
        )
    check_affordable(estimator, candidates, n_splits, refit=refit)
    around = names if "error_score" in names else vars(names.get("self", object))
    every = around.get("error_score", "raise") == "raise"
    data = names.get("X"), names.get("y")
    rehearse(estimator, candidates, *data, fit_params, every=every)
    if charged:
        try_scorer(estimator, names)
    of = f", in the folds of HashKFold({n_splits}) neither"
    if charged:
        of += f": the ledger counts the fits alone, {n_splits} of each candidate"
    warn(f"{SCORES.format(of=of)}; search_cost says what the fits cost.")
    if repeated and "groups" not in fit_params:
        warn(_USERS)
