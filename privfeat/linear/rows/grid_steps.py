"""The grids of sums, known from public parameters before a record is read."""

from privfeat._types import Loss
from privfeat.core.bounds.grid import GRID_BITS, grid_step
from privfeat.core.bounds.sensitivity import largest_residual

_GRID = 2.0**-GRID_BITS


def grid_step_of(
    name: str,
    row_norm: float,
    gram_norm: float | None = None,
    loss: Loss = "squared",
    *,
    users: bool = False,
) -> float:
    """Return the grid step of the sums that the query ``name`` releases.

    A fit asks it before the charge whether the noise fits the 64 bits of a sum; what is
    drawn has the grid step of the sum itself. ``name`` is one of `CLIPPED_SUMS`, or
    ``"class_counts"``. Rows are clipped to ``row_norm``, and for ``"gram"`` alone to
    ``gram_norm``, if it is smaller; ``loss`` is that of gradients, and with ``users``
    sums of users are clipped.

    >>> grid_step_of("gram", row_norm=1.0) == 2.0**-40
    True
    """
    step = grid_step(row_norm)
    if name == "class_counts":
        return _GRID
    if name in ("class_sums", "feature_mean"):
        return step * _GRID if users else step
    if name == "gram" and gram_norm is not None:
        step = grid_step(min(row_norm, gram_norm))
    if name in ("gram", "moments", "class_grams"):
        return step**2
    if name == "hessian":
        return (step / 2.0) ** 2
    return step * grid_step(largest_residual(loss))
