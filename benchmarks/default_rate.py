"""Is the default rate of networks near the best one?

    python benchmarks/default_rate.py digits --out default_rate.json
    python benchmarks/default_rate.py cifar10-images.tar.xz --records 2000 --size 16 \\
        --model sample_convnet --batches 256 --epsilons 2 --seeds 1 --out rate.json

For the digits of scikit-learn (1,400 train, 397 test), or for images ``train/CLASS/*``
and ``test/`` likewise, in a folder or an archive: test accuracy of `DPSGDClassifier`
with its default rate, with parts and multiples of it, and with 0.001.
"""

import argparse
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from _results import Cells, keep_tables, markdown_table
from dpsgd_accuracy import percent, read_images
from sklearn.datasets import load_digits

from privfeat import DPSGDClassifier
from privfeat.networks.training.optimizers import default_rate

SETTINGS = ("images", "model", "records", "size", "epsilons", "batches", "epochs")
FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
FIXED = 0.001


def main() -> None:
    """Print the table."""
    args = parse()
    warnings.simplefilter("ignore")
    settings = {name: getattr(args, name) for name in (*SETTINGS, "seeds")}
    settings["images"] = Path(args.images).name
    cells = Cells(args.out, settings)
    data = read(args)
    rows = []
    for epsilon in args.epsilons:
        for batch in args.batches:
            rows.append(row(args, cells, data, epsilon, batch))
            print(rows[-1], flush=True)
    times = [f"x {factor:g}" if factor != 1.0 else "default" for factor in FACTORS]
    header = ["epsilon", "batch", "steps", "default rate", f"{FIXED:g}", *times]
    print("\n" + markdown_table(header, rows, "rates"))
    keep_tables(args.out)


def row(
    args: argparse.Namespace, cells: Cells, data: Any, epsilon: float, batch: int
) -> list[str]:
    """Return the accuracies at each rate."""
    X, y, X_test, y_test = data
    n_iter = math.ceil(args.epochs * len(X) / batch)
    fit = {"model": args.model, "epsilon": epsilon, "expected_batch_size": batch}
    fit |= {"n_iter": n_iter, "classes": range(10), "accounting": "rdp"}

    def scores(rate: float | None) -> dict[str, Any]:
        found, shapes = [], []
        for seed in range(args.seeds):
            clf = DPSGDClassifier(learning_rate=rate, random_state=seed, **fit)
            found.append(float(clf.fit(X, y).score(X_test, y_test)))
            shapes = [leaf.shape for leaf in clf.parameters_.values()]
        own = default_rate("adam", shapes, n_iter) if rate is None else rate
        return {"rate": own, "scores": found}

    def cell(name: str, rate: float | None) -> dict[str, Any]:
        key = f"epsilon={epsilon:g} batch={batch} {name}"
        return dict(cells.get(key, lambda: scores(rate)))

    default = cell("default", None)
    found = [cell(f"rate={FIXED:g}", FIXED)]
    for factor in FACTORS:
        rate = factor * default["rate"]
        found.append(default if factor == 1.0 else cell(f"x{factor:g}", rate))
    shown = [percent(one["scores"]) for one in found]
    return [f"{epsilon:g}", f"{batch}", f"{n_iter}", f"{default['rate']:.4f}", *shown]


def read(args: argparse.Namespace) -> Any:
    """Return images and labels to train and to test on."""
    if args.images != "digits":
        return read_images(Path(args.images), args.size, args.records)
    digits = load_digits()
    X = (15 * digits.images[..., None]).astype(np.uint8)
    return X[:1400], digits.target[:1400], X[1400:], digits.target[1400:]


def parse() -> argparse.Namespace:
    """Return the arguments."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("images", help="'digits', or a folder or archive of images")
    parser.add_argument("--model", default="simpleVGG-16(2)-32")
    parser.add_argument("--records", type=int, default=2000, help="of images")
    parser.add_argument("--size", type=int, default=16, help="side of images")
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1, 2, 8])
    parser.add_argument("--batches", nargs="+", type=int, default=[128, 512])
    parser.add_argument("--epochs", type=float, default=10.0)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
