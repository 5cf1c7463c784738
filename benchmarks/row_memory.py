"""How much memory does a fit take for each row of a file, whatever its width?

    python benchmarks/row_memory.py --out row_memory.json

Fits on files of two columns, each in a fresh process, with and without users of three
rows each, and divides the growth of the peak by that of the rows. Labels and users of
all rows are in memory, and what is made of them. So are here the rows themselves, some
24 bytes each, since fits keep rows up to 1 GiB: of a larger file that part is missing.
"""

import argparse
import json
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
from _processes import peak_mib, run_fresh
from _results import keep_tables, markdown_table, write_json

import privfeat
from privfeat.data import FeatureWriter, open_features

FITS: dict[str, dict[str, int]] = {
    "DPLeastSquares": {},
    "DPFC, 2 steps": {"n_iter": 2},
}
N_FEATURES = 2
BLOCK = 1_000_000  # rows that are written at once


def main() -> None:
    """Print one table."""
    if sys.argv[1:2] == ["--cell"]:
        file, name, users = sys.argv[2:]
        print(json.dumps({"mib": peak_of(Path(file), name, users == "users")}))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", nargs=2, type=int, default=[2_000_000, 6_000_000])
    parser.add_argument("--folder", type=Path, help="for the files")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    found: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        for n in args.rows:
            path = Path(folder, f"{n}.h5")
            write(path, n)
            for name in FITS:
                for way in ("records", "users"):
                    words = ["--cell", str(path), name, way]
                    peak = run_fresh(Path(__file__), words)["mib"]
                    found.setdefault(f"{name}: {way}", []).append(round(peak, 1))
    few, many = args.rows
    rows = []
    for key, peaks in found.items():
        growth = (peaks[1] - peaks[0]) * 2**20 / (many - few)
        shown = [f"{peak:.0f}" for peak in peaks]
        rows.append([*key.split(": "), *shown, f"{growth:.0f}"])
    sizes = [f"peak of {n:,} rows, MiB" for n in args.rows]
    header = ["fit", "protected", *sizes, "bytes a row"]
    print(markdown_table(header, rows, "memory"))
    if args.out:
        write_json(args.out, {"rows": args.rows, "mib": found})
    keep_tables(args.out)


def write(path: Path, n: int) -> None:
    """Write a feature file of ``n`` rows and five classes."""
    draw = np.random.default_rng(0)
    with FeatureWriter(path, n_features=N_FEATURES, dtype="float16") as writer:
        for start in range(0, n, BLOCK):
            size = min(BLOCK, n - start)
            writer.append(
                "train",
                draw.normal(size=(size, N_FEATURES)),
                draw.integers(5, size=size),
                groups=np.arange(start, start + size) // 3,
            )
        writer.finish(class_names=list("abcde"))


def peak_of(path: Path, name: str, users: bool) -> float:
    """Return the peak of this process after a fit, in MiB."""
    warnings.simplefilter("ignore", privfeat.PrivacyWarning)
    train = open_features(path)["train"]
    estimator = getattr(privfeat, name.partition(",")[0])
    fit = estimator(epsilon=1.0, classes=range(5), **FITS[name])
    if users:
        fit.set_params(max_group_size=3)
        fit.fit(train.X, train.y, groups=train.groups)
    else:
        fit.fit(train.X, train.y)
    return peak_mib()


if __name__ == "__main__":
    main()
