"""One budget for several fits: a share of rho for each, and their plans as one."""

import math
from collections.abc import Mapping
from dataclasses import replace

from privfeat._checks import check_positive
from privfeat.core.accounting.plan import ReleasePlan
from privfeat.exceptions import PrivacyError, UnsupportedEventError

# Covers the rounding of a share of rho and of the noise that is planned with it.
_SLACK = 1e-9


def shares_of_rho(whole: ReleasePlan, weights: Mapping[str, float]) -> dict[str, float]:
    """Return the rho of each fit: its part of that of ``whole``, by its weight.

    Parameters
    ----------
    whole : ReleasePlan
        Of any query, for the whole budget; ``rho`` may be infinite.
    weights : mapping of name to float
        > 0, relative to each other. Public.

    Raises
    ------
    UnsupportedEventError
        If ``whole`` samples records.
    TypeError, ValueError
        If a weight is no number > 0.

    Examples
    --------
    >>> from privfeat.core.accounting.calibration import plan_releases
    >>> from privfeat.core.accounting.plan import Query
    >>> whole = plan_releases([Query("all", 1.0)], rho=0.3)
    >>> {k: round(v, 6) for k, v in shares_of_rho(whole, {"a": 1, "b": 2}).items()}
    {'a': 0.1, 'b': 0.2}
    """
    if whole.rho is None:
        raise UnsupportedEventError(
            "only Gaussian releases of all records share a budget, got sampled ones."
        )
    checked = {k: check_positive(f"shares[{k!r}]", w) for k, w in weights.items()}
    total = math.fsum(checked.values())
    return {k: whole.rho * (w / total) * (1.0 - _SLACK) for k, w in checked.items()}


def joined_plans(whole: ReleasePlan, parts: Mapping[str, ReleasePlan]) -> ReleasePlan:
    """Return the plan of all that several fits on the same records draw.

    Parameters
    ----------
    whole : ReleasePlan
        Of any query, for the whole budget: its cost becomes that of the plan.
    parts : mapping of name to ReleasePlan
        In the order in which they are drawn; later ones may depend on what earlier
        ones released. A release ``r`` of part ``p`` is called ``p.r``.

    Raises
    ------
    UnsupportedEventError
        If a part samples records: its cost is no ``mu``, and does not add up.
    PrivacyError
        If the parts cost more than ``whole``, are for other neighbours, or only some of
        them have noise.

    Notes
    -----
    A release of noise multiplier ``m`` is ``1/m``-GDP, whatever a part says that it
    costs. So all of them compose adaptively to ``mu``-GDP with ``mu**2 = sum count /
    m**2`` (Dong, Roth & Su 2022, Corollary 2), which must be no more than that of
    ``whole``. Where noise is correlated ``count`` is more than has to be paid for.
    """
    releases = tuple(
        replace(one, query=replace(one.query, name=f"{name}.{one.query.name}"))
        for name, part in parts.items()
        for one in part.releases
    )
    if any(one.query.sampling_prob < 1.0 for one in releases):
        raise UnsupportedEventError(
            "a part of a budget must go to releases of all records: what sampled ones "
            "cost is no share of rho. Pass sampling_prob=1."
        )
    if {(part.adjacency, part.private) for part in parts.values()} != {
        (whole.adjacency, whole.private)
    }:
        raise PrivacyError(
            "all parts of a plan must be for its neighbours, with noise as it has."
        )
    if whole.private:
        spent = math.fsum(one.query.count / one.noise_multiplier**2 for one in releases)
        if whole.mu is None or not spent <= whole.mu**2:
            raise PrivacyError("the parts of a plan must cost no more than the whole.")
    return replace(whole, releases=releases)
