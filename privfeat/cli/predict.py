"""``privfeat predict``: apply a saved model to a feature file or a table.

Write a CSV file with one line per row: its number from 0, the predicted class and,
where known, the name of the class. For a model of several labels a row: one column of 0
and 1 for each class; for a regressor: the predicted number. For example

    privfeat predict --model model --features new.h5:test --out predictions.csv
"""

import csv
import io
from argparse import Namespace
from typing import Any

from privfeat.cli.shared import files, options, tables
from privfeat.cli.shared.terminal import CommandError


def add_parser(verbs: Any) -> None:
    """Add this verb to the parser of the command."""
    add = options.verb(verbs, run).add_argument
    model = "a folder that `fit` wrote; networks of `train` predict in Python"
    add("--model", metavar="DIR", required=True, help=model)
    features = (
        "rows to predict (split test if several), or a table like that of the fit"
    )
    add("--features", metavar="FILE[:SPLIT]", required=True, help=features)
    add("--out", metavar="FILE.csv", required=True, help="replaced if it exists")


def run(args: Namespace) -> None:
    """Predict all rows, then write the file in one step."""
    from privfeat import persistence
    from privfeat._files import write_atomically

    model: Any = persistence.load_predictor(args.model)
    network = None if model is not None else persistence.load(args.model)
    if network is not None and len(network.input_shape_) > 1:
        raise CommandError(
            f"--model must be a model of feature rows, but {args.model} takes images. "
            "Call privfeat.load(DIR).predict(images) in Python."
        )
    names = persistence.load_class_names(args.model)
    made = persistence.load_origin(args.model)
    declared = tables.declared_of(args.model)
    split = files.open_like(
        *(args.features, "test", made, "--features", declared),
        labelled=False,
    )
    if network is not None:
        classes, multilabel = getattr(network, "classes_", None), False
        predicted = network.predict(split.X).tolist()
    else:
        classes, multilabel = model.classes, model.multilabel
        predicted = model.predict(split.X).tolist()
    header, cells = _columns(classes, multilabel, predicted, names)

    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["row", *header])
    writer.writerows([row, *values] for row, values in enumerate(cells))
    write_atomically(args.out, buffer.getvalue().encode())
    print(f"{len(predicted)} predictions written to {args.out}")


def _columns(
    classes: Any, multilabel: bool, predicted: list[Any], names: list[str] | None
) -> tuple[list[Any], list[list[Any]]]:
    """Return the header and the cells of each row, without the number of the row."""
    if classes is None:
        return ["prediction"], [[value] for value in predicted]
    labels = classes.tolist()
    by_class = dict(zip(labels, names or [], strict=False))
    if multilabel:
        return [by_class.get(label, label) for label in labels], predicted
    if not by_class:
        return ["class"], [[label] for label in predicted]
    return ["class", "name"], [[label, by_class[label]] for label in predicted]
