"""``privfeat budget plan``: what the fits of a project cost, before any data."""

import dataclasses
import json
import tomllib
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privfeat._types import ADJACENCIES, UNITS
from privfeat.cli.shared import files, options
from privfeat.cli.shared.terminal import CommandError

if TYPE_CHECKING:
    from privfeat.analysis.budgets.project import PlannedFit, ProjectPlan

_BUDGET = ("epsilon", "delta", "adjacency", "unit")
DESCRIPTION = """\
Plan all fits on a data set before the first one. Give them in FILE.toml, with --fit, or
both:

    epsilon = 3.0              # the budget; or pass --ledger and --dataset
    delta = 1e-5

    [[fit]]
    name = "grid of 2 in 3 folds, and once more"
    epsilon = 0.3
    count = 7

    [[fit]]
    name = "network"
    noise_multiplier = 1.0
    sampling_prob = 0.01       # expected batch over the number of records
    steps = 2000

A fit has a budget by epsilon (with delta, by default that of the budget: give the fit
the same --delta), rho or noise_multiplier; with mean_runs (and eta) it is a private
search. A plan that costs more than the budget ends with exit status 1. For example

    privfeat budget plan project.toml
    privfeat budget plan --ledger private.ledger --dataset photos
    --fit name=grid,epsilon=0.3,count=7 --fit name=final,epsilon=1
"""


def add_options(parser: Any) -> None:
    """Add the options of this action."""
    add = parser.add_argument
    add("project", metavar="FILE.toml", nargs="?", help="budget and fits")
    fit = "another fit, such as epsilon=0.5,count=7; may be repeated"
    add("--fit", metavar="NAME=VALUE,...", action="append", default=[], help=fit)
    add("--epsilon", type=float, help="of all fits together, for that of FILE.toml")
    add("--delta", type=float, help="of all fits together")
    add("--adjacency", choices=ADJACENCIES, help="of every fit (default add_remove)")
    add("--unit", choices=UNITS, help="whom every fit protects (default record)")
    options.add_ledger(parser, charges=False)


def run_plan(args: Namespace) -> None:
    """Print what the fits cost together and leave; fail if it is too much."""
    from privfeat.analysis.budgets.project import PlannedFit, plan_project

    told = {} if args.project is None else _read(args.project)
    listed = told.pop("fit", [])
    if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
        raise CommandError("FILE.toml must have its fits in [[fit]] tables.")
    budget = told | options.given(args, _BUDGET)
    if unknown := sorted(set(budget) - {*_BUDGET}):
        raise CommandError(
            f"FILE.toml must have {', '.join(_BUDGET)} and [[fit]], got {unknown[0]!r}."
        )
    ledger = files.open_ledger(args)
    if ledger is not None and budget:
        name = sorted(budget)[0]
        place = "" if name in told else "--"
        raise CommandError(
            f"{place}{name} must not be given together with --ledger, whose budget has "
            f"one. Of one fit it is --fit {name}=..., where fits differ in it."
        )
    delta = {"delta": budget["delta"]} if "delta" in budget else {}
    if ledger is not None:
        delta = {"delta": ledger.budget.delta}
    fits = [_planned(delta | one) for one in [*listed, *map(_parse, args.fit)]]
    if not fits:
        raise CommandError("fits must be given, in FILE.toml or with --fit, got none.")
    plan = plan_project(fits, ledger=ledger, **budget)
    print(json.dumps(_report(plan), indent=2) if args.json else plan)
    if not args.json and plan.budget.delta != PlannedFit.delta:
        told_of = f"planned with delta = {plan.budget.delta:g} unless --fit gives one"
        print(f"fits    {told_of}: run them with --delta {plan.budget.delta:g}")
    if not plan.fits_budget:
        raise CommandError(
            f"these fits must cost at most epsilon = {plan.budget.epsilon!r}, got "
            f"{plan.total.epsilon!r}. Plan fewer, or smaller ones."
        )


def _read(path: str) -> dict[str, Any]:
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CommandError(f"FILE.toml must be TOML, got {path!r}: {error}.") from error


def _parse(text: str) -> dict[str, Any]:
    """Return the values of one ``--fit``; what is no name is a number."""
    found: dict[str, Any] = {}
    for part in text.split(","):
        name, equals, value = part.partition("=")
        if not equals or name in found:
            raise CommandError(f"--fit must be NAME=VALUE,... once each, got {text!r}.")
        found[name] = value
        if name in ("count", "steps") and value.isdecimal():
            found[name] = int(value)
        elif name not in ("name", "accounting"):
            try:
                found[name] = float(value)
            except ValueError as error:
                raise CommandError(
                    f"--fit must have a number for {name}, got {value!r}."
                ) from error
    return found


def _planned(values: dict[str, Any]) -> "PlannedFit":
    """Return the fit that a JSON object describes; CommandError for unknown keys."""
    from privfeat.analysis.budgets.project import PlannedFit

    known = [field.name for field in dataclasses.fields(PlannedFit)]
    if unknown := sorted(set(values) - {*known}):
        raise CommandError(
            f"a fit must have {', '.join(known)}, each if needed, got {unknown[0]!r}."
        )
    return PlannedFit(**values)


def _report(plan: "ProjectPlan") -> dict[str, Any]:
    """Return the plan for programs."""
    rows = zip(plan.fits, plan.costs, plan.totals, strict=True)
    return {
        "budget": {name: getattr(plan.budget, name) for name in _BUDGET},
        "spent": dataclasses.asdict(plan.spent),
        "fits": [
            {"name": fit.name, "count": fit.count}
            | {"epsilon": cost.epsilon, "together": total.epsilon}
            for fit, cost, total in rows
        ],
        "total": dataclasses.asdict(plan.total),
        "remaining": dataclasses.asdict(plan.remaining),
        "fits_budget": plan.fits_budget,
    }
