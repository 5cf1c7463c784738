"""``privfeat columns``: draft what is publicly declared of the columns of a table.

Print a declaration with a blank for all that names and types do not tell, to be filled
in from what is known without the data. No value is shown, nor decides what is shown.
For example

    privfeat columns patients.csv --from-schema > columns.toml
"""

from argparse import Namespace
from collections.abc import Iterable
from datetime import date
from pathlib import Path
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
    from privfeat.data.tables.files import FORMATS, is_table, read_schema
    from privfeat.preprocessing import draft_columns

    if not is_table(args.table):
        raise CommandError(
            f"FILE must be a table that ends in {', '.join(FORMATS)}, got "
            f"{args.table!r}."
        )
    schema = read_schema(args.table)
    if Path(args.table).suffix.lower() == ".csv":
        _refuse_a_record(args.table, schema)
    print(draft_columns(schema), end="")


def _refuse_a_record(path: str, names: Iterable[str]) -> None:
    """Raise CommandError if the first line of a CSV file may be a record, not names.

    Then one of its texts is a date, or stands below it in its column as well.
    """
    from privfeat.data.tables.files import table_parts

    columns = [*names]
    repeated = any(
        name in {value.strip() for value in values}
        for part in table_parts(path, columns)
        for name, values in part.items()
    )
    if repeated or any(map(_is_date, columns)):
        raise CommandError(
            f"{path} must have the names of its columns in its first line, and what "
            "stands there may be a record: a date, or a text that its column holds "
            "again. Nothing of it is shown. Add a line of names."
        )


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text[:10])
    except ValueError:
        return False
    return True
