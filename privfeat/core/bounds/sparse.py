"""Bounds on rows of which only the entries that are not zero are stored.

The bound is that of ``rows``, of the stored entries alone: a zero adds nothing to a
norm, and stays zero. It needs every coordinate to be stored once, at a place that there
is, which `canonical_rows` sees to.
"""

import math
from typing import Any

import numpy as np
from jaxtyping import Float64
from scipy.sparse import csr_array

from privfeat._checks import check_choice, check_real
from privfeat._messages import without_data
from privfeat._types import ROW_SCALINGS, RowScaling
from privfeat.core.bounds.clipping import SHRINK
from privfeat.core.bounds.grid import CLIP_RANGE, check_width, grid_step

# Shorter rows count as zero, as those of float64 do in ``rows``.
_SHORTEST = 2.0**-992


def canonical_rows(matrix: Any) -> csr_array:
    """Return a copy of sparse rows, in float64, that stores each coordinate once.

    Entries that are stored for one coordinate of a row are added up in the order of
    that row, which concerns that row alone.

    Raises
    ------
    TypeError
        If the entries are not real numbers.
    ValueError
        If the matrix is not in CSR format, an index is out of range, or an entry is
        not finite. No message holds data.
    """
    if matrix.format != "csr" or len(matrix.shape) != 2:
        raise ValueError(
            "X must be a 2D matrix in CSR format if it is sparse, got "
            f"{matrix.format!r} of {len(matrix.shape)} dimensions. Pass X.tocsr()."
        )
    n_rows, n_columns = matrix.shape
    parts = matrix.data, matrix.indices, matrix.indptr
    values, columns, ends = (without_data(np.array, part) for part in parts)
    if values.dtype.kind == "c":
        raise ValueError("Complex data not supported: X must be real.")
    if values.dtype.kind not in "biuf":
        raise TypeError(f"X must hold numbers, got sparse entries of {values.dtype}.")
    # Code in C would read and write wherever a wrong index points.
    good = values.ndim == columns.ndim == ends.ndim == 1
    good = good and columns.dtype.kind in "iu" and ends.dtype.kind in "iu"
    good = good and len(ends) == n_rows + 1 and ends[0] == 0
    good = good and bool(np.all(ends[1:] >= ends[:-1]))
    good = good and ends[-1] <= min(len(columns), len(values))
    if good:
        columns, values = columns[: ends[-1]], values[: ends[-1]]
    if not good or not np.all((columns >= 0) & (columns < n_columns)):
        raise ValueError(
            "X must be a sparse matrix whose indices are in range, and is not. Make it "
            "anew: scipy.sparse.csr_array of rows, columns and values."
        )
    with np.errstate(over="ignore", invalid="ignore"):  # a warning would show an entry
        values = values.astype(np.float64)
        rows = csr_array((values, columns, ends), shape=(n_rows, n_columns))
        rows = rows if rows.has_canonical_format else _added_up(rows)
    if not np.all(np.isfinite(rows.data)):
        raise ValueError("X must not contain NaN or infinity.")
    return rows


def _added_up(rows: csr_array) -> csr_array:
    """Return rows whose coordinates are sorted, with the entries of each added up.

    ``sum_duplicates`` sorts every row if one is not sorted, and moves entries of one
    column in a long row: by that, one record could change what is stored of another.
    """
    counts = np.diff(rows.indptr)
    row_of = np.repeat(np.arange(len(counts)), counts)
    order = np.lexsort((rows.indices, row_of))  # equal ones stay in their order
    columns = rows.indices[order]
    first = np.append(True, (np.diff(row_of) != 0) | (np.diff(columns) != 0))
    values = np.bincount(np.cumsum(first) - 1, rows.data[order])
    ends = np.append(0, np.cumsum(np.bincount(row_of[first], minlength=len(counts))))
    return csr_array((values, columns[first], ends), shape=rows.shape)


