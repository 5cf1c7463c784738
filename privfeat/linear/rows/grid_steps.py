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
    drawn has the grid step of the sum itself.

    Parameters
    ----------
    name : str
        One of `CLIPPED_SUMS`, or ``"class_counts"``.
    row_norm : float
        To which rows are clipped, in feature units.
    gram_norm : float, optional
        To which they are clipped further for ``"gram"`` alone, if it is smaller.
    loss : {"sigmoid", "softmax", "squared"}
        Of gradients.
    users : bool
        Whether sums of users are clipped.

    Examples
    --------
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
