"""Do another clip norm, or views of the images, beat the defaults of networks?

    python benchmarks/default_views.py cifar10-images.tar.xz --size 8 --out views.json

For the images that `default_rate.py` reads. Of ``cifar10-images.tar.xz`` and the like
the training images alone: the network is fitted on four fifths of them and tested on
the others. One setting at a time differs from the defaults of `DPSGDClassifier`. Views
take the time of epochs: they are tried at the default epochs, which takes longer, and
at as many fewer epochs.
"""

import argparse
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from _results import Cells, keep_tables, markdown_table, settings_of
from default_rate import read
from dpsgd_accuracy import percent
from untuned import held_out

from privfeat import DPSGDClassifier
from privfeat.networks.training.defaults import default_epochs

DELTA = 1e-5
VIEWS = 4


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("images", help="'digits', or a folder or archive of images")
    parser.add_argument("--model", default="simpleVGG-16(1)-32")
    parser.add_argument("--records", type=int, default=10_000, help="of images")
    parser.add_argument("--size", type=int, default=16, help="side of images")
    parser.add_argument("--clip-norms", nargs="+", type=float, default=[0.1, 10.0])
    parser.add_argument("--augmentation", default="crop_flip")
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1, 8])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    settings = settings_of(args, "clip_norms", "epsilons", "seeds")
    settings["images"] = Path(args.images).name
    cells = Cells(args.out, settings)
    data = read(args)
    if args.images != "digits":
        data = held_out(data)
    rows = []
    for epsilon in args.epsilons:
        for name, setting in tried(args, epsilon).items():
            found = [
                cells.get(
                    f"epsilon={epsilon:g} {name} seed={seed}",
                    partial(accuracy, data, args, epsilon, setting, seed),
                )
                for seed in range(args.seeds)
            ]
            gap = [one["train"] - one["test"] for one in found]
            test = [one["test"] for one in found]
            rows.append([f"{epsilon:g}", name, percent(test), percent(gap)])
            print(" | ".join(rows[-1]), flush=True)
    header = ["epsilon", "", "test, %", "train - test, points"]
    print("\n" + markdown_table(header, rows, "clip norms and views"))
    keep_tables(args.out)


def tried(args: argparse.Namespace, epsilon: float) -> dict[str, dict[str, Any]]:
    """Return the settings by their names."""
    found: dict[str, dict[str, Any]] = {"defaults": {}}
    for norm in args.clip_norms:
        found[f"clip norm {norm:g}"] = {"clip_norm": norm}
    one: dict[str, Any] = {"augmentation": args.augmentation}
    several = one | {"n_copies": VIEWS}
    fewer = default_epochs(epsilon, DELTA) / VIEWS
    return found | {
        f"{args.augmentation}, 1 view": one,
        f"{args.augmentation}, {VIEWS} views": several,
        f"{args.augmentation}, {VIEWS} views, 1/{VIEWS} of the epochs": several
        | {"epochs": fewer},
    }


def accuracy(
    data: Any, args: argparse.Namespace, epsilon: float, setting: Any, seed: int
) -> dict[str, float]:
    """Return the accuracies of one fit, on what it was fitted on and on the others."""
    X, y, X_test, y_test = data
    clf = DPSGDClassifier(
        model=args.model,
        epsilon=epsilon,
        delta=DELTA,
        classes=range(int(np.max(y)) + 1),
        accounting="rdp",
        random_state=seed,
        **setting,
    ).fit(X, y)
    return {"train": float(clf.score(X, y)), "test": float(clf.score(X_test, y_test))}


if __name__ == "__main__":
    main()
