"""``privfeat statement``: what is promised about a saved model."""

import argparse
from typing import Any


def add_parser(verbs: Any) -> None:
    """Add this verb to the parser of the command."""
    parser = verbs.add_parser(
        "statement", help="print the privacy statement of a model"
    )
    parser.set_defaults(run=run)
    parser.add_argument("model", metavar="DIR")
    parser.add_argument("--json", action="store_true", help="for programs")


def run(args: argparse.Namespace) -> None:
    """Print the statement that was saved with the model."""
    from privfeat import persistence

    statement = persistence.load_statement(args.model)
    print(statement.to_json() if args.json else statement)
