"""Plans of several kinds, and statements of them."""

import math

from privfeat import PrivacyStatement
from privfeat.core.accounting.plan import Query

QUERIES = [Query("gram", 1.0), Query("gradient", 0.5, count=7)]
PUBLIC = ("the number of features (3)", "all constructor parameters")
PLANS = {
    "exact": {"epsilon": 1.0},
    "zcdp": {"rho": 0.1, "accounting": "zcdp", "adjacency": "replace_one"},
    "free": {"epsilon": math.inf},
}


def state(plan, *, seeded=False):
    return PrivacyStatement.from_plan(plan, public=PUBLIC, seeded=seeded)
