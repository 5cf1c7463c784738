"""``privfeat budget``: make the budget of a data set, and see what is left of it."""

import json
from argparse import Namespace
from dataclasses import asdict
from itertools import starmap
from typing import TYPE_CHECKING, Any

from privfeat._types import ADJACENCIES, UNITS
from privfeat.cli.planning import project, serve
from privfeat.cli.shared import options

if TYPE_CHECKING:
    from privfeat.core.ledger.budget import Budget, PrivacyValue
    from privfeat.core.ledger.privacy_ledger import PrivacyLedger


ABOUT = """\
A ledger records every fit on a private data set and refuses one that would exceed its
budget. LEDGER is a file on this machine, or a postgresql:// URL. For example

    privfeat budget create private.ledger --dataset photos --epsilon 3 --delta 1e-6
    privfeat budget show private.ledger
"""
EXAMPLES = {"create": "--epsilon 3 --delta 1e-6", "show": "", "history": "--json"}


def add_parser(verbs: Any) -> None:
    """Add this verb to the parser of the command."""
    parser = verbs.add_parser(
        "budget",
        help="the privacy ledger of a data set: create, show, plan, serve",
        **options.explained(ABOUT),
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")

    def action(run: Any, help: str, *parents: Any) -> Any:
        name = run.__name__.removeprefix("run_")
        shown = f"budget {name} private.ledger --dataset photos {EXAMPLES[name]}"
        about = f"{help.capitalize()}. For example\n\nprivfeat {shown}"
        told = options.explained(about)
        parents = (file, *parents)
        parser = actions.add_parser(name, parents=parents, help=help, **told)
        parser.set_defaults(run=run)
        return parser.add_argument

    help_file = "a file, or a postgresql:// URL"
    file = options.option("ledger", metavar="LEDGER", help=help_file)
    dataset = options.option(
        "--dataset", metavar="NAME", required=True, help="whose budget it is"
    )
    add = action(run_create, "fix the budget of a data set for good", dataset)
    add("--epsilon", type=float, required=True, help="of all fits together")
    delta = "of all fits together; well below one over the number of records"
    add("--delta", type=float, required=True, help=delta)
    add("--adjacency", choices=ADJACENCIES, help="of every fit (default add_remove)")
    add("--unit", choices=UNITS, help="whom every fit protects (default record)")
    other = "the records are others than those of a data set with a name near this one"
    add("--new-dataset", action="store_true", help=other)
    show = "budget, spent, and left for one more fit"
    add = action(run_show, show, options.AS_JSON)
    add("--dataset", metavar="NAME", help="one of them (default: all)")
    action(run_history, "every fit that was charged", dataset, options.AS_JSON)
    plan = actions.add_parser(
        "plan",
        parents=[options.AS_JSON],
        help="what the fits of a project would cost together, and leave",
        **options.explained(project.DESCRIPTION),
    )
    plan.set_defaults(run=project.run_plan)
    project.add_options(plan)
    page = actions.add_parser(
        "serve",
        parents=[file],
        help="a page in the browser of this machine: spending over time",
        **options.explained(serve.DESCRIPTION),
    )
    page.set_defaults(run=serve.run_serve)
    serve.add_options(page)


def run_create(args: Namespace) -> None:
    """Create the budget, or find that it exists with these very numbers."""
    from privfeat import PrivacyLedger

    names = ("dataset", "epsilon", "delta", "adjacency", "unit", "new_dataset")
    ledger = PrivacyLedger(args.ledger, **options.given(args, names))
    print(_describe(ledger.budget, *_state(ledger)))


def run_show(args: Namespace) -> None:
    """Print budget, spent and left of one data set, or of all.

    One that is damaged does not hide the others: the error comes after them.
    """
    from privfeat import PrivacyLedger
    from privfeat.core.ledger.opening import find_datasets
    from privfeat.exceptions import LedgerError

    names = find_datasets(args.ledger) if args.dataset is None else [args.dataset]
    found, damage = [], None
    for name in names:
        try:
            ledger = PrivacyLedger(args.ledger, dataset=name)
            found.append((ledger.budget, *_state(ledger)))
        except LedgerError as error:
            damage = damage or error
    if args.json:
        report = [
            {"budget": asdict(budget), "fits": n_fits}
            | {"spent": asdict(spent), "remaining": asdict(left)}
            for budget, n_fits, spent, left in found
        ]
        if found or damage is None:
            print(json.dumps(report, indent=2))
    elif found:
        print("\n\n".join(starmap(_describe, found)))
    if damage is not None:
        raise damage


def run_history(args: Namespace) -> None:
    """Print one line for each fit and one for each of its releases."""
    from privfeat import PrivacyLedger
    from privfeat.core.statement.rounding import rounded_down, rounded_up

    charges = PrivacyLedger(args.ledger, dataset=args.dataset).history
    if args.json:
        names = ("number", "estimator", "asked", "who", "fitted")
        report = [
            {name: getattr(charge, name) for name in names}
            | {"statement": json.loads(charge.statement_json)}
            for charge in charges
        ]
        print(json.dumps(report, indent=2))
        return
    if not charges:
        print("no charges yet")
    for charge in charges:
        stated = charge.statement
        who = "" if charge.who is None else f"  {charge.who}"
        print(
            f"{charge.number}  {charge.asked}{who}  {charge.estimator}  "
            f"{charge.status}  "
            f"epsilon = {rounded_up(stated.epsilon)}, "
            f"delta = {rounded_up(stated.delta)}"
        )
        for record in stated.releases:
            print(
                f"     {record.count} x {record.name}: noise multiplier "
                f"{rounded_down(record.noise_multiplier)}"
            )
        if stated.selection is not None:
            print("\n".join(f"   {line}" for line in stated.selection.lines()[:2]))


def _state(ledger: "PrivacyLedger") -> tuple[int, "PrivacyValue", "PrivacyValue"]:
    """Return the number of fits, what they spent and what is left, at one moment."""
    from privfeat.core.ledger.budget import spent_of
    from privfeat.core.ledger.room import left_of

    fits = [charge.statement for charge in ledger.history]
    return len(fits), spent_of(ledger.budget, fits), left_of(ledger.budget, fits)


def _describe(
    budget: "Budget", n_fits: int, spent: "PrivacyValue", left: "PrivacyValue"
) -> str:
    """Return budget, spent and left of a data set, a line each."""
    from privfeat.core.statement.rounding import rounded_down, rounded_up

    rho = "" if spent.rho is None else f", rho = {rounded_up(spent.rho)}"
    return (
        f"{budget.dataset}: {budget.unit}, {budget.adjacency}, delta = "
        f"{budget.delta:g}, since {budget.created}\n"
        f"  budget  epsilon = {budget.epsilon:g}\n"
        f"  spent   epsilon = {rounded_up(spent.epsilon)}{rho} in {n_fits} "
        f"fit{'' if n_fits == 1 else 's'}\n"
        f"  left    epsilon = {rounded_down(left.epsilon)}, or rho = "
        f"{rounded_down(left.rho or 0.0)}, for one more fit"
    )
