"""How far sums of users are clipped: by the bound of one record in each statistic.

In the notation of ``users``, in steps of the grids. ``L`` bounds what one record adds,
and rounding after the product with a user's factor moves the part of each record a
little more: by that times ``M`` the clip is lowered.
"""

import math
from dataclasses import dataclass, replace

from privfeat._checks import check_int, check_positive
from privfeat._types import Loss
from privfeat.core.bounds.grid import GRID_BITS, grid_step
from privfeat.core.bounds.sensitivity import largest_residual, residual_norm

# A block stands whole in every part of a chunk that is handled at once.
MOST_RECORDS = 2**9
# Names of queries, as the estimators of `linear` call them, whose sums `clip_users` or
# `clip_users_rows` bounds. Of any other a user may move every record's part. Used by
# `linear/model`; here, since it says of which sums the limits below are.
CLIPPED_SUMS = frozenset(
    "class_contrasts class_grams class_sums feature_mean gradient gram hessian moments"
    " residual_sums".split()
)


def check_group_size(max_group_size: object) -> None:
    """Raise TypeError or ValueError unless this is the size of a group in a block."""
    if check_int("max_group_size", max_group_size, low=1) > MOST_RECORDS:
        raise ValueError(
            f"max_group_size must be at most {MOST_RECORDS} with user_bound='sum', got "
            f"{max_group_size!r}. Pass a smaller one, or user_bound='count'."
        )


@dataclass(frozen=True)
class UserClip:
    """That sums of users are clipped to the bound of one record. Public.

    Attributes
    ----------
    row_norm : float
        Bound on the norm of a row, in feature units.
    most_records : int
        ``M``, in [1, 512].
    max_labels : int
        Most labels that one record carries.
    """

    row_norm: float
    most_records: int
    max_labels: int = 1

    def __post_init__(self) -> None:
        check_positive("row_norm", self.row_norm)
        check_group_size(self.most_records)
        check_int("max_labels", self.max_labels, low=1)

    def of_class_sums(self, step: float) -> "SumClip":
        """Return the clip of class sums, ``step`` being that of the rows.

        Whole indicators take no more than the factor: nothing is lost. The sum counts
        units of ``2**-20`` rows, so that factors are whole numbers.
        """
        limit = math.sqrt(self.max_labels) * self.row_norm / step
        return replace(self._clip(limit, 0.0), scale=2.0**GRID_BITS)

    def of_gradients(
        self, step: float, loss: Loss, n_outputs: int, radius: float, clip_norm: float
    ) -> "SumClip":
        """Return the clip of gradients, of residuals of norm ``radius`` at most.

        Each entry of a residual loses less than 1 of its grid.
        """
        grid, row_norm = grid_step(largest_residual(loss)), self.row_norm / step
        radius = min(radius, residual_norm(loss, n_outputs))
        if radius > 2.0**26 * grid:  # `users.inner_products` reach its square, 2**53
            raise ValueError(
                "loss must not be 'sigmoid' for more than 4096 classes and "
                f"user_bound='sum', got {n_outputs}. Pass user_bound='count'."
            )
        limit = min(clip_norm / (step * grid), radius / grid * row_norm)
        return self._clip(limit, math.sqrt(n_outputs) * row_norm)

    def of_grams(self, step: float, n_columns: int) -> "SumClip":
        """Return the clip of Gram matrices, of classes and curvatures as well.

        Each record loses ``5 sqrt(d) norm(x)`` of ``L`` at most:

        - 2 by the truncation of rows. A row ``x' = sqrt(f) x - t`` with ``norm(t) <
          sqrt(d)`` is no longer than ``x``, so ``norm(x' x'^T - f x x^T) <= 2 norm(t)
          norm(x)``.
        - 3 by that of weighted rows. Rows of a Hessian are weighted by ``2 r_j <= 1``
          and truncated in half steps (`gram.weighted_rows`). This moves all blocks by
          at most ``4 norm(r) sqrt(d) norm(x)`` squared half steps, where the limit is
          ``4 W L`` for the ``W`` of `curvature_norm`; and ``norm(r) <= 3 W``. For
          ``norm(r)^2 = sum p (1 - p)`` is at most ``m / 4`` for ``m`` outputs, and
          ``sum p`` for a softmax, which a float32 sum of ``2e5`` powers keeps below
          1.02; ``9 W^2`` is ``9 m / 16``, 9/8 for a softmax of two, 4/3 for more.

        Stacked sums: weights ``w_j = r_j^2`` and indicators are not negative, so they
        have at most ``max(w_i . w_k) norm(S)^2``, the bound for a record times that of
        ``S``.
        """
        row_norm = self.row_norm / step
        return self._clip(row_norm**2, 5.0 * math.sqrt(n_columns) * row_norm)

    def _clip(self, limit: float, lost: float) -> "SumClip":
        """Return the clip of a sum in steps of its grid, each record of which loses."""
        block = 1 << (self.most_records - 1).bit_length()
        return SumClip(block, float(limit), self.most_records * float(lost))


@dataclass(frozen=True)
class SumClip:
    """How the sums of users are clipped in one statistic. Public.

    Attributes
    ----------
    block : int
        Slots of a block, a power of two: it holds all records of its users.
    limit : float
        ``L``.
    slack : float
        What rounding adds to the norm of a user's sum, at most; below ``limit / 2``.
    scale : float
        By which factors are multiplied.

    Raises
    ------
    ValueError
        If ``slack`` is too large: there are too many records of a user, or entries.
    """

    block: int
    limit: float
    slack: float
    scale: float = 1.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.slack <= self.limit / 2.0:
            raise ValueError(
                "max_group_size must be smaller for so many columns or outputs, or so "
                "small a clip norm: rounding would take half of it. Pass a smaller "
                "one, or user_bound='count'."
            )
