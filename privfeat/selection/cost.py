"""What a search of scikit-learn over private estimators would cost."""

import math
from typing import Any

from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV

from privfeat._types import Adjacency
from privfeat._warnings import warn
from privfeat.core.accounting.calibration import plan_releases
from privfeat.core.accounting.conversions import gaussian_epsilon
from privfeat.core.accounting.plan import Query
from privfeat.core.callers.folds import SCORES
from privfeat.core.callers.marked_rows import are_covered
from privfeat.core.callers.stateless import learns
from privfeat.core.statement.composition import TotalCost
from privfeat.exceptions import UnsupportedEventError
from privfeat.selection.affordable import candidates_of
from privfeat.selection.folds import HashKFold
from privfeat.selection.inputs import BUDGET

NOT_COVERED = (
    "cv_results_ and best_score_: exact scores of records",
    "best_index_, best_params_, and the choice of best_estimator_ by exact scores",
)


def search_cost(search: Any, *, delta: float | None = None) -> TotalCost:
    """Return what the fits of a search will cost, before it is run.

    The scores of ``GridSearchCV`` and ``RandomizedSearchCV`` are exact counts of
    private records, and so is what they choose: **no epsilon covers a search**, as a
    warning and ``not_covered`` say. `DPRandomizedSearch` is private as a whole.

    Parameters
    ----------
    search : GridSearchCV or RandomizedSearchCV
        Not fitted, or fitted. Its estimator, or the last step of its pipeline, has a
        budget by ``epsilon`` or ``rho``; ``cv`` is a `HashKFold`, or a list of its
        folds.
    delta : float, optional
        Where the total is evaluated. Default: that of the estimator, as each fit states
        its cost there.

    Returns
    -------
    cost : TotalCost
        ``epsilon`` of the coefficients of all fits together, if all were released and
        no scores: what a ledger charges, for records, or for users by
        ``max_group_size``. ``inf`` for folds that may depend on other records, and
        after steps of a pipeline that learn from them, where a ledger refuses the fits.
        ``private`` is False.

    Raises
    ------
    TypeError, ValueError
        If ``search`` is something else, or a parameter is out of range.
    UnsupportedEventError
        If a budget is given by ``noise_multiplier`` or records are sampled (pass the
        ``privacy_`` of each fit to `compose`), or adjacency differs among candidates,
        or what is protected: users by ``max_group_size``, or records.

    Warns
    -----
    PrivacyWarning
        Always.

    Notes
    -----
    **Guarantee.** The fits are Gaussian: their ``mu**2`` add, of ``n_splits`` fits for
    each candidate in the folds of `HashKFold`, with the proof there. ``refit`` is one
    more fit with the dearest budget among candidates. No other folds are covered:
    stratified ones can move many records when one comes or goes; those of ``KFold``
    move others across their ends under add/remove, when shuffled all of them; and a fit
    cannot tell folds by place from folds by label.
    """
    if type(search) not in (GridSearchCV, RandomizedSearchCV):
        raise TypeError(
            "search must be a GridSearchCV or RandomizedSearchCV, got "
            f"{type(search).__name__}."
        )
    if isinstance(search, RandomizedSearchCV):
        _refuse_budgets(search.param_distributions)
    candidates = candidates_of(search) or []
    fits = [clone(search.estimator).set_params(**one) for one in candidates]
    costs = [_cost_of(fit) for fit in fits]
    of_users = {_with_budget(fit).get_params().get(_USERS) is not None for fit in fits}
    adjacencies = {adjacency for _, _, adjacency in costs}
    if len(adjacencies) > 1 or len(of_users) > 1:
        raise UnsupportedEventError(
            "adjacency must be the same for all candidates, and max_group_size be "
            "given for all or none."
        )
    adjacency = adjacencies.pop()
    mus = [mu for mu, _, _ in costs]
    # candidates may exchange the steps
    others = [fit for fit in fits if _with_budget(fit) is not fit]
    steps = [step for fit in others for _, step in fit.steps[:-1]]
    in_folds = _moves_one_record(search.cv)
    covered = in_folds and not any(map(learns, steps))
    n_splits = _n_splits(search.cv)
    squares = [n_splits * mu**2 if covered else math.inf for mu in mus]
    if search.refit is not False:
        squares.append(max(mus) ** 2)
    mu = math.sqrt(math.fsum(squares)) * (1.0 + 1e-12)
    delta = costs[0][1] if delta is None else delta
    epsilon = gaussian_epsilon(mu, delta) if math.isfinite(mu) else math.inf
    not_covered: tuple[str, ...] = NOT_COVERED
    if steps:
        not_covered += (
            "what the earlier steps of the pipeline compute of several records at once",
        )
    warn(f"{SCORES.format(of='')}.")
    return TotalCost(
        epsilon=epsilon,
        delta=delta,
        mu=mu,
        adjacency=adjacency,
        method="exact curve of the composed Gaussians, of the fits alone"
        if math.isfinite(mu)
        else "no bound: one record can move others between folds. Pass cv=HashKFold(k)"
        if not in_folds
        else "no bound: earlier steps of the pipeline learn from all records"
        if not covered
        else "a fit without privacy",
        n_fits=len(mus) * n_splits + (search.refit is not False),
        not_covered=not_covered,
    )


