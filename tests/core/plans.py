"""Queries of fits of one release, of some steps, and of blocks; what plans cost."""

import dataclasses
import math

from privfeat.core.accounting.plan import Query

QUERY_SETS = {
    "one": [Query("gradient", 0.3)],
    "steps": [Query("gram", 1.0), Query("gradient", 0.5, count=30)],
    "blocks": [
        Query("gram", 1.4, n_blocks=1),
        Query("class_sums", 2.0),
        Query("class_grams", 1.0, n_blocks=10),
    ],
}
SAMPLED = [Query("gradient", 1.0, count=5, sampling_prob=0.1)]


def composed_mu(plan):
    """Gaussian DP of all releases together, from what will be drawn."""
    return math.sqrt(
        math.fsum(
            release.query.count
            * (release.query.l2_sensitivity / release.noise_stddev) ** 2
            for release in plan.releases
        )
    )


def weighted(queries, weights):
    pairs = zip(queries, weights, strict=True)
    return [dataclasses.replace(query, weight=weight) for query, weight in pairs]
