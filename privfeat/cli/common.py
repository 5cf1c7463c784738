"""What the verbs share: arguments, budget options, output folders, warnings."""

import argparse
import ast
import inspect
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privfeat._types import ACCOUNTINGS, ADJACENCIES, ARITHMETICS

if TYPE_CHECKING:
    from privfeat.data import FeatureSplit

ESTIMATORS = ("DPLeastSquares", "DPNewton", "DPFC", "DPAdamLinear")


class CommandError(Exception):
    """A command cannot do what was asked; the message says why."""


def add_budget_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that every private fit has, none of them with a default."""
    group = parser.add_argument_group("privacy")
    budget = group.add_mutually_exclusive_group()
    budget.add_argument(
        "--epsilon", type=float, help="budget with --delta (default 1); inf for none"
    )
    budget.add_argument("--rho", type=float, help="budget in zCDP instead")
    budget.add_argument("--noise-multiplier", type=float, help="noise level instead")
    group.add_argument("--delta", type=float, help="with --epsilon (default 1e-5)")
    group.add_argument(
        "--adjacency",
        choices=ADJACENCIES,
        help="what neighbouring data sets are (default add_remove)",
    )
    group.add_argument(
        "--accounting",
        choices=ACCOUNTINGS,
        help="how noise converts to epsilon and delta (default exact)",
    )
    group.add_argument(
        "--arithmetic",
        choices=ARITHMETICS,
        help="how noise is drawn (default float64); exact: no leak by low bits",
    )
    group.add_argument(
        "--seed",
        type=int,
        help="reproducible noise, for tests and published experiments: not private",
    )


def budget_parameters(args: argparse.Namespace) -> dict[str, Any]:
    """Return the constructor parameters for the options that were given."""
    given = {
        "epsilon": args.epsilon,
        "rho": args.rho,
        "noise_multiplier": args.noise_multiplier,
        "delta": args.delta,
        "adjacency": args.adjacency,
        "accounting": args.accounting,
        "arithmetic": args.arithmetic,
        "random_state": args.seed,
    }
    return {name: value for name, value in given.items() if value is not None}


def parse_settings(settings: Sequence[str]) -> dict[str, Any]:
    """Return ``name=value`` arguments as a dictionary.

    Values are read as Python literals; ``true``, ``false`` and ``none`` are understood,
    and what is no literal is a string.

    Raises
    ------
    CommandError
        If there is no name, or a name comes twice.

    Examples
    --------
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


def make_estimator(name: str, **params: Any) -> Any:
    """Return an unfitted estimator.

    Raises
    ------
    CommandError
        If the estimator has no parameter of a given name.
    """
    from privfeat import linear

    cls = getattr(linear, name)
    known = set(inspect.signature(cls).parameters)
    unknown = sorted(set(params) - known)
    if unknown:
        raise CommandError(
            f"{name} has no parameter {unknown[0]!r}, only {', '.join(sorted(known))}."
        )
    return cls(**params)


def open_split(argument: str, preferred: str) -> "FeatureSplit":
    """Return the split that ``FILE`` or ``FILE:SPLIT`` names.

    Without a name, ``preferred`` is taken, or the only split that the file has.

    Raises
    ------
    CommandError
        If the choice is not clear, or there is no such split.
    FeatureFileError
        If the file cannot be read.
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

    Examples
    --------
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


def ledger_parameter(args: argparse.Namespace) -> dict[str, Any]:
    """Return the parameter for ``--ledger`` and ``--dataset``, if they were given."""
    if (args.ledger is None) != (args.dataset is None):
        raise CommandError("--ledger and --dataset must be given together, got one.")
    if args.ledger is None:
        return {}
    from privfeat import PrivacyLedger

    return {"ledger": PrivacyLedger(args.ledger, dataset=args.dataset)}


def load_classifier(path: str) -> Any:
    """Return a saved classifier of one label a record."""
    from privfeat import persistence

    model = persistence.load(path)
    if not hasattr(model, "predict_proba") or getattr(model, "multilabel_", False):
        raise CommandError("--model is for classifiers with one label a record.")
    return model


def with_params(model: Any, params: dict[str, Any]) -> Any:
    """Return an unfitted copy of a model, with other parameters where given."""
    from sklearn.base import clone

    unknown = sorted(set(params) - set(model.get_params(deep=False)))
    if unknown:
        raise CommandError(f"{type(model).__name__} has no parameter {unknown[0]!r}.")
    budgets = {"epsilon", "rho", "noise_multiplier"} & set(model.get_params(deep=False))
    if budgets & set(params):  # one budget takes the place of another
        params = dict.fromkeys(budgets) | params
    return clone(model).set_params(**params)


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


def progress(args: argparse.Namespace, text: str) -> None:
    """Tell on a terminal what is being done, unless told to be quiet."""
    if sys.stderr.isatty() and not args.quiet:
        print(text, file=sys.stderr, flush=True)


def warn(sentence: str) -> None:
    """Print a warning to the person who started the command."""
    print(f"privfeat: warning: {sentence}", file=sys.stderr)
