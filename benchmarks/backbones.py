"""Figure 1 of Mehta et al. (2023): what a better backbone is worth at each epsilon.

    python benchmarks/backbones.py --images cifar10-jpeg.tar.xz --out backbones.json \
        --network mobilenetv2_100_same=mobilenetv2_100_imagenet.safetensors \
        --network tf_efficientnet_lite0=efficientnet_lite0.safetensors
    python benchmarks/backbones.py --file ViT-B=vit.h5 --file ViT-G=large.h5

`DPFC` as it is, on features of the same images by each backbone: test accuracy in
percent, mean and standard error. With ``--images``, every ``--step``-th training image
is extracted as ``views.py`` does, three of five are fitted and the others scored; a
``--file`` has its own test rows. ``--figure`` draws the curves. Backbones are listed
from the worse to the better: the last row is what the last gains over the first.
"""

import argparse
import math
import tempfile
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from _results import Cells, keep_tables, markdown_table, settings_of
from accuracy import shown

import privfeat

EPSILONS = [0.1, 0.5, 1.0, 2.0, 4.0, 8.0, math.inf]


def main(argv: list[str] | None = None) -> None:
    """Print one row for each backbone, and the gain of the last."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--file", action="append", default=[], metavar="NAME=FILE.h5")
    add("--network", action="append", default=[], metavar="MODEL=WEIGHTS")
    add("--images", type=Path, help="what networks are run on")
    add("--crop", type=int, default=64)
    add("--step", type=int, default=12, help="of the training images")
    add("--features", type=Path, help="where extracted features are kept")
    add("--compile", action="store_true")
    add("--epsilons", nargs="+", type=float, default=EPSILONS)
    add("--delta", type=float, default=1e-5)
    add("--repeats", type=int, default=5)
    add("--figure", type=Path, help="a file for matplotlib")
    add("--out", type=Path)
    args = parser.parse_args(argv)
    if not args.file and not (args.network and args.images):
        parser.error("--file, or --network with --images, must be given")
    warnings.simplefilter("ignore", privfeat.PrivacyWarning)
    kept = Cells(args.out, settings_of(args, "features", "compile", "figure"))
    found: dict[str, dict[str, list[float]]] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.features or Path(temporary)
        for name, read in sets_of(args, folder).items():
            found[name] = kept.get(name, partial(accuracies, read, args))
    keys = [f"{epsilon:g}" for epsilon in args.epsilons]
    rows = [
        [name, *(shown(cells[key]) for key in keys)] for name, cells in found.items()
    ]
    if len(found) > 1:
        first, *_, last = found.values()
        gains = [np.mean(last[key]) - np.mean(first[key]) for key in keys]
        rows.append(["gain", *(f"{100 * gain:+.1f}" for gain in gains)])
    header = ["epsilon", *("none" if key == "inf" else key for key in keys)]
    print(markdown_table(header, rows, "backbones"))
    keep_tables(args.out)
    if args.figure:
        draw(found, args.figure)


def sets_of(args: Any, folder: Path) -> dict[str, Any]:
    """Return, by the name of each backbone, what reads X, y, X_test and y_test."""
    args.policies, args.parts, args.data = ["as it is"], False, args.images
    made = {}
    for given in args.network:
        name, _, weights = given.partition("=")
        made[name] = partial(of_images, name, weights, folder, args)
    for given in args.file:
        name, _, path = given.rpartition("=")
        made[name or Path(path).stem] = partial(of_file, Path(path))
    return made


def of_images(name: str, weights: str, folder: Path, args: Any) -> tuple[Any, ...]:
    """Return fitted and held-out rows of the images."""
    from views import extracted, held_out  # which import torch

    found = extracted(name, weights, folder, args)
    rows, y = found["zoom 1"], found["labels"]
    held = held_out(rows)
    return rows[~held], y[~held], rows[held], y[held]


def of_file(path: Path) -> tuple[Any, ...]:
    """Return training and test rows of a feature file."""
    file = privfeat.open_features(path)
    test = file["test" if "test" in file else "val"]
    return file["train"].X[:], file["train"].y, test.X[:], test.y


def accuracies(read: Any, args: Any) -> dict[str, list[float]]:
    """Return the scores at each epsilon."""
    X, y, X_test, y_test = read()
    classes = np.union1d(y, y_test)
    scores = {}
    for epsilon in args.epsilons:
        clf = privfeat.DPFC(epsilon=epsilon, delta=args.delta, classes=classes)
        fits = 1 if math.isinf(epsilon) else args.repeats
        scores[f"{epsilon:g}"] = [
            clf.fit(X, y).score(X_test, y_test) for _ in range(fits)
        ]
    return scores


def draw(found: dict[str, dict[str, list[float]]], path: Path) -> None:
    """Draw accuracy against epsilon, a curve for each backbone."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 3.5), layout="constrained")
    axes = figure.add_subplot()
    for name, cells in found.items():
        points = [(float(e), 100 * np.mean(v)) for e, v in cells.items() if e != "inf"]
        axes.plot(*zip(*points, strict=True), marker="o", label=name)
    axes.set(xscale="log", xlabel="epsilon", ylabel="test accuracy, %")
    axes.legend()
    figure.savefig(path)


if __name__ == "__main__":
    main()
