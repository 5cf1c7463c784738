"""What the verbs share: estimators, data, ledgers, output, warnings."""

import argparse
import ast
import inspect
import shutil
import sys
import tempfile
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privfeat.cli.options import BUDGETS

if TYPE_CHECKING:
    from privfeat import PrivacyLedger
    from privfeat.data import FeatureSplit


class CommandError(Exception):
    """A command cannot do what was asked; the message says why."""


def parse_settings(settings: Sequence[str]) -> dict[str, Any]:
    """Return ``name=value`` arguments as a dictionary.

    Values are read as Python literals; ``true``, ``false`` and ``none`` are understood,
    and what is no literal is a string.

    >>> parse_settings(["n_iter=50", "loss=sigmoid", "fit_intercept=false"])
    {'n_iter': 50, 'loss': 'sigmoid', 'fit_intercept': False}
    """
    words = {"true": True, "false": False, "none": None}
    parsed: dict[str, Any] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals or not name.isidentifier() or name in parsed:
            raise CommandError(
                f"--set must be name=value, once for each name, got {setting!r}."
            )
        if text.lower() in words:
            parsed[name] = words[text.lower()]
            continue
        try:
            parsed[name] = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            parsed[name] = text
    return parsed


def check_known(
    estimator: str, params: Iterable[str], known: Iterable[str], *, tell: bool = False
) -> None:
    """Refuse parameters that an estimator does not have; ``tell`` which it has."""
    known = sorted(known)
    for name in sorted(set(params) - set(known)):
        only = f", only {', '.join(known)}" if tell else ""
        raise CommandError(f"{estimator} has no parameter {name!r}{only}.")


def make_estimator(name: str, **params: Any) -> Any:
    """Return an unfitted linear estimator, or refuse parameters it does not have."""
    from privfeat import linear

    cls = getattr(linear, name)
    check_known(name, params, inspect.signature(cls).parameters, tell=True)
    return cls(**params)


def tested_estimator(
    args: argparse.Namespace, model: Any, params: dict[str, Any]
) -> Any:
    """Return ``--estimator``, or an unfitted copy of the model, with parameters."""
    if model is None:
        return make_estimator(args.estimator, **params)
    from sklearn.base import clone

    known = set(model.get_params(deep=False))
    check_known(type(model).__name__, params, known)
    budgets = known & {*BUDGETS}
    if budgets & set(params):  # one budget takes the place of another
        params = dict.fromkeys(budgets) | params
    return clone(model).set_params(**params)


def load_tested(path: str | None) -> Any:
    """Return the saved model that is tested, if one is."""
    if path is None:
        return None
    from privfeat import persistence

    model = persistence.load(path)
    if not has_one_label(model):
        raise CommandError("--model is for classifiers with one label a record.")
    return model


def has_one_label(model: Any) -> bool:
    """Return whether a model is a classifier of one label a record."""
    return hasattr(model, "predict_proba") and not getattr(model, "multilabel_", False)


def open_split(argument: str, preferred: str) -> "FeatureSplit":
    """Return the split that ``FILE`` or ``FILE:SPLIT`` names.

    Without a name, ``preferred`` is taken, or the only split that the file has.
    """
    from privfeat.data import open_features

    path, name = split_argument(argument)
    file = open_features(path)
    if name is None:
        name = preferred if preferred in file or len(file) != 1 else next(iter(file))
    if name not in file:
        raise CommandError(
            f"{path} has no split {name!r}. Name one of {', '.join(file)}: FILE:SPLIT."
        )
    return file[name]


def split_argument(argument: str) -> tuple[str, str | None]:
    """Return path and split of ``FILE`` or ``FILE:SPLIT``.

    >>> split_argument("data/a.h5:train")
    ('data/a.h5', 'train')
    >>> split_argument("data/a.h5")
    ('data/a.h5', None)
    """
    path, colon, name = argument.rpartition(":")
    if not colon or Path(argument).exists() or set(name) & set("/\\") or not name:
        return argument, None
    return path, name


def single_labels(split: "FeatureSplit", argument: str) -> Any:
    """Return the labels of a split if each row has exactly one."""
    if split.y.ndim != 1:
        raise CommandError(f"{argument} must have one label a row.")
    return split.y


