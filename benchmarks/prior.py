"""What does a public prior buy, and does a bad one cost anything?

Accuracy on test rows, mean and standard error over several fits, without a prior and
with it, beside the prior alone. The names of the classes of Banking77, as sentence
embeddings; heads fitted to a few public images a class of CIFAR-10, which no private
fit sees; the same with the classes of half of them mixed up, and of all. Data: the
arrays of Banking77 and a feature file of CIFAR-10, or the pixels of scikit-learn's
digits, 100 of them public:

    python benchmarks/prior.py banking77_minilm.npz cifar10.h5 --out prior.json
    python benchmarks/prior.py digits --epsilons 0.05 0.2 1 4 8 --out prior_digits.json

With ``--evidence``, without a fit: by how many standard errors all releases together
tell a prior from one that knows nothing, the most that any rule can go by.
"""

import argparse
import warnings
from copy import copy
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from _results import Cells, keep_tables, markdown_table, settings_of, write_json
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

import privfeat

CLASSIFIERS = ("DPFC", "DPAdamLinear", "DPLeastSquares")
N_PUBLIC = 10_000  # of the training images, from which heads are fitted
MARGIN = 0.5  # points that a prior may lose against the better of the two


def main() -> None:
    """Print one table for each data set and estimator, and write their numbers."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, nargs="+", help=".npz, feature file, digits")
    parser.add_argument("--estimators", nargs="+", default=CLASSIFIERS)
    parser.add_argument(
        "--epsilons", nargs="+", type=float, default=[0.01, 0.1, 0.5, 1, 2, 8]
    )
    parser.add_argument("--records", type=int, help="of the private images; all")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--evidence", action="store_true")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore", privfeat.PrivacyWarning)
    sets = {}
    for path in args.data:
        if path.suffix == ".npz":
            sets["Banking77"] = texts(path)
        elif path.name == "digits":
            sets["digits"] = digits()
        else:
            sets["CIFAR-10"] = images(path, args.records)
    if args.evidence:
        tell_evidence(sets, args)
        return
    settings = settings_of(args, "estimators", "epsilons", "evidence")
    kept, cells = Cells(args.out, settings), {}
    for name, (train, test, options, priors) in sets.items():
        for kind in args.estimators:
            rows = []
            for prior_name, prior in {"none": None, **priors}.items():
                own = alone(prior, options, train, test)
                estimators = {
                    f"{epsilon:g}": getattr(privfeat, kind)(
                        epsilon=epsilon, prior=prior, **options
                    )
                    for epsilon in args.epsilons
                }
                cell = f"{name}, {kind}, {prior_name}"
                found = {
                    epsilon: kept.get(
                        f"{cell}, {epsilon}",
                        partial(scores, clf, train, test, args.repeats),
                    )
                    for epsilon, clf in estimators.items()
                }
                cells[cell] = found | {"alone": own}
                row = [f"{np.mean(x):.1f} ± {error(x):.1f}" for x in found.values()]
                rows.append([prior_name, "" if own is None else f"{own:.1f}", *row])
            header = ["prior", "alone", *(f"{e:g}" for e in args.epsilons)]
            print(f"{name}, {kind}\n")
            print(markdown_table(header, rows, f"{name}, {kind}") + "\n", flush=True)
    lost = losses(cells)
    print(f"cells more than {MARGIN} below the better of the two: {lost or 'none'}")
    alone_of = {name: cell["alone"] for name, cell in cells.items()}
    kept.content |= {"alone": alone_of, "lost": lost}
    kept.save()
    keep_tables(args.out)


def scores(clf: Any, train: Any, test: Any, repeats: int) -> list[float]:
    """Return the test accuracies of several fits in percent."""
    return [
        round(100.0 * clone(clf).fit(*train).score(*test), 3) for _ in range(repeats)
    ]


def texts(path: Path) -> tuple[Any, Any, dict[str, Any], dict[str, Any]]:
    """Return sentences in 77 classes, and what the names of the classes score."""
    data = np.load(path)
    train, test = ((data[f"X_{s}"], data[f"y_{s}"]) for s in ("train", "test"))
    names = data["class_name_features"].astype(np.float64)
    names /= np.linalg.norm(names, axis=1, keepdims=True)
    options = {"classes": range(len(names))}
    return train, test, options, {"names": names, **worse(names)}


def images(path: Path, n_records: int | None) -> tuple[Any, Any, dict[str, Any], Any]:
    """Return images, and heads that were fitted to a few others."""
    data = privfeat.open_features(path)
    X, y = data["train"].X[:], np.asarray(data["train"].y)
    order = np.random.default_rng(0).permutation(len(X))
    public, private = order[:N_PUBLIC], order[N_PUBLIC:][:n_records]
    heads = {}
    for n_each in (10, 100):
        some = [public[y[public] == label][:n_each] for label in np.unique(y)]
        rows = X[np.concatenate(some)].astype(np.float64)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        head = LogisticRegression(C=100.0, max_iter=1000)
        head.fit(rows, np.repeat(np.unique(y), [len(part) for part in some]))
        heads[f"{n_each} images a class"] = FrozenEstimator(head)
    test = data["test"].X[:], np.asarray(data["test"].y)
    options = {"classes": data.classes if hasattr(data, "classes") else np.unique(y)}
    return (X[private], y[private]), test, options, heads | worse(head.coef_)


def digits() -> tuple[Any, Any, dict[str, Any], dict[str, Any]]:
    """Return digits of unit norm, and heads that were fitted to 100 others."""
    X, y = load_digits(return_X_y=True)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    order = np.random.default_rng(0).permutation(len(y))
    public, test, private = np.split(order, [100, 500])
    head = LogisticRegression(C=100.0, max_iter=1000).fit(X[public], y[public])
    heads: dict[str, Any] = {"right": FrozenEstimator(head)}
    whole = np.column_stack([head.coef_, head.intercept_])
    for name, wrong in worse(whole).items():
        mixed = copy(head)
        mixed.coef_, mixed.intercept_ = wrong[:, :-1], wrong[:, -1]
        heads[name] = FrozenEstimator(mixed)
    train, held = ((X[part], y[part]) for part in (private, test))
    return train, held, {"classes": range(10)}, heads


def worse(coef: np.ndarray) -> dict[str, np.ndarray]:
    """Return a prior with the classes of half of its rows mixed up, and of all."""
    n = len(coef)
    rng = np.random.default_rng(0)
    mixed = rng.permutation(n)[: n // 2]
    half = coef.copy()
    half[mixed] = coef[np.roll(mixed, 1)]
    return {"half wrong": half, "random": coef[np.roll(rng.permutation(n), 1)]}


def alone(prior: Any, options: dict[str, Any], train: Any, test: Any) -> float | None:
    """Return the accuracy of a prior in percent."""
    if prior is None:
        return None
    rows, seen = (
        X / np.linalg.norm(X, axis=1, keepdims=True)
        for X in (test[0].astype(np.float64), train[0].astype(np.float64))
    )
    if hasattr(prior, "predict"):
        return float(100.0 * prior.score(rows, test[1]))
    rows -= seen.mean(axis=0)  # not private: better than what a fit can know
    best = np.asarray(options["classes"])[np.argmax(rows @ prior.T, axis=1)]
    return float(100.0 * np.mean(best == test[1]))


def tell_evidence(sets: dict[str, Any], args: argparse.Namespace) -> None:
    """Print the evidence on each prior, and write it."""
    found = {}
    for name, (train, _, options, priors) in sets.items():
        for kind in args.estimators:
            rows = []
            for prior_name, prior in priors.items():
                values = [
                    evidence(
                        getattr(privfeat, kind)(epsilon=e, **options), prior, train
                    )
                    for e in args.epsilons
                ]
                found[f"{name}, {kind}, {prior_name}"] = values
                rows.append([prior_name, *(f"{value:.1f}" for value in values)])
            header = ["prior", *(f"{e:g}" for e in args.epsilons)]
            title = f"{name}, {kind}: evidence"
            print(f"{markdown_table(header, rows, title)}\n", flush=True)
    if args.out:
        write_json(args.out, {"evidence": found})
        keep_tables(args.out)


def evidence(clf: Any, prior: Any, train: Any) -> float:
    """Return the projection of the sums of the classes on a prior over its noise.

    For rows around their exact mean; by the noise of all gradients, or class sums.
    Gradients at coefficients of zero have one norm, and are clipped by one factor.
    """
    rows = train[0] / np.linalg.norm(train[0], axis=1, keepdims=True)
    rows = rows - rows.mean(axis=0)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    coef = prior.estimator.coef_ if hasattr(prior, "predict") else prior
    coef = coef - coef.mean(axis=0)
    labels = np.searchsorted(np.asarray(clf.classes), train[1])
    planned = {one.query.name: one for one in clf.planned(rows.shape[1]).releases}
    release = planned.get("gradient") or planned["class_sums"]
    noise = release.noise_stddev / release.query.count**0.5
    if "gradient" in planned:
        noise *= max(1.0, np.sqrt(1.0 - 1.0 / len(coef)) / clf._gradient_clip)
    return float(np.sum(rows * coef[labels]) / np.linalg.norm(coef) / noise)


def losses(cells: dict[str, Any]) -> list[str]:
    """Return the cells where a prior loses to none, or to itself alone."""
    found = []
    for name, cell in cells.items():
        without = cells[f"{name.rsplit(', ', 1)[0]}, none"]
        for epsilon in cell.keys() - {"alone"}:
            best = max(np.mean(without[epsilon]), cell["alone"] or -np.inf)
            if np.mean(cell[epsilon]) < best - MARGIN:
                found.append(f"{name}, {epsilon}")
    return sorted(found)


def error(values: list[float]) -> float:
    """Return the standard error of a mean."""
    return float(np.std(values, ddof=1) / len(values) ** 0.5) if values[1:] else 0.0


if __name__ == "__main__":
    main()
