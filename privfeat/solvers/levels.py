"""Counts at several levels, from coarse to fine, made to agree after their noise.

A table of many cells has much noise in the sums of its cells. So sums are released as
well, as counts of coarser levels: every record is in one cell of each. Least squares
then finds the counts that agree with all levels best [1]_. It is post-processing.

References
----------
.. [1] Hay, Rastogi, Miklau & Suciu. Boosting the Accuracy of Differentially Private
   Histograms Through Consistency. VLDB 2010. Section 4.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def agreed(
    counts: Sequence[Floats], variances: Sequence[float]
) -> tuple[list[Floats], list[float]]:
    """Return the least-squares counts of each level, and the variances of their noise.

    ``counts`` go from coarse to fine: the cells of a level are parts of those of the
    level above, equally many of each, next to each other. ``variances``, in any unit,
    are of the noise of one count of each level, which is independent.

    The two passes of [1]_: upwards, a count is averaged with the sum of its parts, by
    inverse variance; downwards, what a count differs from the sum of its parts by is
    shared out among them. A part less the mean of its siblings is not correlated with
    anything else, hence the variances of the second pass.
    """
    best, known = [np.asarray(level, np.float64) for level in counts], [*variances]
    parts = [len(fine) // len(best[at]) for at, fine in enumerate(best[1:])]
    for at in reversed(range(len(parts))):
        below = parts[at] * known[at + 1]
        sums = best[at + 1].reshape(-1, parts[at]).sum(axis=1)
        share = below / (known[at] + below)
        best[at] = share * best[at] + (1.0 - share) * sums
        known[at] *= share
    for at, n_parts in enumerate(parts):
        missing = best[at] - best[at + 1].reshape(-1, n_parts).sum(axis=1)
        best[at + 1] = best[at + 1] + np.repeat(missing / n_parts, n_parts)
        own = known[at + 1] * (1.0 - 1.0 / n_parts)
        known[at + 1] = own + known[at] / n_parts**2
    return best, known
