"""Which rows of two feature files are most similar, and which are near for certain."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privfeat.data import FeatureFile
from privfeat.data.origin import differing, value

from .errors import ExtractError

BLOCK_ROWS = 4096
_PAIR_ENTRIES = 2**22  # of rows whose pairs are added up at once


@dataclass(frozen=True)
class Best:
    """For each row of a file, the most similar row of the other."""

    similarity: NDArray[np.float32]  # cosine of both rows; 0 for a row of zeros
    row: NDArray[np.int64]  # the other, counted over all splits; the first of equals

    @classmethod
    def of_none(cls, n_rows: int) -> "Best":
        """Return what is known before any row was compared."""
        return cls(np.full(n_rows, -np.inf, np.float32), np.full(n_rows, -1, np.int64))

    def update(
        self,
        rows: NDArray[np.int64],
        similarity: NDArray[np.floating],
        others: NDArray[np.int64],
    ) -> None:
        """Take other rows where they are more similar than what was found before."""
        better = similarity > self.similarity[rows]
        self.similarity[rows[better]] = similarity[better]
        self.row[rows[better]] = others[better]


def nearest(a: FeatureFile, b: FeatureFile) -> tuple[Best, Best]:
    """Return the best of ``b`` for each row of ``a``, and the other way round.

    All pairs are compared, in blocks: memory does not grow with the files but by 12
    bytes a row. Products are in float32, so similarities have errors near 1e-6, which
    hang on the place of a row in its block (`settled`).
    ExtractError if the files are of other networks, or a row is not finite.
    """
    one, two = a.origin, b.origin
    others = ["n_features"] if a.n_features != b.n_features else []
    for name in [*differing(one, two), *others]:
        raise ExtractError(
            f"both files must have the same {name}, got {value(one, name)!r} and "
            f"{value(two, name)!r}. Extract one of them again."
        )
    best_a, best_b = Best.of_none(n_rows(a)), Best.of_none(n_rows(b))
    for start_a, rows_a in unit_blocks(a):
        for start_b, rows_b in unit_blocks(b):
            products = rows_a @ rows_b.T
            for best, found, start, first in (
                (best_a, products, start_a, start_b),
                (best_b, products.T, start_b, start_a),
            ):
                place = np.argmax(found, axis=1)
                rows = np.arange(len(found))
                best.update(start + rows, found[rows, place], first + place)
    return best_a, best_b


def settled(best: Best, a: FeatureFile, b: FeatureFile, threshold: float) -> Best:
    """Return ``best``, of the rows of ``a``, certain of what is near from a threshold.

    Whether a row is near then follows from it and the rows of ``b`` alone, at any place
    and beside any others of ``a``, on any processor.

    *Proof.* A row is near if ``f``, the cosine in float64 of two rows, each sum added
    up within its pair, is at least the threshold for a row of ``b``. A product of rows
    of norm one in float32, summed in any order, is less than half of ``margin`` from
    ``f``: rounding moves it by at most ``d 2^-24`` of a sum of absolute values, which
    is next to 1 at most (Higham 2002, section 3.1), and the two norms by less than
    ``40 2^-24``. So a best product further than ``margin`` from the threshold is on its
    side by ``f`` as well. Of the other rows all pairs that may reach the threshold are
    added up again, and the largest ``f`` stands in place of the product.
    """
    margin = (a.n_features + 64) * 2.0**-22
    found = Best(best.similarity.copy(), best.row.copy())
    near = np.abs(best.similarity - threshold) <= margin
    found.similarity[near] = -np.inf
    for start_a, rows_a in unit_blocks(a):
        some = np.flatnonzero(near[start_a : start_a + len(rows_a)])
        for start_b, rows_b in unit_blocks(b) if len(some) else ():
            products = rows_a[some] @ rows_b.T
            i, j = np.nonzero(products >= threshold - 2.0 * margin)
            size = max(1, _PAIR_ENTRIES // a.n_features)
            for part in (slice(k, k + size) for k in range(0, len(i), size)):
                one, two = some[i[part]], j[part]
                cosines = _cosines(rows_a[one], rows_b[two])
                order = np.lexsort((two, -cosines, one))  # the first is the best
                one, first = np.unique(one[order], return_index=True)
                chosen = order[first]
                found.update(start_a + one, cosines[chosen], start_b + two[chosen])
    return found


def _cosines(one: NDArray[np.float32], two: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the cosine of each pair of rows, 1 of equal ones, 0 beside zeros."""
    x, y = one.astype(np.float64), two.astype(np.float64)
    lengths = np.sqrt(np.sum(x * x, axis=1) * np.sum(y * y, axis=1))
    cosines: NDArray[np.float64] = np.sum(x * y, axis=1)
    return cosines / np.where(lengths > 0.0, lengths, 1.0)


def n_rows(file: FeatureFile) -> int:
    """Return how many rows all splits have."""
    return sum(len(split) for split in file.values())


def unit_blocks(file: FeatureFile) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """Yield rows of norm one, or zero, of all splits, with the number of the first."""
    first = 0
    for split in file.values():
        for start in range(0, len(split), BLOCK_ROWS):
            rows = split.X.read(start, min(start + BLOCK_ROWS, len(split)))
            rows = rows.astype(np.float32, order="C")
            if not np.all(np.isfinite(rows)):
                raise ExtractError(f"{file.path} must hold finite features only.")
            largest = np.max(np.abs(rows), axis=1, keepdims=True, initial=0.0)
            rows /= np.where(largest > 0.0, largest, 1.0)  # no overflow of squares
            norms = np.linalg.norm(rows, axis=1, keepdims=True)
            yield first + start, rows / np.where(norms > 0.0, norms, 1.0)
        first += len(split)
