"""The options that several verbs have, each declared once, as parents of their parsers.

The names under which values are kept are those of the estimators' parameters.
"""

import sys
from argparse import (
    ArgumentParser,
    BooleanOptionalAction,
    Namespace,
    RawDescriptionHelpFormatter,
)
from collections.abc import Callable, Iterable
from typing import Any

from privfeat._types import ACCOUNTINGS, ADJACENCIES, ARITHMETICS

ESTIMATORS = ("DPLeastSquares", "DPNewton", "DPFC", "DPAdamLinear", "DPNearestMean")
REGRESSORS = ("DPLeastSquaresRegressor",)
LINEAR = (*ESTIMATORS, *REGRESSORS)
BUDGETS = ("epsilon", "rho", "noise_multiplier")
PRIVACY = (*BUDGETS, "delta", "adjacency", "accounting", "arithmetic", "random_state")
_TRAINING = ("model", "epochs", "expected_batch_size", "learning_rate", "clip_norm")
_CHECKPOINTS = ("checkpoint_dir", "checkpoint_every")
_BOUNDS = ("max_labels", "max_group_size")
# all options that are parameters of an estimator
PARAMETERS = (*PRIVACY, *_BOUNDS, *_TRAINING, *_CHECKPOINTS)
# parameters whose options have other names
_NAMES = {
    "random_state": "--seed",
    "classes": "--n-classes, or by the folders of --data",
    "expected_batch_size": "--batch",
    "checkpoint_dir": "--checkpoints",
}

_DATASET = "with --ledger: the data set whose budget it is"


def name_of(parameter: str) -> str:
    """Return the option that gives a parameter.

    >>> name_of("clip_norm"), name_of("random_state")
    ('--clip-norm', '--seed')
    """
    return _NAMES.get(parameter, f"--{parameter.replace('_', '-')}")


def verb(
    verbs: Any, run: Callable[[Namespace], None], *parents: ArgumentParser
) -> ArgumentParser:
    """Return the parser of the verb whose module holds ``run``.

    The module's docstring is the help: in its first line what the verb does, after it
    the rest, as `explained`.
    """
    name = run.__module__.rpartition(".")[2]
    first, _, description = (sys.modules[run.__module__].__doc__ or "").partition(
        "\n\n"
    )
    parser: ArgumentParser = verbs.add_parser(
        name,
        parents=parents,
        help=first.partition(": ")[2].rstrip("."),
        **explained(description),
    )
    parser.set_defaults(run=run)
    return parser


def explained(text: str) -> dict[str, Any]:
    """Return what a parser is told to show a text, and the commands it ends with.

    These are the lines that are indented, after "For example"; one that does not begin
    with the name of the command goes on with the line before.
    """
    about, example, commands = text.strip().partition("For example\n\n")
    shown: list[str] = []
    for line in map(str.strip, commands.splitlines()):
        if line.startswith("privfeat "):
            shown.append(f"  {line}")
        else:
            shown += [f"{shown.pop()} \\", f"    {line}"]
    return {
        "description": about.strip(),
        "epilog": "\n".join(["for example:", *shown]) if example else None,
        "formatter_class": RawDescriptionHelpFormatter,
    }


def given(args: Namespace, names: Iterable[str]) -> dict[str, Any]:
    """Return the values of these options, without those that were not given."""
    found = {name: getattr(args, name, None) for name in names}
    return {name: value for name, value in found.items() if value is not None}


def option(*names: str, **settings: Any) -> ArgumentParser:
    """Return a parent with one option; the arguments are those of ``add_argument``."""
    parent = ArgumentParser(add_help=False)
    parent.add_argument(*names, **settings)
    return parent


def add_privacy(parser: ArgumentParser, *, linear: bool = True) -> None:
    """Add the options that every private fit has, none of them with a default.

    They are no parent: Python 3.11 takes exclusive options of a parent out of their
    group.
    """
    group = parser.add_argument_group("privacy")
    budget, add = group.add_mutually_exclusive_group(), group.add_argument
    budget.add_argument(
        "--epsilon", type=float, help="budget with --delta (default 1); inf for none"
    )
    if linear:
        budget.add_argument("--rho", type=float, help="budget in zCDP instead")
    budget.add_argument("--noise-multiplier", type=float, help="noise level instead")
    add("--delta", type=float, help="with --epsilon (default 1e-5)")
    add("--adjacency", choices=ADJACENCIES, help=_ADJACENCY)
    if linear:
        how = "how noise converts to epsilon and delta (default exact)"
        add("--accounting", choices=ACCOUNTINGS, help=how)
        how = "how noise is drawn (default float64); exact: its low bits leak nothing"
        add("--arithmetic", choices=ARITHMETICS, help=how)
    seed = "reproducible noise, for tests and published experiments: not private"
    add("--seed", dest="random_state", metavar="SEED", type=int, help=seed)


