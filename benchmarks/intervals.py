"""Do the intervals of private regression hold what they say?

Normal rows and a linear relation with normal errors, drawn anew for every fit:

    python benchmarks/intervals.py --fits 100 --out intervals.json

Of intervals at 95 %, the part that holds the coefficient of the population, and the
target of a new record; and their mean width over that of an ordinary fit without
privacy. The standard errors are over fits.
"""

import argparse
import math
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from _results import Cells, keep_tables, markdown_table, settings_of
from sklearn.linear_model import LinearRegression

import privfeat

# The standard deviations of ten features, equal or falling as 1 / j.
SCALES = {"equal": np.ones(10), "falling": 1.0 / np.arange(1.0, 11.0)}
N_NEW = 1000
WHAT = ("coefficients", "new targets", "width", "width of targets")


def main() -> None:
    """Print one table and write its numbers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.5, 1, 2, 8])
    parser.add_argument("--records", nargs="+", type=int, default=[2_000, 20_000])
    parser.add_argument("--fits", type=int, default=100)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore", privfeat.PrivacyWarning)
    rows, kept = [], Cells(args.out, settings_of(args, "epsilons", "records"))
    for name in SCALES:
        for n in args.records:
            for epsilon in args.epsilons:
                cell = f"{name}, n={n}, epsilon={epsilon:g}"
                measure = partial(some_fits, name, n, epsilon, args.fits)
                found = np.array(kept.get(cell, measure))
                errors = found.std(axis=0, ddof=1) / math.sqrt(len(found))
                shown = zip(found.mean(axis=0), errors, strict=True)
                cells = [f"{a:.3f} ± {b:.3f}" for a, b in shown]
                rows.append([f"{name}, n={n:,}", f"{epsilon:g}", *cells])
                print(*rows[-1], flush=True)
    print(markdown_table(["features", "epsilon", *WHAT], rows, "intervals"))
    keep_tables(args.out)


def some_fits(name: str, n: int, epsilon: float, n_fits: int) -> list[list[float]]:
    """Return `one_fit` of several seeds."""
    return [one_fit(name, n, epsilon, seed) for seed in range(n_fits)]


def one_fit(name: str, n: int, epsilon: float, seed: int) -> list[float]:
    """Return coverage and widths of one fit, in the order of ``WHAT``."""
    rng = np.random.default_rng(seed)
    scales, coef = SCALES[name], rng.normal(size=10) / math.sqrt(10.0) / SCALES[name]

    def drawn(n_rows: int) -> tuple[np.ndarray, np.ndarray]:
        X = rng.normal(size=(n_rows, 10)) * scales
        return X, X @ coef + rng.normal(size=n_rows)

    X, y = drawn(n)
    X_new, y_new = drawn(N_NEW)
    model = privfeat.DPLeastSquaresRegressor(
        epsilon=epsilon,
        delta=1.0 / n**2,
        # a bound above almost every row, so that bounded rows have the same relation
        clip_norm=1.5 * float(np.linalg.norm(scales)),
        target_bounds=(-6.0, 6.0),
    ).fit(X, y)
    population = model.coef_interval()
    targets = model.predict_interval(X_new)
    plain = LinearRegression().fit(X, y)
    error = np.sum((y - plain.predict(X)) ** 2) / (n - 11)
    spread = error * np.diag(np.linalg.inv(np.cov(X.T, bias=True) * n))
    usual = 2.0 * 1.96 * np.sqrt(spread)
    return [
        held(population, coef),
        held(targets, y_new),
        float(np.mean(np.diff(population)[:, 0] / usual)),
        float(np.mean(np.diff(targets)) / (2.0 * 1.96 * math.sqrt(error))),
    ]


def held(interval: np.ndarray, values: np.ndarray) -> float:
    """Return the part of values inside their intervals."""
    return float(np.mean((interval[:, 0] <= values) & (values <= interval[:, 1])))


if __name__ == "__main__":
    main()