def _moves_one_record(cv: Any) -> bool:
    """Return whether folds are those of `HashKFold`, drawn perhaps before."""
    if isinstance(cv, list | tuple):
        return bool(cv) and all(are_covered(train) for train, _ in cv)
    return type(cv) is HashKFold


_USERS = "max_group_size"
_NOT_DRAWN = {*BUDGET, "sampling_prob", _USERS, "random_state", "steps"}
_NOT_DRAWN.add("ledger")
_NEEDED = set(BUDGET) - {"noise_multiplier"}  # a PrivatePipeline has none


def _with_budget(estimator: Any) -> Any:
    """Return what has the budget: the last step of a pipeline of scikit-learn."""
    own = hasattr(estimator, "epsilon") or not hasattr(estimator, "steps")
    return estimator if own else estimator.steps[-1][1]


def _cost_of(estimator: Any) -> tuple[float, float, Adjacency]:
    """Return mu, delta and adjacency of one fit, whatever the data."""
    last = _with_budget(estimator)
    params = last.get_params(deep=False) if hasattr(last, "get_params") else {}
    if not _NEEDED <= set(params):
        raise TypeError(
            f"estimator must be a private one, got {type(last).__name__} without the "
            f"parameters {', '.join(sorted(_NEEDED))}."
        )
    if (
        params.get("noise_multiplier") is not None
        or params.get("sampling_prob", 1.0) != 1.0
    ):
        raise UnsupportedEventError(
            "the estimator must have a budget by epsilon or rho and sample no records. "
            "Pass the privacy_ of each of its fits to compose instead."
        )
    if params.get("random_state") is not None:
        raise UnsupportedEventError(
            "random_state must be None: fits with one seed share their noise, and no "
            "epsilon is true of them."
        )
    plan = plan_releases(
        [Query("fit", 1.0)],  # what a budget costs does not depend on the queries
        epsilon=params["epsilon"],
        delta=params["delta"],
        rho=params["rho"],
        accounting=params["accounting"],
        adjacency=params["adjacency"],
    )
    if plan.mu is None:
        raise UnsupportedEventError("the fits must be Gaussian releases.")
    return plan.mu, plan.delta, plan.adjacency


def _refuse_budgets(distributions: Any) -> None:
    """Raise UnsupportedEventError if a search draws what decides its cost."""
    listed = distributions if isinstance(distributions, list) else [distributions]
    pairs = [pair for one in listed for pair in one.items()]
    names = {name.rpartition("__")[2] for name, _ in pairs}
    # a distribution draws numbers
    drawn = [v for _, values in pairs if not hasattr(values, "rvs") for v in values]
    if names & _NOT_DRAWN or any(
        hasattr(v, "get_params") or callable(v) for v in drawn
    ):
        raise UnsupportedEventError(
            "a randomized search must not draw budgets, seeds, functions or whole "
            "estimators: its cost is not known before."
        )


def _n_splits(cv: Any) -> int:
    if isinstance(cv, list | tuple):
        return len(cv)
    n_splits = getattr(cv, "n_splits", 5 if cv is None else cv)
    return n_splits if isinstance(n_splits, int) else 1
