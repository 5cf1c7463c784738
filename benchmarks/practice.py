"""What do the practice tools find on real images?

    python benchmarks/practice.py --features cifar10.h5 \
        --images cifar10-images.tar.xz --out practice.json

Three questions, on a feature file and on images ``train/<class>/*.jpg``, ``test/``
likewise, in a folder or an archive; without one of them, its questions are left out.

- Does the clip norm trade accuracy for calibration (Bu et al. 2023, section 5)? `DPFC`
  by clip norm of the gradient and epsilon, and what private temperature scaling on
  records set aside, at epsilon 1, makes of its calibration.
- The same for a small network by DP-SGD, at one noise for each epsilon.
- Is the accuracy of a large batch what small ones at constant noise of a step predict
  (Sander et al. 2023, section 3.4)? The batch law of the small network, its prediction
  interval, and the large run. Cheap runs have next to no privacy.

What the file of ``--out`` holds already is not run again.
"""

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from _results import keep_tables, markdown_table, read_earlier, write_json
from figures.batch_law import fit_batch_law

import privfeat
from privfeat import DPFC, DPSGDClassifier, TemperatureScaling
from privfeat.analysis.batches import noise_by_batch_size
from privfeat.analysis.calibration import report_of
from privfeat.analysis.tan import TAN, simulate

SETTINGS = ("records", "size", "model", "delta", "clip_norms", "epsilons", "n_iter")
SETTINGS += ("network_clip_norms", "network_epsilons", "epochs", "batch", "rate")
SETTINGS += ("law_batches", "law_target", "law_noise", "law_steps", "law_rate")
SETTINGS += ("law_runs", "seeds")
MEASURES = ("accuracy", "ECE", "NLL", "confidence")
CALIBRATION_RECORDS = 5_000
Cell = dict[str, Any]


class Results:
    """The cells that were run, written after each of them."""

    def __init__(self, out: Path | None, settings: Cell) -> None:
        self.out, self.settings = out, settings
        self.cells: Cell = read_earlier(out, settings).get("cells", {})

    def cell(self, key: str, compute: Callable[[], Cell]) -> Cell:
        """Return what was kept under ``key``, or compute it and keep it."""
        if key not in self.cells:
            self.cells[key] = compute()
            if self.out:
                content = {"settings": self.settings, "cells": self.cells}
                write_json(self.out, content)
        return self.cells[key]


def main() -> None:
    """Print the tables."""
    args = parse()
    warnings.simplefilter("ignore", privfeat.PrivacyWarning)
    settings = {name: getattr(args, name) for name in SETTINGS}
    for name in ("features", "images"):
        path = getattr(args, name)
        settings[name] = path.name if path else None
    results = Results(args.out, settings)
    if args.features:
        of_features(args, results)
    if args.images:
        from dpsgd_accuracy import read_images

        data = read_images(args.images, args.size, args.records)
        of_network(data, args, results)
        batch_law(data, args, results)
    keep_tables(args.out)


