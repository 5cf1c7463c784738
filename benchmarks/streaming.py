"""Fits on files larger than memory: peak memory, and speed beside a bare read.

    python benchmarks/streaming.py --gib 8 --folder /scratch --out streaming.json

Writes a synthetic feature file, then, each in a fresh process and with the
file dropped from the page cache: reads it once in order, and fits on it. The fit that
waits for the disk is ``DPAdamLinear`` with one step, two classes and a public center,
which passes over the file once; the others show memory and time. With
``--compare-rows`` it also fits on the first rows of the file read into memory and says
whether the coefficients are the same, bit for bit.
"""

import argparse
import json
import os
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from _processes import peak_mib, run_fresh
from _results import keep_tables, markdown_table, write_json

from privfeat.data import FeatureWriter, open_features

BLOCK_ROWS = 2**14
FITS = {
    "one pass, 2 classes": "DPAdamLinear n_iter=1 center=False",
    "DPLeastSquares": "DPLeastSquares",
    "DPFC, 2 steps": "DPFC n_iter=2",
}


def main() -> None:
    """Print one table."""
    if sys.argv[1:2] == ["--cell"]:
        print(json.dumps(cell(*sys.argv[2:])))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gib", type=float, default=8.0)
    parser.add_argument("--features", type=int, default=400)
    parser.add_argument("--dtype", choices=["float16", "float32"], default="float32")
    parser.add_argument("--fits", nargs="*", choices=FITS, default=[*FITS])
    parser.add_argument("--cached", action="store_true", help="keep the page cache")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--compare-rows", type=int, default=20_000)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        path = Path(folder) / "large.h5"
        write(path, args.gib, args.features, args.dtype)
        results = measure(path, args)
    if args.out:
        write_json(args.out, {"gib": args.gib, "results": results})
    keep_tables(args.out)


def measure(path: Path, args: argparse.Namespace) -> dict[str, Any]:
    """Read and fit in turn, and print."""
    cells: dict[str, list[dict[str, Any]]] = {}
    for _ in range(args.repeats):
        for name in ["bare read", *args.fits]:
            what = FITS.get(name, "read")
            if not args.cached:
                drop_from_cache(path)
            cells.setdefault(name, []).append(
                run_fresh(__file__, ["--cell", path, what])
            )
            print(name, cells[name][-1], flush=True)
    size = path.stat().st_size / 1e6
    fastest = {n: min(c["seconds"] for c in found) for n, found in cells.items()}
    rows = [
        [
            name,
            f"{seconds:.1f}",
            f"{size / seconds:.0f}",
            f"{fastest['bare read'] / seconds:.0%}",
            f"{max(c['peak_mib'] for c in cells[name]):.0f}",
        ]
        for name, seconds in fastest.items()
    ]
    head = [f"{size / 1e3:.1f} GB", "s", "MB/s", "of bare read", "peak memory, MiB"]
    print(f"\n{markdown_table(head, rows, 'streaming')}\n")
    same = run_fresh(__file__, ["--cell", path, "compare", args.compare_rows])["same"]
    print(f"equal to a fit in memory, bit for bit: {same}")
    return {"cells": cells, "same": same}


def cell(path: str, what: str, *more: str) -> dict[str, Any]:
    """Measure one thing in this process."""
    warnings.simplefilter("ignore")
    if what == "compare":
        return {"same": equal_in_memory(path, int(more[0]))}
    if what == "read":
        return {"seconds": bare_read(path), "peak_mib": peak_mib()}
    import privfeat

    train = open_features(path)["train"]
    name, *settings = what.split()
    options = {
        key: json.loads(v.lower()) for key, v in (s.split("=") for s in settings)
    }
    clf = getattr(privfeat, name)(epsilon=1.0, classes=[0, 1], **options)
    clf.fit(train.X.read(0, 2000), train.y[:2000])  # compiles
    started = time.perf_counter()
    clf.fit(train.X, train.y)
    return {"seconds": time.perf_counter() - started, "peak_mib": peak_mib()}


def bare_read(path: str) -> float:
    """Read the features once, in order, into one buffer, as HDF5 lays them out."""
    train = open_features(path)["train"]
    started = time.perf_counter()
    for start in range(0, len(train), BLOCK_ROWS):
        train.X.read(start, min(start + BLOCK_ROWS, len(train)))
    return time.perf_counter() - started


def equal_in_memory(path: str, n_rows: int) -> bool:
    """Fit on a small file of the first rows, not kept, and on the same in memory."""
    from privfeat import DPFC
    from privfeat.data import write_features

    train = open_features(path)["train"]
    X, y = train.X.read(0, n_rows), train.y[:n_rows]
    part = f"{path}.part"
    write_features(part, {"train": (X, y)}, dtype=str(X.dtype), overwrite=True)
    lazy = open_features(part)["train"]
    models = [
        DPFC(epsilon=1.0, classes=[0, 1], n_iter=3, random_state=0).fit(features, y)
        for features in (lazy.X, X)
    ]
    return bool(np.array_equal(models[0].coef_, models[1].coef_))


def write(path: Path, gib: float, n_features: int, dtype: str) -> None:
    """Write the file, of unit rows, two classes."""
    n_rows = int(gib * 2**30 / (np.dtype(dtype).itemsize * n_features))
    rng = np.random.default_rng(0)
    block = rng.standard_normal((BLOCK_ROWS, n_features), np.float32)
    block /= np.linalg.norm(block, axis=1, keepdims=True)
    block = block.astype(dtype)
    with FeatureWriter(
        path, n_features=n_features, dtype=dtype, arguments={}
    ) as writer:
        for start in range(0, n_rows, BLOCK_ROWS):
            m = min(BLOCK_ROWS, n_rows - start)
            writer.append(
                "train", np.roll(block, start, axis=1)[:m], rng.integers(0, 2, m)
            )
        writer.finish({}, class_names=["a", "b"])


def drop_from_cache(path: Path) -> None:
    """Ask the system to forget the file's pages."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


if __name__ == "__main__":
    main()
