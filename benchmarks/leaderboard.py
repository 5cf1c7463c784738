"""Where do our figures stand beside a public leaderboard of private classifiers?

Prints entries of the leaderboard of *Rethinking Benchmarks for Differentially Private
Image Classification* (Mokhtari et al. 2026) on sets that we have too, each with its
setting, and beside them what other benchmarks of ours measured; it fits nothing:

    python benchmarks/leaderboard.py --out benchmarks/results/leaderboard.json

The entries are figures of the papers that the leaderboard names, as one stored version
of its data had them (`SOURCE`), read on 2026-11-28. All are at delta 1e-5. They state
no numbers of records: those here are of the whole training sets. The models, the
records or the public data differ from ours in every row: the table says how.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from _results import RESULTS, keep_tables, markdown_table, write_json

# In the folder ``_data`` there, with the commit of each file.
SOURCE = {
    "repository": "Private-MachineLearning/Private-MachineLearning.github.io",
    "read": "2026-11-28",
    "_CIFAR-10/CIFAR10_no.yml": "8ddd634",
    "ImageNet-CIFAR10.yml": "5eae614",
    "MNIST.yml": "5eae614",
}
TRAMER, DE = "Tramèr & Boneh 2021", "De et al. 2022"
Scores = dict[float, float]
# Set, public data, who, model, convex or not, training records; percent by epsilon.
Entry = tuple[str, str, str, str, str, str, Scores]
LISTED: list[Entry] = [
    ("CIFAR-10", "none", TRAMER, "ScatterNet + linear", "yes", "50,000", {3: 67.0}),
    ("CIFAR-10", "none", TRAMER, "ScatterNet + CNN", "no", "50,000", {3: 69.3}),
    (
        *("CIFAR-10", "none", DE, "Wide-ResNet", "no", "50,000"),
        {1: 56.8, 2: 65.9, 4: 73.5, 8: 81.4},
    ),
    (
        *("CIFAR-10", "ImageNet", DE, "Wide-ResNet", "not said", "50,000"),
        {1: 94.7, 2: 95.4, 4: 96.1, 8: 96.7},
    ),
    (
        *("MNIST", "none", TRAMER, "ScatterNet + linear", "yes", "60,000"),
        {1.2: 98.1, 2: 98.5, 2.32: 98.6, 2.5: 98.7, 2.93: 98.7},
    ),
    (
        *("MNIST", "none", TRAMER, "ScatterNet + CNN", "no", "60,000"),
        {1.2: 97.8, 2: 98.4, 2.32: 98.5, 2.5: 98.6, 2.93: 98.7},
    ),
]
OURS = "privfeat"
HEADER = ("set", "public data", "by", "model", "convex", "records")


def main() -> None:
    """Print the table and write its numbers."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    # sets in turn, and within a set those without public data first
    entries = sorted(
        [*LISTED, *ours()], key=lambda entry: (entry[0], entry[1] != "none")
    )
    rows = [[*entry[:-1], *shown(entry[-1])] for entry in entries]
    print(markdown_table([*HEADER, "%, at epsilon"], rows, "leaderboard"))
    if args.out:
        kept = [
            dict(zip((*HEADER, "accuracy"), entry, strict=True)) for entry in entries
        ]
        write_json(args.out, {"leaderboard": SOURCE, "entries": kept})
    keep_tables(args.out)


def ours() -> list[Entry]:
    """Return what we measured on the same sets, or parts of them."""
    scratch = read("dpsgd_accuracy")["tables"]["epsilon"]
    place = scratch["header"].index("sample_convnet from scratch, %")
    features = read("accuracy_cifar10_128")["accuracy"]["cifar10_128"]["DPFC"]
    digits = read("mnist5k")["accuracy"]["mnist5k"]["DPFC"]
    cifar, none = "CIFAR-10", "none"
    return [
        (
            *(cifar, none, OURS, "SampleConvNet, DP-SGD", "no", "10,000"),
            {float(row[0]): float(row[place].split()[0]) for row in scratch["rows"]},
        ),
        (
            *(cifar, "ImageNet", OURS, "MobileNetV2, DPFC", "yes", "50,000"),
            percent(features),
        ),
        ("MNIST", none, OURS, "scattering, DPFC", "yes", "4,000", percent(digits)),
    ]


def percent(scores: dict[str, list[float]]) -> Scores:
    """Return means in percent."""
    return {float(e): 100.0 * float(np.mean(each)) for e, each in scores.items()}


def shown(scores: Scores) -> list[str]:
    """Return a cell: each accuracy with its epsilon."""
    return [", ".join(f"{score:.1f} at {e:g}" for e, score in sorted(scores.items()))]


def read(name: str) -> dict:
    """Return a result."""
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
