"""Digests of exact sums over the same records, on the device of this process.

python _gpu_sums.py N_ROWS

prints them as JSON, for ``gpu.py`` to compare. Rows are whole numbers, the largest
among them, so that nothing but the sums can differ between devices.
"""

import hashlib
import json
import sys
from collections.abc import Iterator

import jax
import numpy as np

from privfeat.core.sums import devices
from privfeat.core.sums.arithmetic import slices
from privfeat.core.sums.calls import rows_of_call
from privfeat.core.sums.records import Chunk
from privfeat.core.sums.statistics import (
    exact_class_grams,
    exact_class_sums,
    exact_gradient,
    exact_gram,
)
from privfeat.core.sums.totals import ExactSum

N_COLUMNS, N_CLASSES = 200, 8
LIMIT = 2**20


class WholeRows:
    """Whole rows, every fourth of the largest numbers, as the core's ``Rows``."""

    step, n_columns, sparse, users = 1.0 / LIMIT, N_COLUMNS, False, None

    def __init__(self, n_rows: int, largest: int) -> None:
        rng = np.random.default_rng(0)
        self.rows = rng.integers(-largest, largest + 1, (n_rows, N_COLUMNS))
        self.rows[::4] = largest - rng.integers(0, 2, (len(self.rows[::4]), N_COLUMNS))
        self.labels = rng.integers(0, N_CLASSES, (n_rows, 1))

    def chunks(self) -> Iterator[Chunk]:
        """Yield calls of the size that the device takes."""
        size = rows_of_call(N_COLUMNS)
        for start in range(0, len(self.rows), size):
            part = slice(start, start + size)
            padding = ((0, size - len(self.rows[part])), (0, 0))
            rows = np.pad(self.rows[part], padding).astype(np.float32)
            labels = np.pad(self.labels[part], padding, constant_values=-1)
            # a power of two above the norms: roots are not what is compared
            norms = np.full(size, 16.0)
            with jax.enable_x64(True):
                yield Chunk(*jax.device_put((rows, norms, labels.astype(np.int32))))


def digests(n_rows: int, sliced: bool) -> dict[str, str]:
    """Return a digest of each sum, by products of slices or of float64."""
    slices.uses_slices = lambda: sliced
    devices.check_exact_products()
    # entries, and norms, as large as the proofs allow
    rows, short = WholeRows(n_rows, LIMIT), WholeRows(n_rows, LIMIT >> 4)
    coef = np.random.default_rng(1).normal(size=(N_CLASSES, N_COLUMNS)) / 8.0
    zero = np.zeros_like(coef)
    sums: dict[str, list[ExactSum]] = {
        "Gram matrix": [exact_gram(rows)],
        "Gram matrix of rows clipped again": [exact_gram(rows, clip_norm=0.5)],
        "Gram matrices of classes": list(exact_class_grams(rows, N_CLASSES)),
        "sums of classes": [exact_class_sums(rows, N_CLASSES)],
        # of zero coefficients: residuals are labels, without exp and without a root
        "squared gradient": [exact_gradient(rows, zero, loss="squared", clip_norm=8)],
        "softmax gradient": [exact_gradient(short, coef, loss="softmax", clip_norm=8)],
    }
    return {name: _digest(found) for name, found in sums.items()}


def _digest(sums: list[ExactSum]) -> str:
    found = hashlib.sha256()
    for exact in sums:
        found.update(exact.total.tobytes())
        found.update(b"" if exact.carry is None else exact.carry.tobytes())
    return found.hexdigest()[:16]


if __name__ == "__main__":
    print(json.dumps(digests(int(sys.argv[1]), sliced=False)))
