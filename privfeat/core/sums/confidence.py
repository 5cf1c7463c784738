"""Sums of a few numbers of each record: counts, moments, errors, confidence."""

import numpy as np
from jaxtyping import Bool, Float, Int

from privfeat._checks import check_choice, check_int, check_real
from privfeat._types import ADJACENCIES, Adjacency
from privfeat.core.sums.totals import ExactSum

_GRID = 2.0**20
# Of all sums here.
BOX_STEP = 1.0 / _GRID
# Columns are summed so many rows at a time.
_BLOCK_ROWS = 2**14


def confidence_gap(adjacency: Adjacency, n_classes: int) -> float:
    """Sensitivity of `exact_confidence_gap`: 1, and ``2 - 1/m`` under replace-one.

    Proof. A record adds ``c - h``: its confidence ``c``, cut to [1/m, 1] for ``m =
    n_classes``, less ``h``, 1 if it is correct and 0 if not. That is between ``1/m -
    1`` and 1: removing it moves the sum by at most 1, replacing it by at most ``2 -
    1/m``. Reached by a wrong record of confidence 1, and by its replacement by a
    correct one of confidence ``1/m``. Contributions are whole multiples of ``2**-20``,
    ``1/m`` rounded up to one. The sum of ``2**32`` of them is at most ``2**52`` of it:
    nothing is rounded, so the bound needs no margin.
    """
    check_choice("adjacency", adjacency, ADJACENCIES)
    n_classes = check_int("n_classes", n_classes, low=1)
    return 1.0 if adjacency == "add_remove" else 2.0 - 1.0 / n_classes


def exact_class_counts(
    labels: Int[np.ndarray, " n"], present: Bool[np.ndarray, " n"], n_classes: int
) -> ExactSum:
    """Return how many records there are of each class, (n_classes,).

    Bounded by ``replacement.class_counts``. Both arrays have shape (n_slots,) and are
    sensitive: labels in ``[-1, n_classes)``, of which -1 is the last class; and which
    slots hold a record.
    """
    counts = np.bincount(labels[present] % n_classes, minlength=n_classes)
    return ExactSum(counts.astype(np.int64) << 20, BOX_STEP)


def exact_level_counts(
    cells: Int[np.ndarray, "levels n"],
    present: Bool[np.ndarray, " n"],
    sizes: tuple[int, ...],
) -> ExactSum:
    """Return how many records are in each cell of each level, (sum(sizes),).

    Bounded by ``replacement.level_counts(len(sizes), ...)`` if the cells of a record
    depend on that record alone. Both arrays are sensitive: the cell of each record, by
    level, of which those outside of ``[0, size)`` count nowhere; and which slots hold a
    record.
    """
    counts = [
        np.bincount(level[present & (level >= 0) & (level < size)], minlength=size)
        for level, size in zip(cells, sizes, strict=True)
    ]
    return ExactSum(np.concatenate(counts).astype(np.int64) << 20, BOX_STEP)


def exact_box_sums(
    values: Float[np.ndarray, "n m"],
    present: Bool[np.ndarray, " n"],
    box: tuple[tuple[float, float], ...],
) -> ExactSum:
    """Return the sums of several numbers of each record, (m,).

    Bounded by ``replacement.box_sums(box, ...)`` if the numbers of a record depend on
    that record alone. Both arrays are sensitive. Numbers are cut to ``box``, lowest and
    highest value of each, whole multiples of ``2**-20`` in [-1, 1], and rounded to such
    multiples, which leaves them in the box; NaN becomes 0 first. The sum of ``2**32``
    of them is at most ``2**52`` multiples: nothing is rounded after it. ValueError for
    another box, out of which rounding would lead.
    """
    low, high = np.array(box, np.float64).T
    if np.any(np.array(box) * _GRID % 1.0):
        raise ValueError(f"box must hold multiples of 2**-20, got {box!r}.")
    cut = np.nan_to_num(values, nan=0.0).clip(low, high)
    whole = np.rint(cut * _GRID).astype(np.int64)
    return ExactSum(np.sum(whole[present], axis=0), BOX_STEP)


def exact_column_moments(
    values: Float[np.ndarray, "n d"], present: Bool[np.ndarray, " n"], shift: float
) -> tuple[ExactSum, ...]:
    """Return ``n``, ``sum u_j`` and ``sum (t_j - s)``: shapes (), (d,) and (d,).

    Scaled and stacked, they are bounded by ``replacement.column_moments`` if the values
    of a record depend on that record alone.

    Parameters
    ----------
    values : array of shape (n_slots, n_columns)
        Sensitive. Cut to [-1, 1] and rounded to multiples of ``2**-20``, the ``u``; NaN
        becomes 0 first.
    present : bool array of shape (n_slots,)
        Which slots hold a record. Sensitive.
    shift : float
        The ``s``, a multiple of ``2**-20`` in [0, 1]. Public.

    Notes
    -----
    All is computed in whole numbers of ``2**-20``: ``u`` is ``U`` of them, at most
    ``2**20``, and ``t`` is ``U**2 / 2**20`` rounded up, at most ``2**20`` as well, by
    integers of at most ``2**41``. The sum of ``2**32`` records is at most ``2**52``.
    """
    check_real("shift", shift, low=0.0, high=1.0)
    whole_shift = int(shift * _GRID)
    if whole_shift != shift * _GRID:
        raise ValueError(f"shift must be a multiple of 2**-20, got {shift!r}.")
    first = np.zeros(values.shape[1], np.int64)
    second = np.zeros(values.shape[1], np.int64)
    for start in range(0, len(values), _BLOCK_ROWS):
        part = values[start : start + _BLOCK_ROWS][present[start : start + _BLOCK_ROWS]]
        cut = np.nan_to_num(part.astype(np.float64), nan=0.0).clip(-1.0, 1.0)
        whole = np.rint(cut * _GRID).astype(np.int64)
        squares = -(-(whole * whole) >> 20)  # rounded up
        first += whole.sum(axis=0)
        second += (squares - whole_shift).sum(axis=0)
    count = np.array(np.sum(present), np.int64) << 20
    return tuple(ExactSum(total, BOX_STEP) for total in (count, first, second))


def exact_confidence_gap(
    confidence: Float[np.ndarray, " n"],
    correct: Bool[np.ndarray, " n"],
    present: Bool[np.ndarray, " n"],
    n_classes: int,
) -> ExactSum:
    """Return the sum over records of the confidence, minus 1 where correct.

    Bounded by `confidence_gap` if the entries of a record depend on that record alone.
    All arrays have shape (n_slots,) and are sensitive: the probability of the predicted
    class, cut to ``[1 / n_classes, 1]`` with NaN as 0; whether it is correct; and which
    slots hold a record (the others add nothing).
    """
    finite = np.nan_to_num(confidence, nan=0.0).clip(0.0, 1.0)
    smallest = -(-int(_GRID) // n_classes)
    whole = np.maximum(np.rint(finite * _GRID).astype(np.int64), smallest)
    whole -= int(_GRID) * correct
    return ExactSum(np.array(np.sum(whole[present])), BOX_STEP)
