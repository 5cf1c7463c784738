"""From the queries of a fit and a budget to the noise of every release.

`accountants.plan_sampled` does this for fits that sample records.
"""

import math
from collections.abc import Mapping, Sequence

from privfeat._checks import check_choice, check_positive, check_real
from privfeat._types import ACCOUNTINGS, ADJACENCIES, Accounting, Adjacency
from privfeat.core.accounting import accountants, pld, rdp
from privfeat.core.accounting import conversions as convert
from privfeat.core.accounting.plan import PlannedRelease, Query, ReleasePlan
from privfeat.exceptions import UnsupportedEventError

DEFAULT_EPSILON = 1.0
# Far above what computation adds to a delta: equal keys and, up to an epsilon of 27,
# the ends of the noise (``noise.draws``).
MIN_DELTA = 1e-10
# dp-accounting's self-composition loses accuracy below this delta.
MIN_SAMPLED_DELTA = 1e-9
# Covers the rounding of the square roots below; noise rounds up.
_ROUND_UP = 1.0 + 1e-12


def plan_releases(
    queries: Sequence[Query],
    *,
    epsilon: float | None = None,
    delta: float = 1e-5,
    rho: float | None = None,
    noise_multiplier: float | None = None,
    accounting: Accounting = "exact",
    adjacency: Adjacency = "add_remove",
    budget_split: Mapping[str, float] | None = None,
) -> ReleasePlan:
    """Choose the noise of every release so that their composition meets the budget.

    Parameters
    ----------
    queries : sequence of Query
        Their sensitivities are for ``adjacency``.
    epsilon : float, optional
        Total epsilon, > 0; ``inf`` turns noise off. 1 if no budget is given.
    delta : float
        In [1e-10, 1), or [1e-9, 1) with sampled records. The other budgets get the
        epsilon at this delta.
    rho : float, optional
        Total zCDP budget instead of ``epsilon``.
    noise_multiplier : float, optional
        Instead of ``epsilon``; a release of weight ``w`` gets it over ``sqrt(w)``.
    accounting : {"exact", "zcdp", "pld", "rdp"}
        The exact curve of the composed Gaussian, the bound of Bun & Steinke,
        dp-accounting's privacy loss distribution, or its Rényi divergences. Sampled
        records need one of the last two.
    adjacency : {"add_remove", "replace_one"}
    budget_split : mapping of query name to fraction of rho, optional
        Fractions > 0 that sum to 1. Default: each release in proportion to the weight
        of its query.

    Raises
    ------
    TypeError, ValueError
        If a parameter is out of range, if two budgets are given, or if no noise level
        in [1e-6, 1e6] meets the budget.
    UnsupportedEventError
        If sampled records meet an accounting or adjacency that cannot bound them.

    Notes
    -----
    Query ``q`` with ``count_q`` releases, or participations with a strategy, has the
    share ``f_q`` of rho: by default ``count_q weight_q`` over the sum of these
    products. Each of its releases gets ``mu_q**2 = f_q mu**2 / count_q``. These squares
    sum to ``mu**2``, so the releases compose adaptively to ``mu``-GDP (Dong, Roth & Su
    2022, Corollary 2) and ``mu**2 / 2``-zCDP (Bun & Steinke 2016, Lemma 1.7).
    """
    check_choice("accounting", accounting, ACCOUNTINGS)
    check_choice("adjacency", adjacency, ADJACENCIES)
    given = {"epsilon": epsilon, "rho": rho, "noise_multiplier": noise_multiplier}
    named = [name for name, value in given.items() if value is not None]
    if len(named) > 1:
        raise ValueError(
            f"at most one budget must be given, got {' and '.join(named)}. Leave the "
            "others at None."
        )
    if not named:
        epsilon = DEFAULT_EPSILON
    sampled = any(query.sampling_prob < 1.0 for query in queries)
    delta = convert.check_delta(delta, low=MIN_SAMPLED_DELTA if sampled else MIN_DELTA)
    if epsilon is not None:
        epsilon = check_real("epsilon", epsilon, low=0.0, include_low=False)
    if rho is not None:
        rho = check_positive("rho", rho)
    shares = budget_shares(queries, budget_split)
    if noise_multiplier is not None:
        noise_multiplier = check_real(
            "noise_multiplier", noise_multiplier, low=1e-6, high=1e6
        )
        if budget_split is not None:
            raise ValueError(
                "budget_split must be None when noise_multiplier is given, got "
                f"{budget_split!r}. The multiplier is that of every release."
            )
    if epsilon == math.inf:
        free = tuple(PlannedRelease(query, 0.0) for query in queries)
        return ReleasePlan(
            free, adjacency, accounting, math.inf, delta, math.inf, math.inf
        )
    if sampled:
        known = accounting in accountants.SAMPLED and adjacency == "add_remove"
        if not known or rho or budget_split:
            raise UnsupportedEventError(
                "sampled records must use accounting='pld' or 'rdp', "
                "adjacency='add_remove', no budget_split, and a budget by epsilon or "
                "noise_multiplier, got "
                f"accounting={accounting!r}, adjacency={adjacency!r}, rho={rho!r}, "
                f"budget_split={budget_split!r}."
            )
        return accountants.plan_sampled(
            queries, epsilon, delta, noise_multiplier, accounting
        )
    # all releases that see every record are together one Gaussian release
    if noise_multiplier is not None:
        mu = math.sqrt(_total_weight(queries)) / noise_multiplier
    elif rho is not None:
        mu = convert.mu_from_rho(rho)
    else:
        assert epsilon is not None  # one of the three is set
        mu = mu_from_epsilon(epsilon, delta, accounting)
    low, high = convert.MU_RANGE
    if not low <= mu <= high:
        raise ValueError(
            f"the budget must give a total mu in [{low:g}, {high:g}], got {mu:.6g} "
            f"from rho={rho!r}, noise_multiplier={noise_multiplier!r}, "
            f"epsilon={epsilon!r}. Change it, or the number of releases."
        )
    planned = []
    for query in queries:
        multiplier = check_real(
            f"noise multiplier of {query.name}",
            math.sqrt(query.participations / shares[query.name]) / mu * _ROUND_UP,
            low=1e-6,
            high=1e6,
            remedy="Change the budget or the number of releases.",
        )
        planned.append(PlannedRelease(query, multiplier))
    if epsilon is None:
        epsilon = accountants.epsilon_from_mu(mu, delta, accounting)
    rho = convert.rho_from_mu(mu)
    return ReleasePlan(tuple(planned), adjacency, accounting, epsilon, delta, rho, mu)


