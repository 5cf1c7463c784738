"""Records of whole numbers, as the sums of the core take them."""

import jax
import jax.numpy as jnp
import numpy as np

from privfeat.core.sums.records import CHUNK_ROWS, Chunk


class Records:
    """Records of whole numbers as the core's ``Rows``, a few rows to a chunk."""

    step, sparse, users = 2.0**-20, False, None

    def __init__(self, rows, labels, n_together=CHUNK_ROWS):
        self.n_columns = rows.shape[1]
        self._rows, self._labels, self._n_together = rows, labels, n_together

    def chunks(self):
        for start in range(0, len(self._rows), self._n_together):
            rows = self._rows[start : start + self._n_together]
            labels = self._labels[start : start + self._n_together]
            empty = CHUNK_ROWS - len(rows)
            rows = np.pad(rows, ((0, empty), (0, 0)))
            labels = np.pad(labels, (0, empty), constant_values=-1)[:, None]
            with jax.enable_x64(True):
                yield Chunk(
                    jnp.asarray(rows, jnp.float32),
                    jnp.asarray(np.linalg.norm(rows, axis=1) * self.step),
                    jnp.asarray(labels, jnp.int32),
                )


def unit_records(n_rows, n_columns=3, seed=0):
    """Rows of norm just below one, in units of the grid."""
    rows = np.random.default_rng(seed).normal(size=(n_rows, n_columns))
    rows *= (1.0 - 1e-9) * 2**20 / np.linalg.norm(rows, axis=1, keepdims=True)
    return np.trunc(rows)
