"""How long does a fit to sparse rows take that would not fit into memory as dense ones?

22,000 texts of about 100 different words each, of a vocabulary of 20,000, as TF-IDF: 18
MB, and 3.5 GB as a dense array. Words follow Zipf's law, and each of the 20 classes
prefers words of its own.

    python benchmarks/sparse_rows.py --out benchmarks/results/sparse_rows.json
"""

import argparse
import resource
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from _results import keep_tables, markdown_table, write_json
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import TfidfTransformer

from privfeat import DPAdamLinear, DPLeastSquares

BAR_SECONDS = 60.0
# Words that `DPLeastSquares` fits to, which sums their products: the most frequent.
N_COMMON = 2_000


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, nargs=3, default=(22_000, 20_000, 20))
    parser.add_argument("--words", type=int, default=120, help="drawn for each text")
    parser.add_argument("--epsilon", type=float, default=4.0)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    n, d, m = args.size
    X, y = texts(2 * n, d, m, args.words)
    options: dict[str, Any] = {
        "epsilon": args.epsilon,
        "classes": range(m),
        "center": False,
        "random_state": 0,
    }
    cases = {
        "DPAdamLinear": (DPAdamLinear(**options), X),
        "DPLeastSquares, common words": (DPLeastSquares(**options), X[:, :N_COMMON]),
    }
    results = []
    for name, (estimator, rows) in cases.items():
        found = measure(estimator, rows[:n], y[:n], rows[n:], y[n:])
        results.append({"name": name, "shape": rows[:n].shape, **found})
    print(
        markdown_table(
            [
                *("fit", "rows x columns", "entries a row", "fit s", "CPU s"),
                *("predict s", "accuracy", "peak GiB", f"below {BAR_SECONDS:.0f} s"),
            ],
            [
                [
                    one["name"],
                    "{:,} x {:,}".format(*one["shape"]),
                    f"{one['entries']:.0f}",
                    f"{one['seconds']:.1f}",
                    f"{one['cpu_seconds']:.1f}",
                    f"{one['predict_seconds']:.2f}",
                    f"{one['accuracy']:.3f}",
                    f"{one['peak_gib']:.2f}",
                    "yes" if one["seconds"] < BAR_SECONDS else "no",
                ]
                for one in results
            ],
            name="sparse_rows",
        )
    )
    if args.out:
        write_json(args.out, {"results": results})
    keep_tables(args.out)


def texts(n: int, d: int, m: int, n_words: int) -> tuple[csr_array, np.ndarray]:
    """Return TF-IDF rows of texts, columns by falling frequency, and their classes."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, m, n)
    common = np.cumsum(1.0 / np.arange(1, d + 1))
    words = np.searchsorted(common / common[-1], rng.random((n, n_words)))
    # every fifth word is of the class: one of each run of m words is
    own = rng.random((n, n_words)) < 0.2
    words = np.where(own, words // m * m + y[:, None], words).clip(0, d - 1)
    rows = np.repeat(np.arange(n), n_words)
    counts = csr_array((np.ones(n * n_words), (rows, words.ravel())), shape=(n, d))
    return csr_array(TfidfTransformer().fit_transform(counts)), y


def measure(
    estimator: Any, X: csr_array, y: np.ndarray, X_test: csr_array, y_test: np.ndarray
) -> dict[str, float]:
    """Return the times of one fit and of predictions, and the accuracy."""
    start, cpu = time.perf_counter(), time.process_time()
    estimator.fit(X, y)
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu
    start = time.perf_counter()
    accuracy = estimator.score(X_test, y_test)
    return {
        "entries": X.nnz / X.shape[0],
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "predict_seconds": time.perf_counter() - start,
        "accuracy": accuracy,
        "peak_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }


if __name__ == "__main__":
    main()
