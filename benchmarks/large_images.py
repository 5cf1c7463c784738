"""DP-SGD on images that stay on disk, and by two processes: memory, and time of a step.

    python benchmarks/large_images.py --gib 2 --folder /scratch --out large_images.json

Writes an HDF5 file of random images. Each fit is in a fresh process: on the images read
into memory, on those in the file, and on the file by one and by two processes that have
one core each. The first two must give one network, bit for bit, and the last two: XLA
rounds by the number of cores.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from _processes import peak_mib, run_fresh
from _results import keep_tables, markdown_table, write_json

SIDE, STEPS, BATCH, PORT = 64, 4, 64, 29811
CELLS = {
    "in memory": ("memory", 1, False),
    "in a file": ("file", 1, False),
    "in a file, 1 process of 1 core": ("file", 1, True),
    "in a file, 2 processes of 1 core": ("file", 2, True),
}


def main() -> None:
    """Print one table."""
    if sys.argv[1:2] == ["--cell"]:
        print(json.dumps(cell(*sys.argv[2:])))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gib", type=float, default=2.0)
    parser.add_argument("--model", default="simpleVGG-32(2)-64(2)-128(2)-128")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        path = Path(folder) / "images.h5"
        write(path, args.gib)
        found = {name: fits(path, args.model, *how) for name, how in CELLS.items()}
        size = path.stat().st_size / 2**20
    rows = [
        [name, f"{cells[0]['step']:.2f}", f"{max(c['peak_mib'] for c in cells):.0f}"]
        for name, cells in found.items()
    ]
    head = [f"{size:.0f} MiB of images", "s a step", "peak memory, MiB"]
    print(f"\n{markdown_table(head, rows, 'large_images')}\n")
    networks = [{cell["network"] for cell in cells} for cells in found.values()]
    same = [len(networks[i] | networks[i + 1]) == 1 for i in (0, 2)]
    print(f"one network in memory and in a file: {same[0]}")
    print(f"one network of 1 process and of 2: {same[1]}")
    if args.out:
        write_json(args.out, {"gib": args.gib, "cells": found, "same": same})
    keep_tables(args.out)


def write(path: Path, gib: float) -> None:
    """Write random images, chunk by chunk, as an HDF5 file."""
    n = int(gib * 2**30) // (SIDE * SIDE * 3)
    draw = np.random.default_rng(0)
    with h5py.File(path, "w") as file:
        shape = (n, SIDE, SIDE, 3)
        images = file.create_dataset(
            "train/images", shape, "u1", chunks=(1, *shape[1:])
        )
        for start in range(0, n, 1024):
            part = images[start : start + 1024]
            images[start : start + 1024] = draw.integers(0, 256, part.shape, np.uint8)
        file["train/labels"] = draw.integers(0, 10, n)


def fits(
    path: Path, model: str, source: str, size: int, pinned: bool
) -> list[dict[str, Any]]:
    """Fit in so many fresh processes at once."""
    places = range(size)
    arguments = [[path, model, source, i, size, int(pinned)] for i in places]
    if size == 1:
        return [run_fresh(__file__, ["--cell", *arguments[0]])]
    started = [
        subprocess.Popen(
            [sys.executable, __file__, "--cell", *map(str, own)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for own in arguments
    ]
    printed = [process.communicate(timeout=900)[0] for process in started]
    return [json.loads(text.strip().splitlines()[-1]) for text in printed]


def cell(
    path: str, model: str, source: str, index: str, size: str, pinned: str
) -> dict[str, Any]:
    """Fit in this process, one of ``size``; steps are timed after the first."""
    warnings.simplefilter("ignore")
    if int(pinned):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[int(index) % len(cores)]})
    from privfeat import DPSGDClassifier
    from privfeat.core.noise.gaussian_mechanism import GaussianMechanism
    from privfeat.data import open_images
    from privfeat.distributed import all_processes, initialize

    if int(size) > 1:
        initialize(
            coordinator_address=f"localhost:{PORT}",
            num_processes=int(size),
            process_id=int(index),
        )
    X, y, *_ = open_images(path)
    times, release = [], GaussianMechanism.release

    def timed(self: Any, *args: Any, **options: Any) -> Any:
        found = release(self, *args, **options)
        times.append(time.perf_counter())
        return found

    GaussianMechanism.release = timed  # type: ignore[method-assign]
    clf = DPSGDClassifier(
        model=model,
        noise_multiplier=1.0,
        classes=range(10),
        n_iter=STEPS,
        expected_batch_size=BATCH,
        microbatch_size=16,
        random_state=0,
    )
    with all_processes():
        clf.fit(np.asarray(X) if source == "memory" else X, y)
    leaves = b"".join(clf.parameters_[name].tobytes() for name in clf.parameters_)
    return {
        "step": float(np.median(np.diff(times))),
        "peak_mib": peak_mib(),
        "network": hashlib.sha256(leaves).hexdigest(),
    }


if __name__ == "__main__":
    main()
