"""The options that several verbs have, each declared once, as parents of their parsers.

The names under which values are kept are those of the estimators' parameters.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable
from typing import Any

from privfeat._types import ACCOUNTINGS, ADJACENCIES, ARITHMETICS

ESTIMATORS = ("DPLeastSquares", "DPNewton", "DPFC", "DPAdamLinear")
BUDGETS = ("epsilon", "rho", "noise_multiplier")
PRIVACY = (*BUDGETS, "delta", "adjacency", "accounting", "arithmetic", "random_state")
_ADJACENCY: dict[str, Any] = {
    "choices": ADJACENCIES,
    "help": "what neighbouring data sets are (default add_remove)",
}


def option(*names: str, **settings: Any) -> ArgumentParser:
    """Return a parent with one option; the arguments are those of ``add_argument``."""
    parent = ArgumentParser(add_help=False)
    parent.add_argument(*names, **settings)
    return parent


def add_privacy(parser: ArgumentParser, *, linear: bool = True) -> None:
    """Add the options that every private fit has, none of them with a default.

    These are no parent: Python 3.11 takes exclusive options of a parent out of their
    group.
    """
    group = parser.add_argument_group("privacy")
    budget = group.add_mutually_exclusive_group()
    add = group.add_argument
    budget.add_argument(
        "--epsilon", type=float, help="budget with --delta (default 1); inf for none"
    )
    if linear:
        budget.add_argument("--rho", type=float, help="budget in zCDP instead")
    budget.add_argument("--noise-multiplier", type=float, help="noise level instead")
    add("--delta", type=float, help="with --epsilon (default 1e-5)")
    add("--adjacency", **_ADJACENCY)
    if linear:
        add(
            "--accounting",
            choices=ACCOUNTINGS,
            help="how noise converts to epsilon and delta (default exact)",
        )
        add(
            "--arithmetic",
            choices=ARITHMETICS,
            help="how noise is drawn (default float64); exact: no leak by low bits",
        )
    add(
        "--seed",
        dest="random_state",
        metavar="SEED",
        type=int,
        help="reproducible noise, for tests and published experiments: not private",
    )


def given(args: Namespace, names: Iterable[str]) -> dict[str, Any]:
    """Return the values of these options, without those that were not given."""
    found = {name: getattr(args, name, None) for name in names}
    return {name: value for name, value in found.items() if value is not None}


def ledger(charged: str, whose: str) -> ArgumentParser:
    """Return ``--ledger`` and ``--dataset``; the verb says what happens to them."""
    parent = ArgumentParser(add_help=False)
    add = parent.add_argument_group("ledger").add_argument
    add(
        "--ledger",
        metavar="LEDGER",
        help=f"{charged} a ledger, as `privfeat budget` makes one",
    )
    add("--dataset", metavar="NAME", help=f"with --ledger: {whose}")
    return parent


def settings(which: str = "another parameter of the estimator") -> ArgumentParser:
    """Return ``--set``."""
    return option(
        "--set",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help=f"{which}; may be repeated",
    )


def tested() -> ArgumentParser:
    """Return ``--estimator`` and ``--model``, of which a test needs one."""
    parent = ArgumentParser(add_help=False)
    what = parent.add_mutually_exclusive_group(required=True)
    what.add_argument("--estimator", choices=ESTIMATORS, help="what to test")
    what.add_argument(
        "--model",
        metavar="DIR",
        help="test fits with the parameters of a saved model, of networks as well",
    )
    return parent


def saved_model() -> ArgumentParser:
    """Return ``--out`` and ``--overwrite`` of a verb that saves a model."""
    parent = option("--out", metavar="DIR", required=True, help="the model's folder")
    parent.add_argument(
        "--overwrite", action="store_true", help="replace a model that is in DIR"
    )
    return parent


def compared(repeated: str) -> ArgumentParser:
    """Return what a verb has that compares budgets: all but epsilon has a default."""
    parent = option("--delta", type=float, default=1e-5, help="default 1e-5")
    parent.add_argument("--adjacency", default="add_remove", **_ADJACENCY)
    parent.add_argument(
        "--repeats", type=int, default=3, help=f"fits {repeated} (default 3)"
    )
    return parent


def quiet(effect: str = "show no progress") -> ArgumentParser:
    """Return ``--quiet``."""
    return option("--quiet", action="store_true", help=effect)


def as_json() -> ArgumentParser:
    """Return ``--json``."""
    return option("--json", action="store_true", help="for programs")


def job() -> ArgumentParser:
    """Return the options that make this process one of several."""
    parent = ArgumentParser(add_help=False)
    add = parent.add_argument_group("several processes").add_argument
    add(
        "--distributed",
        action="store_true",
        help="fit by all processes of the job together: start this command in each, by "
        "srun, mpirun or another launcher that JAX knows; the first saves the model",
    )
    add(
        "--coordinator",
        metavar="HOST:PORT",
        help="with --distributed, without a launcher: process 0, and a free port",
    )
    add("--processes", metavar="N", type=int, help="with --coordinator: how many")
    add("--process", metavar="I", type=int, help="with --coordinator: this one, from 0")
    return parent
