"""The records of a fit whose rows are sparse: nothing is centred, nothing is dense."""

from collections.abc import Iterator

import numpy as np
from scipy.sparse import csr_array

from privfeat.core.bounds.grid import grid_step
from privfeat.core.bounds.sparse import clip_sparse_rows, with_column
from privfeat.core.sums.records import CHUNK_ROWS, SparseChunk
from privfeat.estimation.rows.bounded import BoundedRows


class SparseRows(BoundedRows):
    """`BoundedRows` of a CSR array from ``core.bounds.sparse.canonical_rows``.

    They are centred around zero: around anything else they would be dense.
    """

    sparse = True

    def _bounded_chunks(self, starts: range) -> Iterator[SparseChunk]:
        return map(self._sparse_chunk, starts)

    def _sparse_chunk(self, start: int) -> SparseChunk:
        """Return a chunk of `CHUNK_ROWS` rows, the last ones empty if need be."""
        part = slice(start, start + CHUNK_ROWS)
        stop = min(part.stop, len(self._labels))
        rows, step = self._features[self._at(start, stop)], self.step
        if self._private or self.row_scaling == "unit":
            rows = clip_sparse_rows(
                rows,
                clip_norm=self.clip_norm,
                row_scaling=self.row_scaling,
                intercept_scaling=self._intercept_scaling,
            )
            if step is None:
                rows.data *= grid_step(self.clip_norm)
        elif self._intercept_scaling is not None:
            rows = with_column(rows, np.full(rows.shape[0], self._intercept_scaling))
        counts, kept = np.diff(rows.indptr), self._kept[part]
        data = np.where(np.repeat(kept, counts), rows.data, 0.0)
        row_of = np.repeat(np.arange(len(counts)), counts)
        norms = np.sqrt(np.bincount(row_of, data**2, CHUNK_ROWS)) * (step or 1.0)
        padding = CHUNK_ROWS - len(counts)
        matrix = csr_array(
            (data, rows.indices, np.pad(rows.indptr, (0, padding), "edge")),
            shape=(CHUNK_ROWS, self.n_columns),
        )
        labels = np.pad(self._labels[part], ((0, padding), (0, 0)), constant_values=-1)
        return SparseChunk(matrix, norms, labels, self._users(start, CHUNK_ROWS))