def parse() -> argparse.Namespace:
    """Return the arguments."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--features", type=Path)
    parser.add_argument("--images", type=Path)
    parser.add_argument("--delta", type=float, default=1e-5)
    parser.add_argument("--seeds", type=int, default=1, help="fits of a cell")
    parser.add_argument("--out", type=Path)
    linear = parser.add_argument_group("features")
    linear.add_argument("--clip-norms", nargs="+", type=float, default=[0.1, 0.3, 1.0])
    linear.add_argument("--epsilons", nargs="+", type=float, default=[0.5, 2.0, 8.0])
    linear.add_argument("--n-iter", type=int, default=100)
    network = parser.add_argument_group("images")
    network.add_argument("--model", default="simpleVGG-16(2)-32")
    network.add_argument("--records", type=int, default=5_000)
    network.add_argument("--size", type=int, default=16, help="side of the images")
    network.add_argument(
        "--network-clip-norms", nargs="+", type=float, default=[0.1, 1.0, 10.0]
    )
    network.add_argument(
        "--network-epsilons", nargs="+", type=float, default=[2.0, 8.0, 32.0]
    )
    network.add_argument("--epochs", type=float, default=20)
    network.add_argument("--batch", type=int, default=512)
    network.add_argument("--rate", type=float, default=0.002, help="of adam")
    law = parser.add_argument_group("batch law")
    law.add_argument("--law-batches", nargs="+", type=int, default=[64, 128, 256])
    law.add_argument("--law-target", type=int, default=2048)
    law.add_argument("--law-noise", type=float, default=2.5, help="of the target")
    law.add_argument("--law-steps", type=int, default=200)
    law.add_argument("--law-rate", type=float, default=2.0, help="of sgd")
    law.add_argument("--law-runs", type=int, default=3, help="of each small batch")
    return parser.parse_args()


def measure(clf: Any, X: Any, y: np.ndarray) -> Cell:
    """Return the measures of one fitted classifier."""
    found = report_of(clf, X, y)
    confidence = float(np.mean(found.confidence))
    values = (found.accuracy, found.ece, found.nll, confidence)
    return dict(zip(MEASURES, map(float, values), strict=True))


def mean(cells: list[Cell]) -> Cell:
    """Return the mean of each measure."""
    return {name: float(np.mean([cell[name] for cell in cells])) for name in cells[0]}


def of_features(args: argparse.Namespace, results: Results) -> None:
    """Print accuracy and calibration of DPFC by clip norm and epsilon."""
    file = privfeat.open_features(args.features)
    X, y = (np.asarray(part[:]) for part in (file["train"].X, file["train"].y))
    test, y_test = file["test"].X, np.asarray(file["test"].y[:])
    order = np.random.default_rng(0).permutation(len(X))
    n_kept = min(CALIBRATION_RECORDS, len(X) // 10)
    kept, train = order[:n_kept], order[n_kept:]

    def fit(clip_norm: float, epsilon: float) -> Cell:
        cells = []
        for seed in range(args.seeds):
            clf = DPFC(
                epsilon=epsilon,
                delta=args.delta,
                classes=range(int(y.max()) + 1),
                n_iter=args.n_iter,
                gradient_clip_norm=clip_norm,
                random_state=seed,
            ).fit(X[train], y[train])
            scaled = TemperatureScaling(clf, epsilon=1.0, delta=args.delta)
            scaled.fit(X[kept], y[kept])
            found = measure(clf, test, y_test)
            found["ECE, scaled"] = measure(scaled, test[:], y_test)["ECE"]
            cells.append(found)
        return mean(cells)

    table(args.clip_norms, args.epsilons, "DPFC", fit, results)


def of_network(data: Any, args: argparse.Namespace, results: Results) -> None:
    """Print accuracy and calibration of a network by clip norm and epsilon."""
    X, y, X_test, y_test = data

    def fit(clip_norm: float, epsilon: float) -> Cell:
        (least,) = noise_by_batch_size(
            len(X),
            [args.batch],
            epsilon=epsilon,
            delta=args.delta,
            n_epochs=args.epochs,
        )
        cells = [
            measure(
                DPSGDClassifier(
                    model=args.model,
                    noise_multiplier=least.noise_multiplier,
                    delta=args.delta,
                    classes=range(int(y.max()) + 1),
                    n_iter=least.n_iter,
                    expected_batch_size=args.batch,
                    learning_rate=args.rate,
                    clip_norm=clip_norm,
                    random_state=seed,
                ).fit(X, y),
                X_test,
                y_test,
            )
            for seed in range(args.seeds)
        ]
        return mean(cells)

    table(args.network_clip_norms, args.network_epsilons, args.model, fit, results)


def table(
    clip_norms: list[float],
    epsilons: list[float],
    name: str,
    fit: Callable[[float, float], Cell],
    results: Results,
) -> None:
    """Print a row for each clip norm and epsilon."""
    rows = []
    for epsilon in epsilons:
        for clip_norm in clip_norms:
            key = f"{name} epsilon={epsilon:g} clip_norm={clip_norm:g}"
            # computed at once: the loop variables are those of this cell
            cell = results.cell(key, lambda e=epsilon, c=clip_norm: fit(c, e))
            values = [f"{value:.3f}" for value in cell.values()]
            rows.append([f"{epsilon:g}", f"{clip_norm:g}", *values])
    header = ["epsilon", "clip norm", *cell]
    print(f"\n{name}\n\n" + markdown_table(header, rows, name), flush=True)


def batch_law(data: Any, args: argparse.Namespace, results: Results) -> None:
    """Print the law of small batches, its prediction, and the large run."""
    X, y, X_test, y_test = data
    target = TAN(args.law_target / len(X), args.law_noise, args.law_steps)

    def fit(batch: int, seed: int) -> Cell:
        small = simulate(
            target.sampling_prob,
            target.noise_multiplier,
            target.n_iter,
            args.law_target / batch,
        ).settings
        clf = DPSGDClassifier(
            model=args.model,
            noise_multiplier=small.noise_multiplier,
            delta=args.delta,
            classes=range(int(y.max()) + 1),
            n_iter=small.n_iter,
            expected_batch_size=batch,
            optimizer="sgd",
            learning_rate=args.law_rate,
            random_state=seed,
        ).fit(X, y)
        return measure(clf, X_test, y_test) | {"epsilon": clf.privacy_.epsilon}

    def run(batch: int, seed: int) -> Cell:
        key = f"law batch={batch} seed={seed}"
        return results.cell(key, lambda: fit(batch, seed))

    sizes, scores, rows = [], [], []
    for batch in args.law_batches:
        cells = [run(batch, seed) for seed in range(args.law_runs)]
        sizes += [batch] * len(cells)
        scores += [cell["accuracy"] for cell in cells]
        accuracies = ", ".join(f"{cell['accuracy']:.3f}" for cell in cells)
        rows.append([f"{batch}", accuracies, "", f"{cells[0]['epsilon']:.4g}"])
    found = fit_batch_law(sizes, scores).predict(args.law_target)
    large = run(args.law_target, 0)
    interval = f"{found.mean:.3f} ({found.low:.3f} to {found.high:.3f})"
    epsilon = f"{large['epsilon']:.4g}"
    rows.append([f"{args.law_target}", f"{large['accuracy']:.3f}", interval, epsilon])
    header = ["batch", "accuracy", "predicted, 95 %", "epsilon"]
    print(f"\nBatch law, {args.model}, {args.law_steps} steps\n")
    print(markdown_table(header, rows, "batch law"), flush=True)


if __name__ == "__main__":
    main()
