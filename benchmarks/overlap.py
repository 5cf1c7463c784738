"""Do near-duplicates of private records among public rows change what a fit gets?

    python benchmarks/overlap.py cifar10_64.h5 --out overlap.json

Private records are drawn from the training rows. Half of the test rows are public; some
are replaced by near-duplicates of private records, rows turned by an angle whose cosine
is 0.98. `privfeat-extract overlap --remove` writes the public rows without what it
takes for near-duplicates. `DPFC` is fitted without public rows, with all, and without
the near-duplicates, to the same records with the same seed, and scored on the other
test rows. (The rows are passed as arrays: of the file, the fit would refuse them.)
"""

import argparse
import tempfile
import warnings
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
from _results import Cells, keep_tables, markdown_table, settings_of
from public import gain, halves, shown

import privfeat
from privfeat.data import write_features
from privfeat_extract.overlap import main as overlap

COSINE = 0.98


def main() -> None:
    """Print one row for each epsilon and share of planted duplicates."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("features", type=Path)
    parser.add_argument("--shares", nargs="+", type=float, default=[0.0, 0.1, 0.5])
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1, 8])
    parser.add_argument("--records", type=int, default=500)
    parser.add_argument("--public", type=int, default=2000)
    parser.add_argument("--threshold", type=float, default=0.95)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore", privfeat.PrivacyWarning)
    kept = Cells(args.out, settings_of(args))
    data = privfeat.open_features(args.features)
    train = data["train"].X, np.asarray(data["train"].y)
    public, test = halves(data["test"].X[:], np.asarray(data["test"].y))
    rows = []
    for share in args.shares:
        for epsilon in args.epsilons:
            measure = partial(fits, train, public, test, share, epsilon, args)
            cell = kept.get(f"{share:g}, {epsilon:g}", measure)
            counts = f"{np.mean(cell['removed']):.0f} of {np.mean(cell['planted']):.0f}"
            rows.append([f"{100 * share:g} %", f"{epsilon:g}", counts])
            rows[-1] += [shown(cell["none"]), gain(cell, "all"), gain(cell, "clean")]
    header = ["planted", "epsilon", "removed, of planted", "no public rows"]
    header += ["all public rows", "without near-duplicates"]
    print(markdown_table(header, rows, "overlap"))
    keep_tables(args.out)


def fits(
    train: Any, public: Any, test: Any, share: float, epsilon: float, args: Any
) -> dict[str, list[float]]:
    """Return accuracies in percent, and how many rows were planted and removed."""
    found: dict[str, list[float]] = {
        name: [] for name in ("planted", "removed", "none", "all", "clean")
    }
    for seed in range(args.repeats):
        rng = np.random.default_rng(seed)
        some = np.sort(rng.choice(len(train[1]), args.records, replace=False))
        X, y = np.asarray(train[0][some], np.float32), train[1][some]
        rows = np.array(public[rng.permutation(len(public))[: args.public]], np.float32)
        n_planted = round(share * len(rows))
        if n_planted:
            rows[:n_planted] = turned_by(X[rng.integers(len(X), size=n_planted)], rng)
        clean = without_duplicates(X, y, rows, args.threshold)
        found["planted"].append(n_planted)
        found["removed"].append(len(rows) - len(clean))
        for name, given in (("none", None), ("all", rows), ("clean", clean)):
            clf = privfeat.DPFC(
                epsilon=epsilon, classes=range(10), public=given, random_state=seed
            )
            found[name].append(100.0 * clf.fit(X, y).score(*test))
    return found


def turned_by(rows: Any, rng: Any) -> Any:
    """Return rows of the same lengths whose cosine with the given ones is `COSINE`."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    units = rows / np.maximum(lengths, 1e-12)
    aside = rng.standard_normal(rows.shape)
    aside -= np.sum(aside * units, axis=1, keepdims=True) * units
    aside /= np.linalg.norm(aside, axis=1, keepdims=True)
    return lengths * (COSINE * units + np.sqrt(1.0 - COSINE**2) * aside)


def without_duplicates(X: Any, y: Any, rows: Any, threshold: float) -> Any:
    """Return what the command leaves of public rows."""
    with tempfile.TemporaryDirectory() as folder:
        private, public, clean = (
            Path(folder, name) for name in ("a.h5", "b.h5", "c.h5")
        )
        write_features(private, {"train": (X, y)})
        write_features(public, {"train": (rows, np.zeros(len(rows), int))})
        options = ["--remove", str(clean), "--threshold", str(threshold)]
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            overlap([str(private), str(public), *options])
        return privfeat.open_features(clean)["train"].X[:]


if __name__ == "__main__":
    main()
