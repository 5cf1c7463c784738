"""Records as the core's ``Rows``, made of given whole numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from privfeat.core.records import CHUNK_ROWS, Chunk


class GridRows:
    """Rows that are whole numbers already; ``chunk_rows`` of them to a chunk.

    Labels of shape (n,), or (n, k) filled up with -1.
    """

    def __init__(self, rows, labels, *, step, chunk_rows=CHUNK_ROWS, private=True):
        self.step = step if private else None
        self.n_columns = rows.shape[1]
        self._rows, self._unit = rows, step
        self._labels = labels if labels.ndim == 2 else labels[:, None]
        self._chunk_rows = chunk_rows

    def chunks(self):
        rows, labels = self._rows, self._labels
        for start in range(0, len(rows), self._chunk_rows):
            part = slice(start, start + self._chunk_rows)
            padding = CHUNK_ROWS - len(rows[part])
            block = np.pad(rows[part], ((0, padding), (0, 0))).astype(np.float32)
            norms = np.linalg.norm(block.astype(np.float64), axis=1)
            codes = np.pad(labels[part], ((0, padding), (0, 0)), constant_values=-1)
            if self.step is None:
                block = block * np.float32(self._unit)
            with jax.enable_x64(True):
                yield Chunk(
                    jnp.asarray(block),
                    jnp.asarray(norms * self._unit),
                    jnp.asarray(codes.astype(np.int32)),
                )


@pytest.fixture
def grid_rows():
    return GridRows
