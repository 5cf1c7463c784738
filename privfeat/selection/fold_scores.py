"""Scores of folds: how many records are predicted right and wrong, in one release."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfeat.core.accounting.calibration import plan_releases
from privfeat.core.accounting.plan import Query, ReleasePlan
from privfeat.core.bounds.replacement import class_counts
from privfeat.core.noise.keys import KeyStream
from privfeat.core.private_fit import private_fit
from privfeat.core.sums.totals import ExactSum
from privfeat.selection.inputs import budget_of


class FoldScores:
    """The last step: one release of the outcomes in all folds."""

    def __init__(self, whole: ReleasePlan, rho: float, arithmetic: Any) -> None:
        self.ledger: Any = None
        self.arithmetic = arithmetic
        self.plan = plan_releases(
            [Query("outcomes", class_counts(whole.adjacency))],
            **budget_of(rho),
            delta=whole.delta,
            adjacency=whole.adjacency,
        )

    def release(
        self, part: Any, cells: NDArray[np.int64], seed: int | None
    ) -> tuple[NDArray[np.float64], float]:
        """Return the noisy numbers, and the standard deviation of their noise."""
        self.ledger = part
        fit = private_fit(
            self,
            self.plan,
            KeyStream(seed),
            public=(),
            n_units=0,
            forget=(),
            arithmetic=self.arithmetic,
        )
        # on a fine grid, where the exact mode adds next to nothing to the noise
        exact_outcomes = ExactSum(cells * 2**20, 2.0**-20)
        with fit.drawing() as mechanism:
            found = mechanism.release("outcomes", exact_outcomes)
        return found.value, float(found.noise_stddev)
