"""Estimators as the command line names them."""

import ast
import re
from argparse import Namespace
from collections.abc import Sequence
from typing import Any

from privfeat.cli.shared import options
from privfeat.cli.shared.saved import last_of
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

    A budget among ``params`` takes the place of that of the estimator. Of a pipeline
    ``classes`` and ``target_bounds`` are those of the last step.
    """
    from sklearn.base import clone

    from privfeat import linear

    basis = getattr(linear, basis)() if isinstance(basis, str) else basis
    known = set(basis.get_params(deep=False))
    if hasattr(basis, "steps"):
        last = basis.steps[-1][0]
        params = {
            f"{last}__{name}" if name in ("classes", "target_bounds") else name: value
            for name, value in params.items()
        }
        known = {name for name in basis.get_params() if name in known or "__" in name}
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
    """Return the estimator that is tested: of a saved model, or a new one by its name.

    Of a pipeline what learns: all of a `PrivatePipeline`, after declared columns, and
    the last step of one of scikit-learn, whose others learn nothing.
    """
    if args.network is not None:
        from privfeat import DPSGDClassifier  # needs flax, as no linear model does

        return DPSGDClassifier(model=args.network)
    if args.saved is None:
        from privfeat import linear

        return getattr(linear, args.estimator)()
    from privfeat import persistence

    model = tested_of(persistence.load(args.saved))
    if hasattr(model, "steps") and not hasattr(model, "n_features_in_"):
        raise CommandError(
            "--model must take rows of numbers to be tested, got a pipeline that takes "
            "texts. Name its last step: --estimator."
        )
    last = last_of(model)
    numbers = 1 if hasattr(last, "classes_") else getattr(last, "n_outputs_", 1)
    if getattr(last, "multilabel_", False) or numbers > 1:
        raise CommandError("--model is for models with one label a record.")
    return model


def tested_of(model: Any) -> Any:
    """Return what learns of a loaded model: it is what the tests of it are of."""
    from sklearn.base import clone

    from privfeat.persistence.saved_models import COLUMNS, PIPELINE

    if hasattr(model, "steps") and type(model).__name__ != PIPELINE:
        return model.steps[-1][1]
    if hasattr(model, "steps") and type(model.steps[0][1]).__name__ == COLUMNS:
        width = model.steps_[1][1].n_features_in_
        model = clone(model).set_params(steps=model.steps[1:])
        model.n_features_in_ = width
    return model


def shape_of_image(args: Namespace, basis: Any) -> tuple[int, ...]:
    """Return the shape of a record of a network that is tested; () of rows."""
    if args.network is not None:
        return (args.image_size, args.image_size, 1 if args.grey else 3)
    shape: tuple[int, ...] = getattr(basis, "input_shape_", ())
    return shape
