"""What a step makes of records: of each one by itself."""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from privfeat._messages import array_of, check_columns, without_data, without_warnings
from privfeat._process import keeps_one_thread, one_thread_a_product
from privfeat.core.bounds.sparse import canonical_rows
from privfeat.core.callers.stateless import DECLARED, is_exactly
from privfeat.core.sums.records import CHUNK_ROWS, full_chunks
from privfeat.data import LazyFeatures
from privfeat.data.sharing import check_apart
from privfeat.estimation.beside import is_charged
from privfeat.estimation.inputs import array_of_records, checked
from privfeat.estimation.plain import (
    frame_of,
    plain_records,
    with_floats,
)
from privfeat.pipeline.steps import Step


def rows_of(X: Any, first: Step) -> Any:
    """Return what the first step is given: no record decides how it sees the others.

    A table as it is for `PublicColumns`; `plain_records` for a declared step, and an
    array for others. TypeError for what a step would iterate over in another order, or
    by its keys, and as for `plain_records`.
    """
    if isinstance(X, Mapping | Set | str | bytes) and not sparse.issparse(X):
        raise TypeError(
            f"X must be a list, an array or a table of records, got {type(X).__name__}."
            " Pass one record for each label, in their order."
        )
    if isinstance(X, LazyFeatures):
        X = X[:]
    if sparse.issparse(X):
        X = canonical_rows(X)
    elif first.reads_tables:
        declared = is_exactly(first.inner, DECLARED)  # `PublicColumns`
        return X if declared else plain_records(frame_of(X))
    if hasattr(first.estimator, "feature_names_in_"):  # declared: an array has no names
        with without_warnings():
            options = {"reset": False, "skip_check_array": True}
            without_data(validate_data, first.estimator, X, **options)
    return X if sparse.issparse(X) else with_floats(array_of_records(X))


def check_public_rows(step: Any, X: Any) -> None:
    """Raise ValueError if the public rows of a step, as it was given, are records."""
    public = getattr(step, "public", None)
    if public is not None and (isinstance(X, LazyFeatures) or hasattr(X, "shape")):
        check_apart(public, X)


def number_of(rows: Any) -> int:
    """Return how many records there are. Sensitive where they may be added."""
    shape: Any = getattr(rows, "shape", ())
    if len(shape) == 2:  # of a table of any types
        return int(shape[0])
    if hasattr(rows, "shape") or not hasattr(rows, "__len__"):
        rows = rows if sparse.issparse(rows) else array_of(rows)
        return int(rows.shape[0]) if rows.ndim else 1
    return without_data(len, rows)


