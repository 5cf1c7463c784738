"""What do others take for the same features and the same epsilon?

Every contender runs in a fresh process, one after the other: DPFC, DPLeastSquares
and DPAdamLinear with their defaults; DP-SGD of a linear layer by opacus; the logistic
regression of diffprivlib; gradient descent with ``vmap(grad)`` in JAX; and
scikit-learn's logistic regression without privacy. The other methods are tuned on the
test set; ours are not tuned.

    python -m venv peers-opacus && peers-opacus/bin/pip install opacus
    python -m venv peers-dpl && peers-dpl/bin/pip install diffprivlib 'scikit-learn<1.7'
    python benchmarks/peers.py cifar10.h5 --epsilon 1 --out peers.json \
        --opacus-python peers-opacus/bin/python \
        --diffprivlib-python peers-dpl/bin/python

``--synthetic n d m`` makes n records with d features in m classes instead of reading a
file. What the file of ``--out`` holds already is not run again.

"fit" is the median time of a fit with the best setting in a process that has fitted
before; "first fit" includes imports, compilation and the calibration of the noise,
which of the timed fits only ours repeat. "memory" is the largest resident memory of
the process, and "for the fit" what it is above that of the interpreter with the data.
"""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from _contenders import CONTENDERS
from _processes import Failed, run_fresh
from _results import keep_tables, markdown_table, read_earlier, write_json

import privfeat

SETTINGS = ("epsilon", "delta", "rates", "steps", "epochs", "batch", "repeats", "cores")
NOT_RUN = {"reason": "not run"}


def main() -> None:
    """Print one table."""
    args = parse()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: args.cores])
    settings = {name: getattr(args, name) for name in SETTINGS}
    settings["data"] = f"synthetic {args.synthetic}"
    if args.features:
        settings["data"] = args.features.stem
    results = read_earlier(args.out, settings).get("contenders", {})
    pythons = dict.fromkeys(CONTENDERS, sys.executable)
    pythons["opacus DP-SGD"] = args.opacus_python
    pythons["diffprivlib"] = args.diffprivlib_python
    with tempfile.TemporaryDirectory() as folder:
        data = read(args.features) if args.features else made(*args.synthetic)
        for name, array in data.items():
            np.save(Path(folder, f"{name}.npy"), array)
        options = json.dumps(settings | {"n_classes": int(data["y"].max()) + 1})
        n_samples, n_features = data["X"].shape
        del data
        for name in args.contenders:
            if "seconds" in results.get(name, {}):
                continue
            results[name] = NOT_RUN
            if pythons[name] is not None:
                print(f"{name} ...", flush=True)
                results[name] = run(name, folder, options, pythons[name], args.limit)
            if args.out:
                content = {"settings": settings, "contenders": results}
                write_json(args.out, content)
    print(f"\n{settings['data']}: n={n_samples}, d={n_features}\n")
    print(table({name: results[name] for name in args.contenders}))
    keep_tables(args.out)


def parse() -> argparse.Namespace:
    """Return the arguments."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("features", nargs="?", type=Path)
    parser.add_argument("--synthetic", nargs=3, type=int, metavar=("n", "d", "m"))
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--delta", type=float, default=1e-5)
    parser.add_argument("--repeats", type=int, default=3, help="timed fits")
    parser.add_argument(
        "--rates",
        nargs="+",
        type=float,
        default=[2.0, 8.0, 32.0, 128.0],
        help="learning rates of DP-SGD and vmap(grad), for averaged gradients",
    )
    parser.add_argument("--steps", type=int, default=20, help="of vmap(grad), as DPFC")
    parser.add_argument("--epochs", type=int, default=20, help="of DP-SGD")
    parser.add_argument("--batch", type=int, default=4096, help="of DP-SGD")
    parser.add_argument("--contenders", nargs="+", default=[*CONTENDERS])
    parser.add_argument("--opacus-python", type=Path)
    parser.add_argument("--diffprivlib-python", type=Path)
    parser.add_argument("--cores", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--limit", type=float, help="seconds for each contender")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    if bool(args.features) == bool(args.synthetic):
        parser.error("pass either a feature file or --synthetic n d m")
    if not set(args.contenders) <= set(CONTENDERS):
        parser.error(f"--contenders must be among {list(CONTENDERS)}")
    return args


def run(name: str, folder: str, options: str, python: Path, limit: float | None) -> Any:
    """Return the measurements of one contender, or why there are none."""
    script = Path(__file__).with_name("_contenders.py")
    try:
        return run_fresh(script, (name, folder, options), python=python, limit=limit)
    except Failed as error:
        return {"reason": f"failed, {error}"}


def read(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays of a feature file."""
    file = privfeat.open_features(path)
    train, test = file["train"], file["test"]
    return {
        "X": train.X[:].astype(np.float32),
        "y": np.asarray(train.y),
        "X_test": test.X[:].astype(np.float32),
        "y_test": np.asarray(test.y),
    }


def made(n_samples: int, n_features: int, n_classes: int) -> dict[str, np.ndarray]:
    """Return classes around random means, a fifth as many test records."""
    rng = np.random.default_rng(0)
    means = rng.normal(size=(n_classes, n_features)) * 2 / np.sqrt(n_features)
    arrays = {}
    for suffix, size in (("", n_samples), ("_test", max(1, n_samples // 5))):
        y = arrays["y" + suffix] = rng.integers(n_classes, size=size)
        noise = rng.standard_normal((size, n_features), dtype=np.float32)
        arrays["X" + suffix] = 0.5 * noise + means.astype(np.float32)[y]
    return arrays


def table(results: dict[str, dict[str, Any]]) -> str:
    """Return one row for each contender."""
    rows = []
    for name, found in results.items():
        if "seconds" not in found:
            rows.append([name, found["reason"], *"-----"])
            continue
        accuracy = 100 * np.mean(found["accuracy"])
        rows.append(
            [
                name,
                f"{found['seconds']:.2f}",
                f"{found['first_seconds']:.2f}",
                f"{found['peak_mib']:.0f}",
                f"{found['peak_mib'] - found['loaded_mib']:.0f}",
                f"{accuracy:.2f}",
                f"{found['epsilon']:.4g}",
            ]
        )
    header = ["", "fit, s", "first fit, s", "memory, MiB", "for the fit, MiB"]
    header += ["accuracy, %", "epsilon claimed"]
    return markdown_table(header, rows, "peers")


if __name__ == "__main__":
    main()
