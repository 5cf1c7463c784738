"""How many records does a class need? Estimators at 1 to 500 records of each.

Every draw takes as many records of each class from the split ``train`` (all there are,
of a class with fewer) and keeps a tenth of each class, 200 at most, apart; every
estimator is fitted with its defaults. Tables hold the accuracy on the split ``test``,
on 4,000 rows of it at most:

    python benchmarks/few.py banking77.h5 --out few_banking77.json
    python benchmarks/few.py --curves few_banking77.json few_cifar10_128.json ...

The second line writes the curves by which `privfeat.analysis.planning` recommends an
estimator: accuracies on the rows kept apart, so that no choice depends on test rows.

Beside them stand published methods, run here. The papers print figures for other
networks, so none is copied:

- *DP-Adam head, tuned* (Tobaben et al. 2023): a linear head by DP-Adam, whose steps,
  rate and clip norm are the best of ``--trials`` random ones on the rows kept apart,
  which costs them no budget. Full batches, one end of the range in the paper.
- *private means* (Wahdany et al. 2024, DPPL-Mean): noisy means of rows of unit norm,
  zCDP accounting, the most similar by cosine.
- *names*, *head*: estimators with a prior, sentence embeddings of the names of the
  classes (``--names``, an archive of NumPy) or a head fitted to as many public rows of
  each class (``--head 10``), which no draw takes; and these alone.
- *public prototypes* (the same, DPPL-Public): the exponential mechanism chooses for
  each class one of the public rows by the sum of its cosines with the class's records,
  cut to [0, 1]; pure epsilon. Here the public rows are those kept apart, of the same
  kind as the private ones, which no user has.
"""

import argparse
import json
import math
import warnings
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from _results import Cells, keep_tables, markdown_table, settings_of
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

import privfeat
from privfeat.core.accounting import conversions

SHOTS = (1, 2, 5, 10, 20, 50, 100, 250, 500)
EPSILONS = (1.0, 2.0, 4.0, 8.0)
ESTIMATORS = ("DPFC", "DPLeastSquares", "DPNearestMean")
WITH_PRIOR = ("DPFC", "DPLeastSquares")
KNOWN = [f"{name}, {kind}" for kind in ("names", "head") for name in WITH_PRIOR]
KNOWN += ["names alone", "head alone"]
HEAD, MEANS, PUBLIC = "DP-Adam head, tuned", "private means", "public prototypes"
FREE = "non-private"
# where the slower methods, and the delta of the few-shot protocol, are measured
FEW_SHOTS, FEW_EPSILONS = (5, 50, 500), (1.0, 8.0)
MOST_TESTED = 4_000  # test rows, the same of every draw
CURVES = Path(privfeat.__file__).with_name("analysis") / "few_records.json"
# what is judged on the rows kept apart as well
CURVES_OF = {f"{name} {epsilon:g}" for name in ESTIMATORS for epsilon in EPSILONS}
Scores = dict[str, dict[str, list[float]]]
Prior = tuple[str, Any, Callable[[np.ndarray], np.ndarray]]  # name, prior, prediction


