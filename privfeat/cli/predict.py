"""``privfeat predict``: classes of the rows of a feature file, as CSV."""

import argparse
import csv
import io
from typing import Any

from privfeat.cli.common import open_split


def add_parser(verbs: Any) -> None:
    """Add this verb to the parser of the command."""
    parser = verbs.add_parser(
        "predict",
        help="apply a saved model to a feature file",
        description="Write a CSV file with one line per row: its number from 0, the "
        "predicted class and, where known, the name of the class. For a model of "
        "several labels a row: one column of 0 and 1 for each class.",
    )
    parser.set_defaults(run=run)
    parser.add_argument(
        "--model", metavar="DIR", required=True, help="a folder that `fit` wrote"
    )
    parser.add_argument(
        "--features",
        metavar="FILE[:SPLIT]",
        required=True,
        help="rows to predict (split test if there are several)",
    )
    parser.add_argument(
        "--out", metavar="FILE.csv", required=True, help="replaced if it exists"
    )


def run(args: argparse.Namespace) -> None:
    """Predict all rows, then write the file in one step."""
    from privfeat import persistence
    from privfeat._files import write_atomically

    estimator = persistence.load(args.model)
    names = persistence.load_class_names(args.model)
    split = open_split(args.features, preferred="test")
    predicted = estimator.predict(split.X).tolist()
    classes = estimator.classes_.tolist()
    by_class = dict(zip(classes, names or [], strict=False))

    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\n")
    if estimator.multilabel_:
        writer.writerow(["row", *(by_class.get(label, label) for label in classes)])
        writer.writerows([row, *flags] for row, flags in enumerate(predicted))
    else:
        writer.writerow(["row", "class", "name"] if by_class else ["row", "class"])
        for row, label in enumerate(predicted):
            writer.writerow([row, label, by_class[label]] if by_class else [row, label])
    write_atomically(args.out, buffer.getvalue().encode())
    print(f"{len(predicted)} predictions written to {args.out}")