def mu_from_epsilon(epsilon: float, delta: float, accounting: Accounting) -> float:
    """Return the largest mu of a Gaussian release that costs at most ``epsilon``."""
    if accounting == "exact":
        return convert.gaussian_mu(epsilon, delta)
    if accounting == "zcdp":
        return convert.mu_from_rho(convert.zcdp_rho(epsilon, delta))
    if accounting == "rdp":
        return rdp.rdp_mu(epsilon, delta)
    return pld.pld_mu(epsilon, delta)


def budget_shares(
    queries: Sequence[Query], budget_split: Mapping[str, float] | None
) -> dict[str, float]:
    """Return the part of rho of each query, by its name: as given, or by weight."""
    if budget_split is None:
        total = _total_weight(queries)
        return {q.name: q.participations * q.weight / total for q in queries}
    names = [query.name for query in queries]
    if not isinstance(budget_split, Mapping):
        raise TypeError(f"budget_split must be a mapping, got {budget_split!r}.")
    if sorted(budget_split) != sorted(names):
        raise ValueError(
            f"budget_split must have exactly the keys {names}, got "
            f"{sorted(budget_split)}."
        )
    shares = {
        name: check_positive(f"budget_split[{name!r}]", budget_split[name])
        for name in names
    }
    total = math.fsum(shares.values())
    if not abs(total - 1.0) <= 1e-9:
        raise ValueError(f"budget_split must sum to 1, got {dict(budget_split)!r}.")
    return {name: share / total for name, share in shares.items()}


def _total_weight(queries: Sequence[Query]) -> float:
    return math.fsum(query.participations * query.weight for query in queries)