def by_record(step: Step, rows: Any, *, charged: bool = False) -> Any:
    """Return what a fitted step makes of records, in their order.

    ``rows`` are sensitive. The result, a float64 or CSR array, has shape (n_samples,
    n_outputs); each row of it follows from its own record and the fitted step.

    ``charged`` is whether the step is private, or comes after a private one, or takes
    numbers within `charged_before`. Then no value of a record is an error, which would
    reveal it after the charge: a record of which the step makes a number that is not
    finite, or nothing, gets a row of zeros. TypeError or ValueError if the step does
    not return one row for each record, or refuses one, unless ``charged``.

    **Proof.** A public step that takes numbers gets each of them as float64, whatever
    types the columns have that other records are in, and computes each entry of a row
    from that row alone, in chunks of one size, the last filled up with zeros;
    of sparse rows, entry by entry, or row by row, whose entries it adds up in order.
    `PublicColumns` and hashing read value by value. Our transformers multiply rows by a
    matrix: 1,024 at a time, the last filled up, on one core
    (`core.sums.records.full_chunks`), or one by one where products may have several
    threads. Any other step gets one row at a time, of types that follow from this row
    (`_row`); that it keeps nothing of a row for the next is assumed, and stated. A row
    of zeros, where ``charged``, follows from what the step makes of the record, and its
    width and format from public facts and releases.
    """
    if step.takes_numbers:
        rows = numbers_of(rows)
    n_rows = number_of(rows)
    numbers = sparse.issparse(rows) or isinstance(rows, np.ndarray)
    charged = charged or (is_charged() and numbers and rows.dtype.kind == "f")
    given: Iterable[Any]
    one_by_one = not (step.record_wise or step.private)
    with one_thread_a_product(), without_warnings(), np.errstate(all="ignore"):
        if step.record_wise:
            dense = step.takes_numbers and isinstance(rows, np.ndarray)
            given = full_chunks(rows, size=_size(rows.shape[1])) if dense else [rows]
        elif step.private and not sparse.issparse(rows):
            given = full_chunks(np.asarray(rows), alone=not keeps_one_thread())
        else:
            given = (_row(rows, place) for place in range(n_rows))
        if charged and one_by_one:
            empty = _transformed(step, np.zeros((1, rows.shape[1]))) * 0.0
            found = [_or_empty(step, part, empty) for part in given]
        else:
            found = [_transformed(step, part) for part in given]
    n_sparse = sum(map(sparse.issparse, found))
    if 0 < n_sparse < len(found):
        raise ValueError(
            f"step {step.name!r} must return sparse rows for all records or for none."
        )
    if n_sparse:
        made = sparse.csr_array(sparse.vstack(found)).astype(np.float64)[:n_rows]
    else:  # numbers beside texts stay numbers
        made = np.concatenate([with_floats(part) for part in found])[:n_rows]
    return _finite(made) if charged else made


def _size(n_columns: int) -> int:
    """Return how many rows a step gets at a time: two or more, and few of wide ones.

    NumPy's einsum cuts the sum of one row of 8,192 numbers otherwise than of several;
    and some steps make many outputs of a wide row.
    """
    return max(2, min(CHUNK_ROWS, 2**12 // max(n_columns, 1)))


def _or_empty(step: Step, row: Any, empty: Any) -> Any:
    """Return what a step makes of a row, or zeros where it fails."""
    try:
        made = _transformed(step, row)
        good = made.shape == empty.shape and made.dtype.kind in "biuf"
    except (TypeError, ValueError):
        good = False
    if not good:
        return empty
    if sparse.issparse(empty):
        return sparse.csr_array(made)
    return made.toarray() if sparse.issparse(made) else made


def _finite(rows: Any) -> Any:
    """Return rows, those with a number that is not finite as zeros."""
    if not sparse.issparse(rows):
        return np.where(np.isfinite(rows).all(axis=1)[:, None], rows, 0.0)
    owners = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    bad = np.unique(owners[~np.isfinite(rows.data)])
    rows.data[np.isin(owners, bad)] = 0.0
    return rows


def _transformed(step: Step, rows: Any) -> Any:
    """Return one row for each record, or raise ValueError."""
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
    """Return one record, as `rows_of` has it, or as a step before made it.

    What steps made of several stands together in objects, if one of them is a text.
    """
    one = slice(place, place + 1)
    row = rows.iloc[one] if hasattr(rows, "iloc") else rows[one]
    return with_floats(row) if isinstance(row, np.ndarray) and row.ndim == 2 else row


def through_public_steps(rows: Any, steps: Sequence[Step]) -> tuple[Any, list[Step]]:
    """Return what the first public steps make of records, and the steps after them.

    TypeError or ValueError as for `by_record`, or if a number is not finite.
    """
    first = next(place for place, step in enumerate(steps) if step.private)
    for step in steps[:first]:
        if step.takes_numbers:
            rows = numbers_of(rows)
        if not step.declared:  # learns nothing; checks the columns
            without_data_of_others(step, step.estimator.fit, rows)
        rows = by_record(step, rows)
    return numbers_of(rows), list(steps[first:])


def numbers_of(rows: Any) -> Any:
    """Return rows of finite float64, or raise: of dates all decide the unit."""
    check_columns(X=rows)
    return checked(check_array, rows, accept_sparse="csr", dtype=np.float64, order="C")
