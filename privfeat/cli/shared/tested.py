"""The test records that a command measures a saved model on."""

from argparse import Namespace
from pathlib import Path
from typing import Any

from privfeat.cli.shared import files, images, tables
from privfeat.cli.shared.terminal import CommandError


def check_public(args: Namespace) -> None:
    """Refuse exact figures of records that nobody has called public."""
    if args.test is not None and not args.test_is_public:
        raise CommandError(
            "--test shows exact figures, which no statement covers: its records must "
            "be public. Pass --test-is-public if they are. If not, leave --test out, "
            "and run `privfeat evaluate`: the report shows what it found."
        )


def tested_records(
    args: Namespace, estimator: Any, made: dict[str, Any], *, public: bool
) -> tuple[Any, Any, Any]:
    """Return features or images, labels, and the rows they are of, or image files.

    ``made`` says how the features of the model were made; those of the file must be of
    the same network. What is called a training split is refused without ``--unseen``.
    """
    if getattr(estimator, "multilabel_", False):
        raise CommandError("--test is for models of one label a record.")
    if len(getattr(estimator, "input_shape_", ())) > 1:
        if Path(args.test).is_dir():
            _refuse_training(args, Path(args.test).resolve().name)
        return images.labelled_images("--test", args.test, args.model, estimator)
    declared = tables.declared_of(args.model, getattr(args, "users", None))
    files.check_knows_table(args.test, declared)
    if declared is not None and declared.target is None:
        raise CommandError(
            f"{args.model} does not know the column of the classes. Save the model "
            "with table={'columns': ..., 'target': ...}, or measure it in Python."
        )
    if public:
        rows = files.open_public(args, "test", made, None, declared, one_label=True)
    else:
        like: Any = {"option": "--test", "fitted_on": made}
        rows = files.open_rows(args.test, "test", declared, **like, one_label=True)
    _refuse_training(args, getattr(rows, "name", Path(args.test).stem))
    return rows.X, labels_of(rows, args.test, estimator, args.model), rows


def labels_of(rows: Any, argument: str, estimator: Any, path: str) -> Any:
    """Return labels of rows as a saved classifier has them, targets as they are.

    Of a table by their names, which a model of Python may have as its classes; those of
    a feature file are numbers. CommandError if their names are not those of the model.
    """
    import numpy as np

    from privfeat.persistence import load_class_names

    if not hasattr(estimator, "classes_"):
        return rows.y[:]
    named = load_class_names(path)
    if not isinstance(rows, tables.TableRows):
        files.check_named_alike(argument, rows, named, path)
        return rows.y[:]
    categories, classes = rows.class_names or [], estimator.classes_.tolist()
    names = named or _names_of(classes, categories)
    label_of = dict(zip(names, classes, strict=True))
    if label_of.keys() >= set(categories):
        return np.array([label_of[name] for name in categories])[rows.y]
    raise CommandError(
        f"the target of {path} must have the classes of the model, {names}, as its "
        f"categories, got {categories}. Save the model with class_names, the category "
        "that each class stands for, in the order of its classes_, or with a table "
        "whose target has them."
    )


def _names_of(classes: list[Any], categories: list[str]) -> list[str]:
    """Return the categories that labels are by themselves: 1.0 is "1"."""
    from privfeat.preprocessing.readings import category_of

    if {*categories} == {"false", "true"} and classes == [0, 1]:  # a boolean target
        return ["false", "true"]
    return [
        str(label) if isinstance(label, bool) else category_of(label)
        for label in classes
    ]


def _refuse_training(args: Namespace, split: str) -> None:
    """Refuse what is called a training split: a model does not know its records."""
    if split.casefold() in ("train", "training") and not args.unseen:
        raise CommandError(
            f"--test must not be the training split, got {split!r} of {args.test}. An "
            "accuracy on training records says something about them. Pass another, or "
            "--unseen if the model was fitted on others."
        )
