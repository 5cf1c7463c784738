"""``privfeat columns``: draft what is publicly declared of the columns of a table.

Print a declaration with a blank for all that names and types do not tell, to be filled
in from what is known without the data. No value is read. For example

    privfeat columns patients.csv --from-schema > columns.toml
"""

from argparse import Namespace
from typing import Any

from privfeat.cli.shared import options
from privfeat.cli.shared.terminal import CommandError


def add_parser(verbs: Any) -> None:
    """Add this verb to the parser of the command."""
    add = options.verb(verbs, run).add_argument
    add("table", metavar="FILE", help="a .csv, .npz, .parquet or .arrow file")
    schema = "by names and types alone; there is no other way, as values are private"
    add("--from-schema", action="store_true", required=True, help=schema)


def run(args: Namespace) -> None:
    """Print the draft."""
    from privfeat.data.tables import FORMATS, is_table, read_schema
    from privfeat.preprocessing import draft_columns

    if not is_table(args.table):
        raise CommandError(
            f"FILE must be a table that ends in {', '.join(FORMATS)}, got "
            f"{args.table!r}."
        )
    print(draft_columns(read_schema(args.table)), end="")
