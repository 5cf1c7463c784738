"""What do public rows of the same network buy, and do those of another kind cost?

Accuracy on test rows, without public rows and with them, in paired fits: the same
records, drawn at random from the training rows, and the same seed of the noise. The
public rows are half of the test rows, the others are scored. Of another kind are these
rows turned at random, and the test rows of further feature files: of other images, or
of the same images at another size, with columns of zeros where they are narrower; of
them, too, half are public. Data: feature files, or arrays of ``prior.py``.

    python benchmarks/public.py cifar10.h5 --other mnist.h5 --out public.json

With ``--centers`` public rows give their mean as ``center`` as well, which saves what
its release costs; `DPFC` alone takes both.
"""

import argparse
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from _results import Cells, keep_tables, markdown_table, settings_of

import privfeat

ESTIMATORS = ("DPFC", "DPLeastSquares", "DPAdamLinear")
CENTERED = " as center"


def main() -> None:
    """Print one table for each estimator; a run that was stopped continues."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("features", type=Path)
    parser.add_argument("--other", type=Path, nargs="*", default=[])
    parser.add_argument("--estimators", nargs="+", default=ESTIMATORS)
    parser.add_argument("--records", nargs="+", type=int, default=[500, 2000, 10_000])
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.1, 1, 8])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--centers", action="store_true", help="their mean as center")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore", privfeat.PrivacyWarning)
    train, held_out = splits(args.features)
    public, test = halves(held_out[0][:], held_out[1])
    kinds = {"same": public, "turned": turned(public)}
    for path in args.other:
        X, y = splits(path)[1]
        other, _ = halves(X[:], y)
        kinds[path.stem] = fitted_in(other, public.shape[1])
    if args.centers:
        kinds |= {f"{kind}{CENTERED}": rows for kind, rows in kinds.items()}
    settings = settings_of(args, "estimators", "records", "epsilons")
    kept = Cells(args.out, settings)
    header = ["records", "epsilon", "none", *(f"with {kind}" for kind in kinds)]
    for name in args.estimators:
        rows = []
        for n_records in args.records:
            for epsilon in args.epsilons:
                make = getattr(privfeat, name)
                options = {"epsilon": epsilon, "classes": np.unique(train[1])}
                fits = partial(
                    paired, make, options, kinds, train, test, n_records, args
                )
                found = kept.get(f"{name}, {n_records}, {epsilon:g}", fits)
                row = [f"{n_records:,}", f"{epsilon:g}", shown(found["none"])]
                rows.append(row + [gain(found, kind) for kind in kinds])
                table = markdown_table(header, rows, name)
                kept.content["lost"] = losses(kept.content["cells"])
                kept.save()
        print(f"{name}\n\n{table}\n", flush=True)
    keep_tables(args.out)
    print(f"cells lost by two standard errors: {kept.content.get('lost') or 'none'}")


def paired(
    make: Any,
    options: dict[str, Any],
    kinds: dict[str, Any],
    train: Any,
    test: Any,
    n_records: int,
    args: Any,
) -> dict[str, list[float]]:
    """Return accuracies in percent of fits to the same records, by kind."""
    found: dict[str, list[float]] = {kind: [] for kind in ("none", *kinds)}
    for seed in range(args.repeats):
        rng = np.random.default_rng(seed)
        some = np.sort(rng.choice(len(train[1]), n_records, replace=False))
        X, y = train[0][some], train[1][some]
        for kind in found:
            public = kinds.get(kind)
            center = unit_mean(public) if kind.endswith(CENTERED) else True
            model = make(public=public, center=center, random_state=seed, **options)
            found[kind].append(100.0 * model.fit(X, y).score(*test))
    return found


def unit_mean(rows: Any) -> Any:
    """Return the mean of rows, each divided by its norm."""
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.mean(rows / np.maximum(norms, 1e-12), axis=0, dtype=np.float64)


def splits(path: Path) -> list[tuple[Any, Any]]:
    """Return training and test rows with their labels, of a feature file or an .npz."""
    names = ("train", "test")
    if path.suffix == ".npz":
        arrays = np.load(path)
        return [(arrays[f"X_{name}"], arrays[f"y_{name}"]) for name in names]
    data = privfeat.open_features(path)
    return [(data[name].X, np.asarray(data[name].y)) for name in names]


def halves(X: Any, y: Any) -> tuple[Any, tuple[Any, Any]]:
    """Return half of the rows as public ones, the others with labels for scores."""
    order = np.random.default_rng(0).permutation(len(X))
    first, second = order[: len(X) // 2], order[len(X) // 2 :]
    return X[first], (X[second], y[second])


def turned(rows: Any) -> Any:
    """Return rows in which every direction is another one, at random."""
    size = rows.shape[1]
    noise = np.random.default_rng(0).normal(size=(size, size))
    return (rows.astype(np.float32) @ np.linalg.qr(noise)[0]).astype(np.float32)


def fitted_in(rows: Any, size: int) -> Any:
    """Return rows with columns of zeros, or without the last ones."""
    narrow = rows[:, :size].astype(np.float32)
    return np.pad(narrow, ((0, 0), (0, size - narrow.shape[1])))


def shown(values: Any) -> str:
    """Return a mean with its standard error."""
    return f"{np.mean(values):.1f} ± {error(values):.1f}"


def gain(cell: dict[str, list[float]], kind: str) -> str:
    """Return the accuracy with public rows, and its difference in paired fits."""
    change = np.subtract(cell[kind], cell["none"])
    return f"{np.mean(cell[kind]):.1f} ({np.mean(change):+.1f} ± {error(change):.1f})"


def losses(cells: dict[str, Any]) -> list[str]:
    """Return cells in which public rows lose by more than two standard errors."""
    found = []
    for name, cell in cells.items():
        for kind in cell.keys() - {"none"}:
            change = np.subtract(cell[kind], cell["none"])
            if np.mean(change) < -2.0 * error(change) - 1e-9:
                found.append(f"{name}, {kind}: {gain(cell, kind)}")
    return sorted(found)


def error(values: Any) -> float:
    """Return the standard error of a mean."""
    return float(np.std(values, ddof=1) / len(values) ** 0.5) if len(values) > 1 else 0


if __name__ == "__main__":
    main()
