"""``privfeat predict``: apply a saved model to a feature file, a table or images.

Write a CSV file with one line per row: its number from 0, the predicted class and,
where known, the name of the class. For a model of several labels a row: one column of 0
and 1 for each class; for a regressor: the predicted number. With --proba also the
probability of each class, and with --id or --names whose row it is, which a feature
file does not know: --of says what it was extracted from. For example

    privfeat predict --model model --features new.h5:test --out predictions.csv
"""

import csv
import io
import json
import os
from argparse import Namespace
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from privfeat.cli.shared import files, images, options, tables, terminal
from privfeat.cli.shared.saved import load_for_rows
from privfeat.cli.shared.terminal import CommandError

# Of a feature file, so many rows and their predictions are in memory at once.
_BLOCK = 2**16


def add_parser(verbs: Any) -> None:
    """Add this verb to the parser of the command."""
    add = options.verb(verbs, run).add_argument
    model = "a folder that `fit`, `train` or `privfeat.save` wrote"
    add("--model", metavar="DIR", required=True, help=model)
    features = (
        "rows to predict (split test if several), or a table like that of the fit; of "
        "a network of images, a folder with images, also in folders"
    )
    add("--features", metavar="FILE[:SPLIT]", required=True, help=features)
    add("--out", metavar="FILE.csv", required=True, help="replaced if it exists")
    proba = "add the probability of each class, as a column proba_CLASS"
    add("--proba", action="store_true", help=proba)
    whose = (
        "of a table, or of texts: put this column beside each prediction, which says "
        "whose it is (as id_COLUMN where a column of the predictions has its name)"
    )
    add("--id", metavar="COLUMN", help=whose)
    names = "of images: put the name of the file beside each prediction"
    add("--names", action="store_true", help=names)
    source = (
        "of a feature file: the table (for --id) or the folder of images (for --names) "
        "that it was extracted from, unchanged since"
    )
    add("--of", metavar="SOURCE", help=source)


def run(args: Namespace) -> None:
    """Predict all rows, and write the file so that it appears whole."""
    from privfeat import persistence
    from privfeat._files import write_atomically

    read = (args.features, args.features.rpartition(":")[0], args.of)
    if any(name and _same(args.out, name) for name in read):
        raise CommandError("--out must be another file than the rows, got the same.")
    model: Any = persistence.load_predictor(args.model)
    classes: Any = getattr(model, "classes", None)
    if model is None:
        model = load_for_rows(args.model)
        classes = getattr(model, "classes_", None)
    if args.proba and classes is None:
        raise CommandError(
            "--proba is for classifiers, but the model predicts numbers. Leave it out."
        )
    shape = getattr(model, "input_shape_", ())
    X, beside = (_images if len(shape) > 1 else _rows)(args, shape)
    names = persistence.load_class_names(args.model)
    labels = (names or classes.tolist()) if args.proba else []
    made = _Written(beside)

    def lines() -> Iterator[bytes]:
        for rows in _blocks(X):
            header, cells = _columns(classes, model.predict(rows).tolist(), names)
            if args.proba:
                found = model.predict_proba(rows).tolist()
                cells = [[*row, *more] for row, more in zip(cells, found, strict=True)]
            yield made.block([*header, *(f"proba_{label}" for label in labels)], cells)

    write_atomically(args.out, lines())
    print(f"{made.n_rows} predictions written to {args.out}")
    if made.beside:
        told = ", ".join(made.beside)
        print(f"It says whose each is ({told}): keep it with the data.")


def _blocks(X: Any) -> Iterator[Any]:
    """Yield the rows of a feature file in blocks; other rows are in memory already."""
    from privfeat.data import LazyFeatures

    if not isinstance(X, LazyFeatures):
        yield X
        return
    for start in range(0, max(len(X), 1), _BLOCK):
        yield X[start : start + _BLOCK]


class _Written:
    """The lines of a CSV file, made block by block."""

    def __init__(self, beside: dict[str, Iterable[Any]]) -> None:
        self.beside = beside
        self.n_rows = 0
        self._whose: Iterator[Iterable[Any]] = iter(())

    def block(self, header: list[Any], cells: list[list[Any]]) -> bytes:
        """Return the next lines, behind the header if they are the first."""
        buffer = io.StringIO(newline="")
        writer = csv.writer(buffer, lineterminator="\n")
        if self.n_rows == 0:
            self.beside = _apart(self.beside, {"row", *map(str, header)})
            self._whose = zip(*self.beside.values(), strict=True)
            writer.writerow(["row", *self.beside, *header])
        for values in cells:
            whose = next(self._whose) if self.beside else ()
            writer.writerow([self.n_rows, *whose, *values])
            self.n_rows += 1
        return buffer.getvalue().encode()


def _same(one: str, other: str) -> bool:
    both = os.path.exists(one) and os.path.exists(other)
    return both and os.path.samefile(one, other)


def _apart(
    beside: dict[str, Iterable[Any]], others: set[str]
) -> dict[str, Iterable[Any]]:
    """Return what stands beside the predictions under names that no other column has.

    A column ``name`` of a table becomes ``id_name`` beside ``name``, that of the class.
    """
    found = {}
    for name, values in beside.items():
        while name in others:
            name = f"id_{name}"
        found[name] = values
    return found


