"""Estimators as the command line names them."""

import ast
import re
from argparse import Namespace
from collections.abc import Sequence
from typing import Any

from privfeat.cli.shared import options
from privfeat.cli.shared.terminal import CommandError


def parameters(args: Namespace) -> dict[str, Any]:
    """Return the constructor parameters that options or ``--set`` give."""
    named = options.given(args, options.PARAMETERS)
    settings = parse_settings(args.set)
    for name in sorted(settings.keys() & {*named, "classes", "ledger"}):
        option = options.name_of(name)
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


def as_options(text: str, args: Namespace) -> str:
    """Return an error whose parameters have the names of the options of a verb.

    >>> as_options("clip_norm must be > 0, got 0.", Namespace(clip_norm=0.0))
    '--clip-norm must be > 0, got 0.'
    """
    for name in options.PARAMETERS:
        if hasattr(args, name) and "_" in name:
            option = options.name_of(name)
            text = re.sub(rf"(?<![\w-]){name} must", f"{option} must", text)
    return text


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
    """Return the saved model that is tested, a network, or the name of an estimator."""
    if args.network is not None:
        from privfeat import DPSGDClassifier

        return DPSGDClassifier(model=args.network)
    if args.saved is None:
        return args.estimator
    from privfeat import persistence

    model = persistence.load(args.saved)
    if hasattr(model, "steps"):
        raise CommandError(
            "--model must be one estimator to be tested, got a pipeline. Name its last "
            "step: --estimator."
        )
    if not has_one_label(model):
        raise CommandError("--model is for classifiers with one label a record.")
    return model


def shape_of_image(args: Namespace, basis: Any) -> tuple[int, ...]:
    """Return the shape of a record of a network that is tested; () of rows."""
    if args.network is not None:
        return (args.image_size, args.image_size, 1 if args.grey else 3)
    shape: tuple[int, ...] = getattr(basis, "input_shape_", ())
    return shape


def has_one_label(model: Any) -> bool:
    """Return whether a model is a classifier of one label a record."""
    return hasattr(model, "predict_proba") and not getattr(model, "multilabel_", False)
