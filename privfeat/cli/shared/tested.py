"""The test records that a command measures a saved model on."""

from argparse import Namespace
from pathlib import Path
from typing import Any

from privfeat.cli.shared import files
from privfeat.cli.shared.terminal import CommandError


def tested_records(
    args: Namespace, estimator: Any, made: dict[str, Any]
) -> tuple[Any, Any, Any]:
    """Return features or images, labels, and the split of a feature file, or None.

    ``made`` says how the features of the model were made; those of the file must be of
    the same network. What is called a training split is refused without ``--unseen``.
    """
    if getattr(estimator, "multilabel_", False):
        raise CommandError("--test is for models of one label a record.")
    if len(getattr(estimator, "input_shape_", ())) > 1:
        return *_test_images(args, estimator.input_shape_), None
    split = files.open_like(args.test, "test", made, "--test", one_label=True)
    _refuse_training(args, split.name)
    return split.X, split.y[:], split


def _refuse_training(args: Namespace, split: str) -> None:
    """Refuse what is called a training split: a model does not know its records."""
    if split.casefold() in ("train", "training") and not args.unseen:
        raise CommandError(
            f"--test must not be the training split, got {split!r} of {args.test}. An "
            "accuracy on training records says something about them. Pass another, or "
            "--unseen if the model was fitted on others."
        )


def _test_images(args: Namespace, shape: tuple[int, ...]) -> tuple[Any, Any]:
    """Return images and labels, as ``privfeat train`` reads them."""
    from privfeat.networks.images.records import read_folder
    from privfeat.persistence import load_class_names

    if len(shape) != 3 or shape[0] != shape[1] or shape[2] not in (1, 3):
        raise CommandError(f"--test is for networks of square images, got {shape}.")
    if not Path(args.test).is_dir():
        raise CommandError(f"--test must be a folder of images, got {args.test!r}.")
    _refuse_training(args, Path(args.test).resolve().name)
    mode = "L" if shape[2] == 1 else "RGB"
    X, y, names, _ = read_folder(args.test, size=shape[0], mode=mode)
    if load_class_names(args.model) not in (None, names):
        raise CommandError(f"{args.test} must have the classes of {args.model}.")
    return X, y