def add_length(parser: ArgumentParser) -> Any:
    """Add ``--epochs`` and ``--batch``; return what adds to their group."""
    add = parser.add_argument_group("training").add_argument
    add("--epochs", type=float, help="passes over the images (default: 10 at most)")
    size = "expected size (default: for 200 steps); at most all images, or users"
    add("--batch", dest="expected_batch_size", metavar="N", type=float, help=size)
    return add


def add_training(parser: ArgumentParser) -> Any:
    """Add what changes a training; return what adds to its group."""
    add = add_length(parser)
    rate = (
        "peak rate of the optimizer (default: by the network and the number of steps; "
        "with public weights 0.001, with --groups 1)"
    )
    add("--learning-rate", type=float, help=rate)
    clip = "bound on the gradient of an image, or user (default 1)"
    add("--clip-norm", type=float, help=clip)
    return add


def add_groups(parser: ArgumentParser) -> None:
    """Add ``--groups`` and ``--no-groups``."""
    parser.add_argument(
        "--groups",
        action=BooleanOptionalAction,
        help="protect all rows of a user together, by the groups that FILE holds, or "
        "each row on its own; must be said where FILE holds groups",
    )


def add_public_test(parser: ArgumentParser, records: str = "of --test") -> None:
    """Add ``--test-is-public``, without which no exact figure is shown."""
    said = f"the records {records} are public: exact figures, which no statement covers"
    parser.add_argument("--test-is-public", action="store_true", help=said)


def add_ledger(
    parser: ArgumentParser, *, dataset: str = _DATASET, charges: bool = True
) -> None:
    """Add ``--ledger`` and ``--dataset``, and ``--who`` to verbs that charge."""
    add = parser.add_argument_group("ledger").add_argument
    ledger = "the ledger of the private data, made by `privfeat budget`"
    add("--ledger", metavar="LEDGER", help=ledger)
    add("--dataset", metavar="NAME", help=dataset)
    if charges:
        who = "with --ledger: your name, for the history of what you charge"
        add("--who", metavar="NAME", help=who)


def fitted() -> ArgumentParser:
    """Return what a verb has that fits a model and saves it."""
    parent = ArgumentParser(add_help=False, parents=SET_AND_QUIET)
    add = parent.add_argument
    add("--out", metavar="DIR", required=True, help="the model's folder")
    add("--overwrite", action="store_true", help="replace a model that is in DIR")
    size = "with --groups, or --users of a table: so many records of a user count"
    add("--max-group-size", type=int, help=size)
    add_ledger(parent)
    return parent


def tested() -> ArgumentParser:
    """Return what a verb has that tests an estimator, by its name or of a model."""
    parent = ArgumentParser(add_help=False, parents=SET_AND_QUIET)
    what = parent.add_mutually_exclusive_group(required=True)
    what.add_argument("--estimator", choices=LINEAR, help="what to test")
    model = "test fits with the parameters of a saved model, which may be a network"
    what.add_argument("--model", dest="saved", metavar="DIR", help=model)
    network = "test a network that `train` knows by this name, before it is trained"
    what.add_argument("--network", metavar="NAME", help=network)
    size = "with --network: side of the images (default 32)"
    parent.add_argument("--image-size", type=int, default=32, help=size)
    parent.add_argument(
        "--grey", action="store_true", help="with --network: one channel"
    )
    return parent


def compared() -> ArgumentParser:
    """Return what a verb has that compares budgets: all but epsilon has a default."""
    parent = ArgumentParser(add_help=False, parents=[_QUIET])
    add = parent.add_argument
    add("--delta", type=float, default=1e-5, help="default 1e-5")
    add("--adjacency", default="add_remove", choices=ADJACENCIES, help=_ADJACENCY)
    add("--repeats", type=int, default=3, help=_REPEATS)
    return parent


_ADJACENCY = (
    "whether one record more or less, or another in its place, is hidden (default "
    "add_remove)"
)
_REPEATS = "fits of each estimator, for a mean (default 3)"
AS_JSON = option("--json", action="store_true", help="print JSON, for programs")
_QUIET = option(
    "--quiet",
    action="store_true",
    help="show no progress; of a fit print warnings alone",
)
_SETTINGS = option(
    "--set",
    metavar="NAME=VALUE",
    action="append",
    default=[],
    help="another parameter of the estimator, by its name in Python, such as "
    "fit_intercept=false; may be repeated",
)
SET_AND_QUIET = (_SETTINGS, _QUIET)