def open_ledger(args: argparse.Namespace) -> "PrivacyLedger | None":
    """Return the ledger that ``--ledger`` and ``--dataset`` name, if they do."""
    if (args.ledger is None) != (args.dataset is None):
        raise CommandError("--ledger and --dataset must be given together, got one.")
    if args.ledger is None:
        return None
    from privfeat import PrivacyLedger

    return PrivacyLedger(args.ledger, dataset=args.dataset)


def refuse_to_replace(args: argparse.Namespace) -> None:
    """Raise CommandError if ``--out`` holds a model, unless it may be replaced."""
    if (Path(args.out) / "model.json").exists() and not args.overwrite:
        raise CommandError(
            f"--out must not hold a model, got {args.out!r}. Pass --overwrite to "
            "replace it; its budget stays spent."
        )


@contextmanager
def output_folder(path: str) -> Iterator[Path]:
    """Make a folder and see that it can be written, before any budget is spent.

    What was made is removed again, where it is empty, if the body fails.
    """
    folder = Path(path)
    made = [part for part in (folder, *folder.parents) if not part.exists()]
    if folder.exists() and not folder.is_dir():
        raise CommandError(f"--out must be a folder, got the file {path!r}.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
        yield folder
    except BaseException:
        for part in made:
            if part.is_dir() and not any(part.iterdir()):
                part.rmdir()
        raise


@contextmanager
def interrupt_explained() -> Iterator[list[Any]]:
    """Say on Ctrl-C whether budget was spent; the body adds the estimator it fits."""
    begun: list[Any] = []
    try:
        yield begun
    except KeyboardInterrupt as error:
        # where the fit was in the middle, `core.charging` has said more
        if not getattr(error, "__notes__", ()):
            # set when a fit is charged, or would be
            spent = any(hasattr(estimator, "privacy_") for estimator in begun)
            error.add_note("Its budget is spent." if spent else "No budget was spent.")
        raise


def save_fit(
    args: argparse.Namespace, model: Any, class_names: Sequence[str] | None
) -> None:
    """Save a fitted model in ``--out`` or, since its budget is spent, anywhere.

    Raises
    ------
    CommandError
        If it is not in ``--out``, as when its disk is full by now, or another command
        has saved a model there. The message says where it is.
    """
    from privfeat import persistence

    folder = Path(args.out)
    try:
        persistence.save(
            model, folder, overwrite=args.overwrite, class_names=class_names
        )
        return
    except OSError as error:
        why = error.strerror or str(error).rstrip(".")
    rescued = Path(tempfile.gettempdir(), f"privfeat-{uuid.uuid4().hex}")
    try:
        persistence.save(model, rescued, class_names=class_names)
    except OSError:
        shutil.rmtree(rescued, ignore_errors=True)
        where = "It is lost"
    else:
        where = f"It is in {rescued}: move it"
    raise CommandError(
        f"the model could not be saved in {args.out} ({why}). {where}. Its budget is "
        "spent."
    )


def print_fit(
    args: argparse.Namespace, model: Any, test: tuple[Any, Any, Any] | None
) -> None:
    """Print, unless told to be quiet, the accuracy on ``test`` and the statement.

    ``test`` is features or images, labels, and what to call them.
    """
    if args.quiet:
        return
    print(f"model saved in {args.out}")
    if test is not None:
        X, y, name = test
        whole = " (rows with all labels right)" if y.ndim == 2 else ""
        print(
            f"test accuracy {model.score(X, y):.4f}{whole} on {name}\n"
            "  computed on the test labels: these must be public, or be accounted for "
            "separately; the statement below does not cover them"
        )
    print(model.privacy_)


def write_file(path: str | Path, content: bytes) -> None:
    """Write a file whole or not at all, and say so."""
    from privfeat._files import write_atomically

    write_atomically(path, content)
    print(f"{path} written")


def progress(args: argparse.Namespace, text: str) -> None:
    """Tell on a terminal what is being done, unless told to be quiet."""
    if sys.stderr.isatty() and not args.quiet:
        print(text, file=sys.stderr, flush=True)


def warn(sentence: str) -> None:
    """Print a warning to the person who started the command."""
    print(f"privfeat: warning: {sentence}", file=sys.stderr)
