"""Which views, pooling and layers help, and do two networks help each other?

    python benchmarks/views.py cifar10-jpeg.tar.xz --out views.json \
        --network mobilenetv2_100_same=mobilenetv2_100_imagenet.safetensors \
        --network tf_efficientnet_lite0=efficientnet_lite0.safetensors

Takes every twelfth training image, fits `DPFC` on three of five of them and prints its
accuracy on the others: mean and standard error of the fits. No test image is used, so
that what is chosen here can be measured there. ``benchmarks/features`` has the second
network. Each view is extracted once, and policies are means of what was extracted; so
are poolings and layers. With ``--features DIR`` they are kept there, for another run.
"""

import argparse
import tempfile
import warnings
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from _results import Cells, keep_tables, markdown_table
from accuracy import BASELINE, non_private, shown

import privfeat
from privfeat_extract.arguments import Network, Options
from privfeat_extract.network import NetworkExtractor
from privfeat_extract.opening import open_source
from privfeat_extract.views import VIEWS, View, crops_of

POLICIES = {
    "as it is": VIEWS[:1],
    "and mirrored": VIEWS[:2],
    "zoom 1, 1.2, all mirrored": VIEWS[:4],
}
# What else of a network is extracted, of one view.
PARTS: dict[str, dict[str, Any]] = {"max": {"pool": "max"}, "stage": {"layers": (-1,)}}


def main() -> None:
    """Extract what is missing, fit, and print one table for each network."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--network", action="append", required=True)
    parser.add_argument("--crop", type=int, default=64)
    parser.add_argument("--step", type=int, default=12, help="of the training images")
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.1, 1, 8])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument(
        "--policies", nargs="+", choices=POLICIES, default=list(POLICIES)
    )
    parser.add_argument("--parts", action="store_true", help="pooling and layers too")
    parser.add_argument("--baseline", action="store_true", help="non-private as well")
    parser.add_argument("--features", type=Path)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore", privfeat.PrivacyWarning)
    settings = {
        "networks": [given.partition("=")[0] for given in args.network],
        **{k: getattr(args, k) for k in ("crop", "step", "epsilons", "repeats")},
    }
    kept = Cells(args.out, settings)
    sets: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as temporary:
        for given in args.network:
            name, _, checkpoint = given.partition("=")
            folder = args.features or Path(temporary)
            folder.mkdir(parents=True, exist_ok=True)
            sets[name] = extracted(name, checkpoint, folder, args)
    contents = {name: variants(found, args) for name, found in sets.items()}
    if len(sets) > 1:
        contents["side by side"] = side_by_side(sets, args)
    for name, found in contents.items():
        table = []
        for variant, rows in found.items():
            measure = partial(accuracies, *rows, args)
            cells = kept.get(f"{name}, {variant}", measure)
            table.append([variant, *map(shown, cells.values())])
            if args.baseline:
                cell = f"{name}, {variant}, {BASELINE}"
                free = kept.get(cell, partial(score_without_privacy, *rows))
                table[-1].append(shown([free]))
        header = ["epsilon", *(f"{epsilon:g}" for epsilon in args.epsilons)]
        header += [BASELINE] if args.baseline else []
        print(f"\n{name}\n{markdown_table(header, table, name)}", flush=True)
    keep_tables(args.out)


def extracted(name: str, checkpoint: str, folder: Path, args: Any) -> Any:
    """Return the labels, and the features of each view and part, by name."""
    network = Network(name, checkpoint=Path(checkpoint))
    views = {str(view): view for name in args.policies for view in POLICIES[name]}
    wanted = {key: (network, view) for key, view in views.items()}
    if args.parts:
        wanted |= {key: (replace(network, **of), View()) for key, of in PARTS.items()}
    found: dict[str, Any] = {}
    for key, (one, view) in wanted.items():
        path = folder / f"{name}-{args.crop}-{key.replace(' ', '-')}.npz"
        if not path.exists():
            features, labels = rows_of(one, view, args)
            np.savez(path, features=features, labels=labels)
            print(f"{name}: {key}", flush=True)
        with np.load(path) as file:
            found[key], found["labels"] = file["features"], file["labels"]
    return found


def rows_of(network: Network, view: View, args: Any) -> tuple[Any, Any]:
    """Return features and labels of one view of the chosen images."""
    options = Options(
        data=str(args.data),
        out=Path("unused.h5"),
        networks=(network,),
        splits=["train"],
        resize=args.crop,
        crop=args.crop,
        workers=0,
        compile=args.compile,
    )
    extractor = NetworkExtractor(options)
    pixels = (args.crop, args.crop, extractor.metadata["interpolation"])
    extractor.transform, extractor._views = crops_of([view], *pixels)
    workspace = Path(tempfile.gettempdir(), "privfeat-views")
    with closing(open_source(options, workspace)) as source:
        images = source.splits["train"]
        chosen = range(0, len(images), args.step)
        images.names = [images.names[i] for i in chosen]
        images.spans = [images.spans[i] for i in chosen]
        images.labels = images.labels[list(chosen)]
        batches = list(extractor.batches(images, start=0, stop=len(images)))
    features = np.concatenate([batch.features for batch in batches])
    return features, np.concatenate([batch.labels for batch in batches])


def variants(found: Any, args: Any) -> dict[str, tuple[Any, Any]]:
    """Return rows and labels of each policy, pooling and choice of layers."""
    made = {name: mean(found, POLICIES[name]) for name in args.policies}
    if args.parts:
        average, most = found[str(View())], found["max"]
        made["--pool max"] = most
        made["--pool avgmax"] = (average + most) / 2
        made["--pool catavgmax"] = np.hstack([average, most])
        made["--layers -1 output"] = np.hstack([unit(found["stage"]), unit(average)])
    return {name: (rows, found["labels"]) for name, rows in made.items()}


def side_by_side(sets: dict[str, Any], args: Any) -> dict[str, tuple[Any, Any]]:
    """Return rows and labels of all networks, each part of norm one."""
    labels = next(iter(sets.values()))["labels"]
    return {
        name: (
            np.hstack([unit(mean(of, POLICIES[name])) for of in sets.values()]),
            labels,
        )
        for name in args.policies
        if name in ("as it is", "and mirrored")
    }


def mean(found: Any, views: Sequence[View]) -> Any:
    """Return the mean of the features of some views."""
    return np.mean([found[str(view)] for view in views], axis=0)


def unit(rows: Any) -> Any:
    """Return rows of norm one."""
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)


def accuracies(rows: Any, labels: Any, args: Any) -> dict[str, list[float]]:
    """Return the scores of each epsilon, on two of five images, held out."""
    held = held_out(rows)
    return {
        f"{epsilon:g}": [
            privfeat.DPFC(epsilon=epsilon, delta=1e-5, classes=range(10))
            .fit(rows[~held], labels[~held])
            .score(rows[held], labels[held])
            for _ in range(args.repeats)
        ]
        for epsilon in args.epsilons
    }


def held_out(rows: Any) -> Any:
    """Return which rows no fit sees: two of five."""
    return np.isin(np.arange(len(rows)) % 5, (3, 4))


def score_without_privacy(rows: Any, labels: Any) -> float:
    """Return the accuracy of logistic regression on the same images."""
    held = held_out(rows)
    return non_private(rows[~held], labels[~held], rows[held], labels[held])


if __name__ == "__main__":
    main()
