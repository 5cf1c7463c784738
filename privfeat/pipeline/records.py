"""What a step makes of records: of each one by itself."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_array

from privfeat._blas import keeps_one_thread, one_thread_a_product
from privfeat._messages import array_of, without_data, without_warnings
from privfeat.core.sums.records import full_chunks
from privfeat.data import LazyFeatures
from privfeat.estimation.inputs import FLOATS, array_of_records, checked
from privfeat.pipeline.steps import Step


def rows_of(X: Any, *, table: bool) -> Any:
    """Return what the first step is given: a table as it is where it reads tables.

    Whole numbers become float64, lest one record decide the type of all others.
    """
    if isinstance(X, LazyFeatures):
        X = X[:]
    if table or sparse.issparse(X):
        return X
    return _floats(array_of_records(X))


def number_of(rows: Any) -> int:
    """Return how many records there are. Sensitive where they may be added."""
    if hasattr(rows, "shape") or not hasattr(rows, "__len__"):
        rows = rows if sparse.issparse(rows) else array_of(rows)
        return int(rows.shape[0]) if rows.ndim else 1
    return without_data(len, rows)


def by_record(step: Step, rows: Any) -> Any:
    """Return what a fitted step makes of records, in their order.

    Parameters
    ----------
    rows : table, array or sparse matrix of n_samples rows
        Sensitive.

    Returns
    -------
    rows : float64 array or CSR array of shape (n_samples, n_outputs)
        Each row follows from its own record and the fitted step.

    Raises
    ------
    ValueError
        If the step does not return one row for each record.

    Notes
    -----
    **Proof.** A public step of `steps.RECORD_WISE` computes each entry of a row from
    that row alone, by operations that do not depend on how many rows there are. Our
    transformers multiply rows by a matrix: 1,024 at a time, the last filled up, on one
    core (`core.sums.records.full_chunks`), or one by one where products may have
    several threads. Any other step gets one row at a time; that it keeps nothing of a
    row for the next is assumed, and stated.
    """
    n_rows = number_of(rows)
    given: Iterable[Any]
    if step.record_wise:
        given = [rows]
    elif step.private and not sparse.issparse(rows):
        given = full_chunks(np.asarray(rows), alone=not keeps_one_thread())
    else:
        given = (_row(rows, place) for place in range(n_rows))
    with one_thread_a_product(), without_warnings():
        found = [_transformed(step, part) for part in given]
    if any(map(sparse.issparse, found)):
        return sparse.csr_array(sparse.vstack(found)).astype(np.float64)[:n_rows]
    return _floats(np.concatenate(found))[:n_rows]


def _transformed(step: Step, rows: Any) -> Any:
    made = without_data_of_others(step, step.estimator.transform, rows)
    found = made if sparse.issparse(made) else array_of(made)
    if found.ndim != 2 or found.shape[0] != number_of(rows):
        raise ValueError(
            f"step {step.name!r} must return one row for each record, got another "
            "shape. Leave it out: no step may drop, add or mix records."
        )
    return found


def without_data_of_others(step: Step, method: Callable[[Any], Any], rows: Any) -> Any:
    """Return what a method makes of rows; messages of privfeat show no data."""
    if type(step.estimator).__module__.startswith("privfeat."):
        return method(rows)
    return without_data(method, rows)


def _row(rows: Any, place: int) -> Any:
    if hasattr(rows, "iloc"):
        return rows.iloc[place : place + 1]
    return rows[place : place + 1]


def _floats(array: Any) -> Any:
    """Return numbers as float64; what holds text stays for the step that reads it."""
    return (
        without_data(array.astype, np.float64) if array.dtype.kind in "biuf" else array
    )


def through_public_steps(
    rows: Any, y: Any, steps: Sequence[Step]
) -> tuple[Any, Sequence[Step]]:
    """Return what the first public steps make of records, and the steps after them."""
    first = next(place for place, step in enumerate(steps) if step.private)
    for step in steps[:first]:
        if not step.declared:  # learns nothing; checks the columns
            without_data_of_others(step, step.estimator.fit, rows)
        rows = by_record(step, rows)
    return numbers_of(rows), steps[first:]


def numbers_of(rows: Any) -> Any:
    """Return rows for a private step, finite, or raise."""
    return checked(check_array, rows, accept_sparse="csr", dtype=FLOATS)
