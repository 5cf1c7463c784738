"""The plan of a fit, by the parameters of its estimator."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

from privfeat.core.accounting.calibration import plan_releases
from privfeat.core.accounting.plan import Query, ReleasePlan


def plan_of(
    estimator: Any,
    queries: Sequence[Query],
    grid_step: Callable[[str], float],
    *,
    clipped: Collection[str] = (),
    **options: Any,
) -> ReleasePlan:
    """Return the plan of queries for one record, by the parameters of an estimator.

    A user adds as much as ``max_group_size`` records do, but to the ``clipped`` sums.
    ``grid_step`` returns the smallest grid step of the sums of a query, by its name.
    ``options`` are further ones of `plan_releases`.
    """
    if (most := estimator.max_group_size) is not None:
        queries = [q.per_user(int(most), clipped=q.name in clipped) for q in queries]
    plan = plan_releases(
        queries,
        epsilon=estimator.epsilon,
        delta=estimator.delta,
        rho=estimator.rho,
        noise_multiplier=estimator.noise_multiplier,
        adjacency=estimator.adjacency,
        **options,
    )
    if estimator.arithmetic == "exact":
        from privfeat.core.noise.exact import check_planned  # imports JAX

        check_planned(plan, grid_step)
    return plan
