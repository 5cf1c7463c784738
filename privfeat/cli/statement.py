"""``privfeat statement``: print the privacy statement of a model.

Print what was released by a fit, at what cost, assuming what. A model whose files are
damaged is refused. For example

    privfeat statement model
"""

from argparse import Namespace
from importlib import resources
from typing import Any

from privfeat.cli.shared import options
from privfeat.cli.shared.terminal import CommandError


def add_parser(verbs: Any) -> None:
    """Add this verb to the parser of the command."""
    add = options.verb(verbs, run, options.AS_JSON).add_argument
    model = "a folder that `fit` or `train` wrote; not needed with --schema"
    add("model", metavar="DIR", nargs="?", help=model)
    about = "add about the epsilon of Gaussian DP by the central limit: no guarantee"
    add("--gdp", action="store_true", help=about)
    add("--schema", action="store_true", help="print the JSON schema of statements")


def run(args: Namespace) -> None:
    """Print the statement that was saved with the model, or the schema of all."""
    if args.schema:
        schema = resources.files("privfeat.core.statement") / "statement.schema.json"
        print(schema.read_text(encoding="utf-8"), end="")
        return
    if args.model is None:
        raise CommandError("statement needs DIR, the folder of a model, or --schema.")
    from privfeat import persistence
    from privfeat.persistence.model_folder import read_arrays, read_document

    statement = persistence.load_statement(args.model)
    # a statement is of these arrays: of others it says nothing
    read_arrays(args.model, read_document(args.model)["arrays"])
    if args.gdp and args.json:
        raise CommandError("--gdp must not go with --json, since no statement uses it.")
    print(statement.to_json() if args.json else statement)
    if args.gdp:
        from privfeat.analysis.central_limit import central_limit_epsilon

        about = central_limit_epsilon(statement.releases, statement.delta)
        print(
            f"By the central limit epsilon would be about {about:.4g} at delta = "
            f"{statement.delta:g}: an\napproximation, often too small, to compare with "
            "papers that account by it (Bu et al. 2023)."
        )
