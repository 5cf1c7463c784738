"""Tables 2 to 4 of Mehta et al. (2023) on any feature file, beside what they print.

    python benchmarks/reproduce_tables.py cifar10.h5 --published cifar-10 --ours

See ``benchmarks/reproduce/README.md`` for the protocol and for the features.
"""

import argparse
import json
import math
import warnings
from pathlib import Path

import numpy as np
from _results import Cells, keep_tables, markdown_table, settings_of
from reproduce import METHODS, Cell, tuned

import privfeat

PUBLISHED = Path(__file__).parent / "reproduce" / "published.json"
EPSILONS = [math.inf, 0.01, 0.05, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0]
CHOICES = ("epsilons", "methods", "epochs", "ours", "published")
OURS = ("DPLeastSquares", "DPNewton", "DPFC", "DPAdamLinear")


def main() -> None:
    """Print the tables of one feature file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("features", type=Path)
    parser.add_argument("--epsilons", nargs="+", type=float, default=EPSILONS)
    parser.add_argument("--delta", type=float, default=1e-5)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--epochs", nargs="+", type=int, default=[1, 10, 100])
    parser.add_argument("--trials", type=int, nargs="+", default=[40], metavar="N")
    parser.add_argument("--rows", choices=("raw", "unit"), default="raw")
    parser.add_argument(
        "--columns",
        type=int,
        help="project rows to so many columns by a random matrix, the same for all",
    )
    parser.add_argument("--as-printed", action="store_true", help="no projection")
    parser.add_argument("--bias", choices=("fixed", "trained", "none"), default="fixed")
    parser.add_argument("--published", choices=("imagenet-1k", "cifar-10", "cifar-100"))
    parser.add_argument("--ours", action="store_true", help="our untuned estimators")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="JSON, continued if it exists")
    args = parser.parse_args()
    if len(args.trials) not in (1, len(args.epochs)):
        parser.error("--trials must hold one number, or one for each of --epochs")
    warnings.simplefilter("ignore", privfeat.PrivacyWarning)
    name = args.features.stem
    data, n_classes = load(args.features, args.rows, args.columns)
    # what these choose, a file may have more or less of
    store = Cells(args.out, settings_of(args, *CHOICES))
    known = [Cell.from_dict(cell) for cell in store.content.get("cells", {}).values()]
    cells = list(known)

    def report(cell):
        cells.append(cell)
        print(
            f"{cell.method} {cell.epochs}, epsilon={cell.epsilon:g}: "
            f"{100 * cell.mean:.2f} ± {100 * cell.error:.2f} ({cell.seconds:.0f} s)",
            flush=True,
        )
        store.get(f"{cell.method} {cell.epochs}, {cell.epsilon:g}", cell.as_dict)

    budgets = args.trials * (len(args.epochs) if len(args.trials) == 1 else 1)
    tuned(
        *data,
        epsilons=args.epsilons,
        delta=args.delta,
        trials=dict(zip(args.epochs, budgets, strict=True)),
        methods=args.methods,
        epochs=args.epochs,
        n_classes=n_classes,
        project=not args.as_printed,
        bias=args.bias,
        seed=args.seed,
        known=known,
        on_cell=report,
    )
    shown = sorted(args.epsilons, key=lambda e: (not math.isinf(e), e))
    rows = tuned_rows(cells, shown)
    if args.ours:
        rows += our_rows(data, n_classes, shown, args.delta)
    if args.published:
        rows += published_rows(args.published, shown)
    header = ["", "epochs", *("NP" if math.isinf(e) else f"{e:g}" for e in shown)]
    print(f"\n{name}: n={len(data[0])}, d={data[0].shape[1]}, m={n_classes}\n")
    print(markdown_table(header, rows, name))
    keep_tables(args.out)


def load(path: Path, scaling: str, columns: int | None = None):
    """Return (X, y, X_test, y_test) in float32, and the number of classes."""
    file = privfeat.open_features(path)
    held_out = "test" if "test" in file else "val"
    arrays = []
    for split in (file["train"], file[held_out]):
        rows = split.X[:].astype(np.float32)
        if columns is not None:
            rows = rows @ projection(rows.shape[1], columns)
        if scaling == "unit":
            rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
        arrays += [rows, split.y]
    return arrays, len(file.class_names)


def projection(d: int, columns: int):
    """Return random orthonormal columns, which know nothing of any record."""
    drawn = np.random.default_rng(0).standard_normal((d, columns))
    return np.linalg.qr(drawn)[0].astype(np.float32)


def tuned_rows(cells, epsilons):
    """Return one row for each method and number of epochs."""
    found = {(c.method, c.epochs, c.epsilon): c for c in cells}
    keys = dict.fromkeys((cell.method, cell.epochs) for cell in cells)
    return [
        [
            f"{method}, tuned here",
            str(epochs),
            *(
                f"{100 * found[method, epochs, e].mean:.1f}"
                if (method, epochs, e) in found
                else ""
                for e in epsilons
            ),
        ]
        for method, epochs in keys
    ]


def our_rows(data, n_classes, epsilons, delta, n_fits=3):
    """Return the accuracies of our estimators with their defaults."""
    X, y, X_test, y_test = data
    rows = []
    for name in OURS:
        row = [f"{name}, untuned", ""]
        for epsilon in epsilons:
            estimator = getattr(privfeat, name)(
                epsilon=epsilon, delta=delta, classes=range(n_classes)
            )
            fits = 1 if math.isinf(epsilon) else n_fits
            scores = [estimator.fit(X, y).score(X_test, y_test) for _ in range(fits)]
            row.append(f"{100 * np.mean(scores):.1f}")
        rows.append(row)
    return rows


def published_rows(dataset, epsilons):
    """Return the rows that the paper prints."""
    content = json.loads(PUBLISHED.read_text(encoding="utf-8"))
    places = {float(e): i for i, e in enumerate(content["epsilons"])}
    rows = []
    for pretraining, methods in content[dataset]["rows"].items():
        for label, values in methods.items():
            method, epochs = label.split()
            row = [f"{method}, paper, {pretraining}", epochs]
            for epsilon in epsilons:
                place = places.get(epsilon)
                value = None if place is None else values[place]
                row.append("-" if value is None else f"{value:.1f}")
            rows.append(row)
    return rows


if __name__ == "__main__":
    main()