def _rows(args: Namespace, _: Any) -> tuple[Any, dict[str, Iterable[Any]]]:
    """Return features, and what stands beside the predictions."""
    from privfeat import persistence

    made = persistence.load_origin(args.model)
    declared = tables.declared_of(args.model)
    files.check_knows_table(args.features, declared)
    _check_source(args, declared is not None)
    like: Any = {"option": "--features", "fitted_on": made}
    split = files.open_rows(args.features, "test", declared, **like, labelled=False)
    if args.names:
        return split.X, {"file": _files_of(args, split)}
    if args.id is None:
        return split.X, {}
    if args.of is not None and Path(args.of).is_dir():
        table = Path(args.of, getattr(split, "name", "test"))
        raise CommandError(
            f"--of must be a table, got the folder {args.of!r}. Name the table of the "
            f"split in it, such as {table}.csv."
        )
    values = tables.column_of(args.of or args.features, "--id", args.id)
    skipped = getattr(split, "metadata", {}).get("n_skipped", 0)
    if len(values) != split.X.shape[0] or skipped:
        raise CommandError(
            f"--of must be the table that {args.features} was extracted from, with a "
            f"row for each of its rows, got {args.of!r}."
        )
    if hasattr(split, "metadata"):
        _check_texts(args, split)
    return split.X, {args.id: values}


def _check_texts(args: Namespace, split: Any) -> None:
    """Raise CommandError unless the table has the texts that a file was made of."""
    from privfeat.data import open_features
    from privfeat.data.origin import digest_of_list

    made = open_features(split.X.path).metadata.get("arguments", {})
    listed = split.metadata.get("file_list_sha256")
    if listed is None or "text" not in made:
        terminal.warn(
            f"rows of {args.features} are taken by place for those of {args.of}: "
            "nothing in it says which they are."
        )
        return
    texts = [tables.column_of(args.of, "--of", name) for name in made["text"]]
    n_rows = len(split.y)
    rows = [json.dumps(row) for row in zip(*texts, strict=True)]
    labels = (split.y.tolist(), [-1] * n_rows)  # of texts without classes
    if not any(digest_of_list(rows, own) == listed for own in labels):
        raise CommandError(
            f"--of must be the table that {args.features} was extracted from, with the "
            f"same texts in their order, got {args.of!r}. Extract them again."
        )


def _check_source(args: Namespace, table: bool) -> None:
    """Refuse what cannot say whose each row of a table, or a feature file, is."""
    if args.names and args.id is not None:
        raise CommandError("--id and --names must not be given together.")
    if table and (args.names or args.of is not None):
        raise CommandError(
            "--names and --of must not be given for a table: pass --id COLUMN of it."
        )
    if not table and (args.of is None) == (args.names or args.id is not None):
        raise CommandError(
            "--of must be given together with --id or --names for a feature file, "
            "which holds no names of records: what it was extracted from."
        )


def _files_of(args: Namespace, split: Any) -> list[str]:
    """Return the names of the images of a split, by the list that it was made of."""
    from privfeat.data.origin import digest_of_list
    from privfeat.data.pixels import list_images

    if not Path(args.of).is_dir():
        raise CommandError(f"--of must be a folder of images, got {args.of!r}.")
    names, _ = list_images(args.of)
    own = [name for name in names if name.startswith(f"{split.name}/")] or names
    labels = split.y[:].tolist() if split.y.ndim == 1 else []
    listed = split.metadata.get("file_list_sha256")
    if len(own) != len(labels) or digest_of_list(own, labels) != listed:
        raise CommandError(
            f"--of must be the folder that {args.features} was extracted from, with "
            f"the same images, all of which gave a row, got {args.of!r}. Of an "
            "extraction with --skip-bad no names are known: move the images away that "
            "it listed, and extract again."
        )
    return own


def _images(
    args: Namespace, shape: tuple[int, ...]
) -> tuple[Any, dict[str, Iterable[Any]]]:
    """Return images, and what stands beside the predictions."""
    if args.id is not None or args.of is not None:
        raise CommandError("--id and --of are for rows. Of images, pass --names.")
    if not Path(args.features).is_dir():
        raise CommandError(
            "--features must be a folder of images for this model, got "
            f"{args.features!r}. Of other files, call privfeat.load(DIR).predict in "
            "Python."
        )
    found = images.images_of("--features", args.features, shape)
    return found, {"file": found.files} if args.names else {}


def _columns(
    classes: Any, predicted: list[Any], names: list[str] | None
) -> tuple[list[Any], list[list[Any]]]:
    """Return the header and the cells of each row, without the number of the row."""
    several = bool(predicted) and isinstance(predicted[0], list)
    if classes is None and several:  # outputs of a network
        return [f"prediction_{i}" for i in range(len(predicted[0]))], predicted
    if classes is None:
        return ["prediction"], [[value] for value in predicted]
    labels = classes.tolist()
    by_class = dict(zip(labels, names or [], strict=False))
    if several:
        return [by_class.get(label, label) for label in labels], predicted
    if not by_class:
        return ["class"], [[label] for label in predicted]
    return ["class", "name"], [[label, by_class[label]] for label in predicted]