def clip_sparse_rows(
    features: csr_array,
    *,
    clip_norm: float,
    row_scaling: RowScaling,
    intercept_scaling: float | None = None,
) -> csr_array:
    """Bound every row to a Euclidean norm of at most ``clip_norm``, on a grid.

    Parameters
    ----------
    features : CSR array of shape (n_samples, n_features), float64
        From `canonical_rows`: one row per record, in feature units. Sensitive.
    clip_norm, row_scaling, intercept_scaling
        As of `rows.clip_rows`. Public.

    Returns
    -------
    rows : CSR array of shape (n_samples, n_features), or one column more, float64
        Whole numbers in units of ``grid_step(clip_norm)``. Still sensitive.

    Raises
    ------
    TypeError, ValueError
        As ``clip_rows``, and if a coordinate of a row is stored twice.

    Notes
    -----
    **Guarantee.** That of ``clip_rows``: each row, times the grid step, has norm at
    most ``clip_norm`` as a real number, and depends on the same input row alone. A row
    with an infinite or NaN entry becomes zero, the constant included. So does one of
    norm below ``2**-992``, of whatever type, but the constant stays.

    **Proof.** Only stored entries count; the others are zero before and after. A row is
    first divided by its largest entry, so no square overflows, and squares that
    underflow are nothing beside a sum of at least 1. Let ``f`` be the float64 factor
    ``C / norm`` times ``1 - 2**-36``. The relative error of norm, quotients and
    products is below ``(d/2 + 6) 2**-53 < 2**-36`` for ``d <= 2e5``, so ``norm(f x) <=
    C``; rounding towards zero shrinks every entry.
    """
    clip_norm = check_real(
        "clip_norm", clip_norm, low=CLIP_RANGE[0], high=CLIP_RANGE[1]
    )
    check_choice("row_scaling", row_scaling, ROW_SCALINGS)
    constant, share = 0.0, 1.0
    if intercept_scaling is not None:
        constant = check_real(
            "intercept_scaling", intercept_scaling, low=1e-6, high=1e6
        )
    n_rows, n_columns = features.shape
    check_width(n_columns)
    if not features.has_canonical_format:
        raise ValueError("features must store each coordinate once, in their order.")
    inside = 0.0 if row_scaling == "unit" else constant  # what is bounded with the row
    row_of = np.repeat(np.arange(n_rows), np.diff(features.indptr))
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        largest = np.full(n_rows, inside)
        np.maximum.at(largest, row_of, np.abs(features.data))
        finite = np.isfinite(largest)
        divisor = np.where(finite & (largest > 0.0), largest, 1.0)
        direction = features.data / divisor[row_of]
        direction = np.where(finite[row_of], direction, 0.0)
        # at least 1 unless the row is zero
        length = np.sqrt(
            np.bincount(row_of, direction**2, n_rows) + (inside / divisor) ** 2
        )
        # not of a row with a constant, which alone is longer than the shortest
        kept = length * divisor >= _SHORTEST
        direction = np.where(kept[row_of], direction, 0.0)
        if row_scaling == "unit":
            share = 1.0 / math.hypot(1.0, constant)
        scale = clip_norm * share * SHRINK / np.maximum(length, 1.0)
        if row_scaling == "clip":
            scale = np.minimum(scale, divisor)
            last = inside / divisor * scale
        else:
            last = np.full(n_rows, constant * (clip_norm * share * SHRINK))
        step = grid_step(clip_norm)
        whole = np.trunc(direction * scale[row_of] / step)
        last = np.where(finite, np.trunc(last / step), 0.0)
    rows = csr_array((whole, features.indices, features.indptr), shape=features.shape)
    return rows if intercept_scaling is None else with_column(rows, last)


def with_column(rows: csr_array, values: Float64[np.ndarray, " n"]) -> csr_array:
    """Return rows with one column more, of these values."""
    n_rows, n_columns = rows.shape
    ends = rows.indptr.astype(np.int64) + np.arange(n_rows + 1)
    entries, columns = np.empty(ends[-1]), np.full(ends[-1], n_columns)
    last = np.zeros(ends[-1], bool)
    last[ends[1:] - 1] = True
    entries[last], entries[~last] = values, rows.data
    columns[~last] = rows.indices
    return csr_array((entries, columns, ends), shape=(n_rows, n_columns + 1))
