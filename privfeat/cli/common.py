"""What the verbs share: estimators, data, ledgers, output, warnings."""

import ast
import shutil
import tempfile
import uuid
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privfeat._stderr import STDERR
from privfeat.cli import options

if TYPE_CHECKING:
    from privfeat import PrivacyLedger
    from privfeat.data import FeatureSplit

# Parameters whose options have other names.
_OPTIONS = {
    "random_state": "--seed",
    "classes": "--n-classes, or by the folders of --data",
    "expected_batch_size": "--batch",
    "checkpoint_dir": "--checkpoints",
}


class CommandError(Exception):
    """A command cannot do what was asked; the message says why."""


def parameters(args: Namespace) -> dict[str, Any]:
    """Return the constructor parameters that options or ``--set`` give."""
    named = options.given(args, options.PARAMETERS)
    settings = parse_settings(args.set)
    for name in sorted(settings.keys() & {*named, "classes", "ledger"}):
        option = _OPTIONS.get(name, f"--{name.replace('_', '-')}")
        raise CommandError(
            f"--set must not repeat an option: --set {name}=... must be given as "
            f"{option}."
        )
    return named | settings


def parse_settings(settings: Sequence[str]) -> dict[str, Any]:
    """Return ``name=value`` arguments as a dictionary.

    Values are read as Python literals; ``true``, ``false`` and ``none`` are understood,
    and what is no literal is a string.

    >>> parse_settings(["n_iter=50", "loss=sigmoid", "fit_intercept=false"])
    {'n_iter': 50, 'loss': 'sigmoid', 'fit_intercept': False}
    """
    parsed: dict[str, Any] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals or not name.isidentifier() or name in parsed:
            raise CommandError(
                f"--set must be name=value, once for each name, got {setting!r}."
            )
        word = text.capitalize()
        try:
            parsed[name] = ast.literal_eval(
                word if word in {"True", "False", "None"} else text
            )
        except (ValueError, SyntaxError):
            parsed[name] = text
    return parsed


def make_estimator(basis: Any, params: dict[str, Any]) -> Any:
    """Return an unfitted copy of an estimator, or of a linear one by its name.

    A budget among ``params`` takes the place of that of the estimator.
    """
    from sklearn.base import clone

    from privfeat import linear

    basis = getattr(linear, basis)() if isinstance(basis, str) else basis
    known = set(basis.get_params(deep=False))
    for name in sorted(set(params) - known):
        raise CommandError(
            f"{type(basis).__name__} has no parameter {name!r}, only "
            f"{', '.join(sorted(known))}."
        )
    budgets = known.intersection(options.BUDGETS)
    if budgets.intersection(params):
        params = dict.fromkeys(budgets) | params
    return clone(basis).set_params(**params)


def load_tested(args: Namespace) -> Any:
    """Return the saved model that is tested, or the name of an estimator."""
    if args.saved is None:
        return args.estimator
    from privfeat import persistence

    model = persistence.load(args.saved)
    if not has_one_label(model):
        raise CommandError("--model is for classifiers with one label a record.")
    return model


def has_one_label(model: Any) -> bool:
    """Return whether a model is a classifier of one label a record."""
    return hasattr(model, "predict_proba") and not getattr(model, "multilabel_", False)


def open_split(
    argument: str, preferred: str, *, one_label: bool = False
) -> "FeatureSplit":
    """Return the split that ``FILE`` or ``FILE:SPLIT`` names.

    Without a name, ``preferred`` is taken, or the only split that the file has. With
    ``one_label`` each row must have one label.
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
    if one_label and file[name].y.ndim != 1:
        raise CommandError(f"{argument} must have one label a row.")
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


def open_ledger(args: Namespace) -> "PrivacyLedger | None":
    """Return the ledger that ``--ledger`` and ``--dataset`` name, if they do."""
    if (args.ledger is None) != (args.dataset is None):
        raise CommandError("--ledger and --dataset must be given together, got one.")
    if args.ledger is None:
        return None
    from privfeat import PrivacyLedger

    return PrivacyLedger(args.ledger, dataset=args.dataset)


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
def model_folder(args: Namespace) -> Iterator[list[Any]]:
    """Make the folder of ``--out``, where it holds no model that must be kept.

    On Ctrl-C say whether budget was spent; the body adds the estimator that it fits to
    the list.
    """
    if (Path(args.out) / "model.json").exists() and not args.overwrite:
        raise CommandError(
            f"--out must not hold a model, got {args.out!r}. Pass --overwrite to "
            "replace it; its budget stays spent."
        )
    begun: list[Any] = []
    try:
        with output_folder(args.out):
            yield begun
    except KeyboardInterrupt as error:
        # `private_fit` has said more if it was in the middle of a fit
        if not getattr(error, "__notes__", ()):
            # set when a fit is charged, or would be
            spent = any(hasattr(estimator, "privacy_") for estimator in begun)
            error.add_note("Its budget is spent." if spent else "No budget was spent.")
        raise


def save_model(
    args: Namespace,
    model: Any,
    class_names: Sequence[str] | None,
    test: tuple[Any, Any, Any] | None,
) -> None:
    """Save a model; print its accuracy on ``test`` and its statement unless quiet.

    ``test`` is features or images, labels, and what to call them.
    """
    _save_somewhere(args, model.set_params(verbose=0), class_names)
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


def _save_somewhere(
    args: Namespace, model: Any, class_names: Sequence[str] | None
) -> None:
    """Save a model in ``--out`` or, since its budget is spent, anywhere.

    Raises
    ------
    CommandError
        If it is not in ``--out``, as when its disk is full by now, or another command
        has saved a model there. The message says where it is.
    """
    from privfeat import persistence

    try:
        persistence.save(
            model, args.out, overwrite=args.overwrite, class_names=class_names
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


def write_file(path: str | Path, content: bytes) -> None:
    """Write a file whole or not at all, and say so."""
    from privfeat._files import write_atomically

    write_atomically(path, content)
    print(f"{path} written")


def shows_progress(args: Namespace) -> bool:
    """Return whether to show progress: on a terminal, without ``--quiet``."""
    return STDERR.isatty() and not args.quiet


def progress(args: Namespace, text: str) -> None:
    """Print what is being done, if progress is shown."""
    if shows_progress(args):
        print(text, file=STDERR, flush=True)


def warn(sentence: str) -> None:
    """Print a warning to the person who started the command."""
    print(f"privfeat: warning: {sentence}", file=STDERR)