def main() -> None:
    """Print two tables of a feature file, or write the curves."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("features", nargs="?", type=Path)
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1, 8, 2, 4])
    parser.add_argument("--shots", nargs="+", type=int, default=list(SHOTS))
    parser.add_argument("--few", nargs="*", type=int, default=list(FEW_SHOTS))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--trials", type=int, default=10)
    priors = parser.add_mutually_exclusive_group()
    priors.add_argument("--names", type=Path, help=".npz with class_name_features")
    priors.add_argument("--head", type=int, default=0, help="public rows of a class")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--curves", nargs="+", type=Path, help="results; writes these")
    args = parser.parse_args()
    if args.curves:
        write_curves([json.loads(p.read_text(encoding="utf-8")) for p in args.curves])
        return
    warnings.simplefilter("ignore", privfeat.PrivacyWarning)
    warnings.simplefilter("ignore", ConvergenceWarning)
    file = privfeat.open_features(args.features)
    settings = settings_of(args, "features", "epsilons", "shots", "curves")
    kept = Cells(args.out, settings)
    kept.content = {"test": {}, "apart": {}} | kept.content
    kept.content["set"] = args.features.stem
    for epsilon in args.epsilons:
        measure(file, kept, epsilon, args)
        print_tables(kept.content)
    keep_tables(args.out)


def measure(file: Any, kept: Cells, epsilon: float, args: argparse.Namespace) -> None:
    """Add the accuracies at an epsilon, on both kinds of rows, and the sizes."""
    # of unit norm, as every method has them
    X, y = unit(file["train"].X[:].astype(np.float32)), np.asarray(file["train"].y)
    test = unit(file["test"].X[:].astype(np.float32)), np.asarray(file["test"].y)
    if len(test[1]) > MOST_TESTED:
        some = np.random.default_rng(0).permutation(len(test[1]))[:MOST_TESTED]
        test = test[0][some], test[1][some]
    m, prior = len(file.class_names), names_of(args.names) if args.names else None
    apart = [min(200, max(1, int(np.sum(y == c)) // 10)) for c in range(m)]
    left = np.bincount(y, minlength=m) - apart - args.head
    shots = [k for k in args.shots if np.mean(left >= k) >= 0.5]
    kept.content |= {"n_classes": m, "n_features": X.shape[1], "shots": shots}
    for k in shots:
        if str(k) in kept.content["test"].get(f"{ESTIMATORS[0]} {epsilon:g}", {}):
            continue
        settings: dict[str, Any] = {}  # of the tuned head
        scores: dict[str, Scores] = {"test": {}, "apart": {}}
        for draw in range(args.repeats):
            rng = np.random.default_rng(draw)
            orders = [rng.permutation(np.flatnonzero(y == c)) for c in range(m)]
            held = np.concatenate([o[:a] for o, a in zip(orders, apart, strict=True)])
            judged = {"test": test, "apart": (X[held], y[held])}
            parts = zip(orders, apart, strict=True)
            chosen = np.concatenate([o[a : a + k] for o, a in parts])
            data = X[chosen], y[chosen], X[held], y[held]
            if args.head:
                some = np.concatenate([o[len(o) - args.head :] for o in orders])
                prior = head_of(X[some], y[some])
            fits = [methods(*data[:3], m, epsilon, rng, prior)]
            if k in args.few and epsilon in FEW_EPSILONS:
                settings = settings or tuned(data, m, epsilon, args.trials, rng)
                fits.append(few_methods(*data[:2], m, epsilon, settings, rng))
            for key, predict in chain(*fits):
                for kind, (rows, labels) in judged.items():
                    if kind == "test" or key in CURVES_OF:
                        score = round(float(np.mean(predict(rows) == labels)), 4)
                        found = scores[kind].setdefault(key, {})
                        found.setdefault(str(k), []).append(score)
        # a cell is whole or absent
        for kind, found in scores.items():
            for key, of in found.items():
                kept.content[kind].setdefault(key, {}).update(of)
        kept.save()
        print(f"epsilon {epsilon:g}: {k} records a class", flush=True)


def names_of(path: Path) -> Prior:
    """Return what the names of the classes say, of unit norm."""
    names = unit(np.load(path)["class_name_features"].astype(np.float64))
    return "names", names, lambda rows: np.argmax(rows @ names.T, axis=1)


def head_of(X: np.ndarray, y: np.ndarray) -> Prior:
    """Return what a head says that was fitted to these public rows."""
    head = LogisticRegression(C=100.0, max_iter=1000).fit(X, y)
    return "head", FrozenEstimator(head), head.predict


def methods(X, y, public, m, epsilon, rng, prior=None):
    """Yield names of cells and functions that predict, each fitted to these records."""
    budget = {"epsilon": epsilon, "delta": 1e-5, "classes": range(m)}
    for name in ESTIMATORS:
        yield f"{name} {epsilon:g}", getattr(privfeat, name)(**budget).fit(X, y).predict
    if prior is not None:
        kind, known, alone = prior
        for name in WITH_PRIOR:
            clf = getattr(privfeat, name)(**budget, prior=known).fit(X, y)
            yield f"{name}, {kind} {epsilon:g}", clf.predict
        yield f"{kind} alone {epsilon:g}", alone
    yield f"{MEANS} {epsilon:g}", private_means(X, y, m, budget, rng)
    yield f"{PUBLIC} {epsilon:g}", public_prototypes(X, y, public, m, epsilon, rng)


def few_methods(X, y, m, epsilon, settings, rng):
    """Yield what is measured in few cells: slower methods, and delta 1/n."""
    if epsilon == FEW_EPSILONS[0]:
        free = LogisticRegression(C=10.0, max_iter=200).fit(X, y)
        yield f"{FREE} inf", free.predict
    budget = {"epsilon": epsilon, "delta": 1.0 / len(y), "classes": range(m)}
    for name in ESTIMATORS:
        clf = getattr(privfeat, name)(**budget).fit(X, y)
        yield f"{name} {epsilon:g} 1/n", clf.predict
    yield f"{MEANS} {epsilon:g} 1/n", private_means(X, y, m, budget, rng)
    head = privfeat.DPAdamLinear(**settings, **budget)
    yield f"{HEAD} {epsilon:g} 1/n", head.fit(X, y).predict


def private_means(X, y, m, budget, rng):
    """Return the prediction by noisy means of unit rows."""
    rho = conversions.zcdp_rho(budget["epsilon"], budget["delta"])
    sums = np.zeros((m, X.shape[1]))
    np.add.at(sums, y, X)
    means = sums + rng.normal(size=sums.shape) / math.sqrt(2.0 * rho)
    means = unit(means).astype(np.float32)
    return lambda rows: np.argmax(rows @ means.T, axis=1)


def public_prototypes(X, y, public, m, epsilon, rng):
    """Return the prediction by public rows that the exponential mechanism chose."""
    cosines = np.clip(X @ public.T, 0.0, 1.0)
    # of one record more, all utilities grow: no factor of two
    utility = np.stack([epsilon * cosines[y == c].sum(axis=0) for c in range(m)])
    chosen = np.argmax(utility + rng.gumbel(size=utility.shape), axis=1)
    return lambda rows: np.argmax(rows @ public[chosen].T, axis=1)


def tuned(data, m, epsilon, n_trials, rng):
    """Return the best of random settings of the DP-Adam head on the rows apart."""
    X, y, X_apart, y_apart = data
    budget = {"epsilon": epsilon, "delta": 1.0 / len(y), "classes": range(m)}
    found = []
    for trial in range(n_trials):
        settings = {
            "center": False,
            "n_iter": int(2.0 ** rng.uniform(0, 7)),
            "learning_rate": float(10.0 ** rng.uniform(-4, 0)),
            "gradient_clip_norm": float(10.0 ** rng.uniform(-1, 0.15)),
        }
        clf = privfeat.DPAdamLinear(**settings, **budget).fit(X, y)
        found.append((clf.score(X_apart, y_apart), trial, settings))
    return max(found)[2]


def unit(rows):
    """Return rows of unit norm."""
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)


def print_tables(found: dict[str, Any]) -> None:
    """Print all cells with delta 1e-5, then those with delta 1/n."""
    for label in ("", " 1/n"):
        few = [str(k) for k in found["shots"] if not label or k in FEW_SHOTS]
        rows = []
        measured = {key.removesuffix(" 1/n").split()[-1] for key in found["test"]}
        for epsilon in sorted(measured - {"inf"}, key=float):
            for method in (*ESTIMATORS, *KNOWN, HEAD, MEANS, PUBLIC):
                cells = found["test"].get(f"{method} {epsilon}{label}")
                if cells is not None:
                    rows.append(
                        [epsilon, method, *(shown(cells.get(k, [])) for k in few)]
                    )
        cells = found["test"].get(f"{FREE} inf")
        if label and cells:
            rows.append(["inf", FREE, *(shown(cells.get(k, [])) for k in few)])
        if not rows:
            continue
        title = f"{found['set']}, delta {label.strip() or '1e-5'}"
        print(f"\n{title}\n")
        print(markdown_table(["epsilon", "records a class", *few], rows, title))


def shown(scores: list[float]) -> str:
    """Return mean and standard error in percent; "-" of a cell not measured."""
    if not scores:
        return "-"
    error = np.std(scores, ddof=1) / math.sqrt(len(scores)) if scores[1:] else 0.0
    return f"{100 * np.mean(scores):.1f} ± {100 * error:.1f}"


def write_curves(results: list[dict[str, Any]]) -> None:
    """Write what the package recommends from: means over draws, rows kept apart."""
    sets = []
    for name in dict.fromkeys(found["set"] for found in results):
        parts = [found for found in results if found["set"] == name]
        apart = dict(chain.from_iterable(part["apart"].items() for part in parts))
        shots = parts[0]["shots"]
        epsilons = [e for e in EPSILONS if f"DPFC {e:g}" in apart]
        if len(epsilons) < 2:
            continue  # nothing lies between
        cells = {
            method: [
                [cell(apart[f"{method} {e:g}"][str(k)]) for e in epsilons]
                for k in shots
            ]
            for method in ESTIMATORS
        }
        sets.append(
            {
                "name": name,
                "sources": [f"{p['command']}, commit {p['commit']}" for p in parts],
                "n_classes": parts[0]["n_classes"],
                "n_features": parts[0]["n_features"],
                "records_per_class": shots,
                "epsilons": epsilons,
                "cells": cells,
            }
        )
    text = json.dumps({"delta": 1e-5, "sets": sets}, separators=(",", ":"))
    CURVES.write_text(text.replace("]],", "]],\n").replace("},{", "},\n{") + "\n")


def cell(scores: list[float]) -> tuple[float, float]:
    """Return mean and standard error."""
    error = np.std(scores, ddof=1) / math.sqrt(len(scores))
    return round(float(np.mean(scores)), 4), round(float(error), 4)


if __name__ == "__main__":
    main()
