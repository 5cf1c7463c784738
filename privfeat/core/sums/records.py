"""How a fit hands its records to the core: chunks of one shape, any number of times."""

from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, runtime_checkable

import jax
import numpy as np
from jaxtyping import Array, Float32, Float64, Int, Shaped
from scipy.sparse import csr_array

from privfeat.core.bounds.user_clips import UserClip

# Functions of one row always see so many at once (`calls.by_chunks`).
CHUNK_ROWS = 2**10
# Rows of a fit: with these, the margin of ``sensitivity`` covers the rounding of sums.
# `estimation/rows/bounded`, `estimation/team` and `check_number` refuse more.
MAX_ROWS = 2**32


def check_number(n_records: int) -> None:
    """Raise ValueError for more records than the margins of bounds cover."""
    if n_records > MAX_ROWS:
        raise ValueError(f"X must have at most {MAX_ROWS} rows, got more.")


@partial(
    jax.tree_util.register_dataclass,
    data_fields=("rows", "row_norms", "labels", "users"),
    meta_fields=(),
)
@dataclass(frozen=True)
class Chunk:
    """The records of a call, `calls.rows_of_call` of them. Sensitive.

    The last may be empty slots.

    Attributes
    ----------
    rows : array of shape (n_rows, n_columns), float32
        Bounded rows in steps of the grid, from ``rows.clip_rows``; zero for an
        empty slot.
    row_norms : array of shape (n_rows,), float64
        At least their norms, in feature units.
    labels : array of shape (n_rows, max_labels), int32
        Class indices that a record carries, in any order, filled up with -1. Only those
        in ``[0, n_outputs)`` count, each once.
    users : int array of shape (n_rows,), optional
        Whose each record is, -1 for an empty slot, where sums of users are clipped. All
        records of a user are in one block of slots (``bounds.users``).
    """

    rows: Float32[Array, "b c"]
    row_norms: Float64[Array, " b"]
    labels: Int[Array, "b k"]
    users: Int[Array, " b"] | None = None


@dataclass(frozen=True)
class SparseChunk:
    """A `Chunk` on the host, of rows of which only some entries are stored. Sensitive.

    Attributes
    ----------
    matrix : CSR array of shape (n_rows, n_columns), float64
        Bounded rows, from ``bounds.sparse``.
    row_norms, labels, users
        As of `Chunk`.
    """

    matrix: csr_array
    row_norms: Float64[np.ndarray, " b"]
    labels: Int[np.ndarray, "b k"]
    users: Int[np.ndarray, " b"] | None = None

    @property
    def rows(self) -> Float32[np.ndarray, "b c"]:
        """All entries of this chunk, zeros as well."""
        return np.asarray(self.matrix.toarray(), np.float32)


def full_chunks(
    rows: Shaped[np.ndarray, "n ..."], *, alone: bool = False, size: int = CHUNK_ROWS
) -> Iterator[Shaped[Any, "b ..."]]:
    """Yield rows ``size`` at a time, which is public, the last filled up with zeros.

    Products of matrices round differently for different shapes: in chunks of one shape,
    what a classifier computes of a record does not depend on how many others there are;
    inside `one_thread_a_product`, nor on its place among them. They are in C order
    whatever the rows are: what is added up along a row is so in another order else.
    ``alone`` yields each row of an array, a table or a list by itself, for a classifier
    that may mix the rows of one call. All are copies: it may write into what it gets.
    """
    if alone:
        places: Any = getattr(rows, "iloc", rows)  # of a table
        yield from (copy(places[start : start + 1]) for start in range(len(rows)))
        return
    for start in range(0, len(rows), size):
        part = rows[start : start + size]
        chunk = np.zeros((size, *rows.shape[1:]), rows.dtype)
        chunk[: len(part)] = part
        yield chunk


@runtime_checkable
class Rows(Protocol):
    """The bounded records of a fit, readable any number of times.

    Attributes
    ----------
    step : float or None
        The grid step of the rows, in feature units; None without privacy.
    n_columns : int
        Of every row.
    sparse : bool
        Whether chunks are `SparseChunk`.
    users : UserClip or None
        How sums of users are clipped; None where every record counts by itself.
    """

    step: float | None
    n_columns: int
    sparse: bool
    users: UserClip | None

    def chunks(self) -> Iterable[Any]:
        """Return all records that this process holds, in order."""
        ...
