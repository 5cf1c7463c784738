"""Tables in files, read a part at a time; each row as it stands, whatever others hold.

CSV files hold texts, and nothing turns them into numbers here: what a column holds is
said by its declaration (`privfeat.preprocessing`), and not by its values.
"""

import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfeat._messages import array_of, without_data
from privfeat.data.tables.arrow_files import (
    Part,
    arrow_file,
    arrow_kind,
    arrow_parts,
    arrow_values,
)
from privfeat.data.tables.csv_files import CSV, CsvForm, csv_header, csv_parts
from privfeat.data.tables.rounding import as_read, holds_long, may_be_rounded

FORMATS = (".csv", ".parquet", ".arrow", ".feather", ".npz")
_OF_DTYPES = {
    "f": "numeric",
    "i": "integer",
    "u": "integer",
    "b": "boolean",
    "M": "date",
}


def is_table(path: str | Path) -> bool:
    """Return whether a file is a table, by its name.

    >>> is_table("patients.csv"), is_table("features.h5")
    (True, False)
    """
    return Path(path).suffix.lower() in FORMATS


def read_schema(path: str | Path, form: CsvForm = CSV) -> dict[str, str | None]:
    """Return the name of each column, and its kind where its type tells; no value.

    Kinds are those of `privfeat.preprocessing.draft_columns`; a CSV file has none.

    ValueError if the file is no table of its format, or two columns have one name;
    ImportError without pyarrow, for Parquet and Arrow.
    """
    suffix = Path(path).suffix.lower()
    if suffix == ".csv":
        kinds: list[tuple[str, str | None]] = [
            (n, None) for n in csv_header(path, form)
        ]
    elif suffix == ".npz":
        found = _arrays(path).items()
        kinds = [(name, _OF_DTYPES.get(values.dtype.kind)) for name, values in found]
    else:
        schema, _ = arrow_file(path)
        kinds = [(field.name, arrow_kind(field.type)) for field in schema]
    names = [name for name, _ in kinds]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        places = [place for place, name in enumerate(names, 1) if name == twice]
        raise ValueError(  # the first line may be a record: it is not shown
            f"{path} must have each column once, but columns {places} have one name. "
            "Rename all but one."
        )
    return dict(kinds)


def table_parts(
    path: str | Path,
    names: Sequence[str],
    form: CsvForm = CSV,
    *,
    exact: bool = False,
) -> Iterator[Part]:
    """Give the values of these columns of `read_schema`, of some rows at a time.

    The name of the file ends in .csv (names in the first line; UTF-8 and commas), .npz
    (one array for each column; one of shape (n, k) is k columns, its name followed by
    0, 1, ...), .parquet, .arrow or .feather (both of Arrow). A part has for each column
    an array of shape (n_rows,) with values as they stand: of CSV, texts; None or NaN
    where Arrow has null. Unless ``exact``, as for numbers that are only shown, whole
    numbers of 2**53 and more in a file that pandas wrote are floats, which name no user
    and no category: a reader may have rounded them, for the sake of another record.

    ValueError if the file is no table of its format. No message holds a value.
    """
    suffix = Path(path).suffix.lower()
    if suffix == ".csv":
        yield from csv_parts(path, names, form)
    elif suffix == ".npz":
        arrays = _arrays(path)
        n_rows = {len(values) for values in arrays.values()}
        if len(n_rows) > 1:
            raise ValueError(f"{path} must have columns of one length.")
        yield {name: arrays[name] for name in names}
    else:
        rounded = not exact and _of_pandas(arrow_file(path)[0])
        for part in arrow_parts(path, names):
            yield {n: _as_read(v) for n, v in part.items()} if rounded else part


def _of_pandas(schema: Any) -> bool:
    return b"pandas" in (schema.metadata or {})


def _as_read(values: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(as_read(values)) if holds_long(values) else values


def arrow_column(table: Any, name: str) -> NDArray[Any]:
    """Return the values of a column of a table of Arrow, as `table_parts` does."""
    values = arrow_values(table.column(name))
    return _as_read(values) if _of_pandas(table.schema) else values


def _arrays(path: str | Path) -> Part:
    """Return the columns of a file of arrays."""
    found: dict[str, NDArray[Any]] = {}
    try:
        with Path(path).open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            found = {name: file[name] for name in file.files}
        refused = any(values.ndim not in (1, 2) for values in found.values())
    except (AttributeError, EOFError, TypeError, ValueError, zipfile.BadZipFile):
        refused = True
    if refused:
        raise ValueError(
            f"{path} must hold NumPy arrays of one or two dimensions and of no objects."
        )
    columns: Part = {}
    n_columns = 0
    for name, values in found.items():
        wide = values.ndim == 2
        named = [f"{name}{i}" for i in range(values.shape[1])] if wide else [name]
        columns |= zip(named, values.T if wide else [values], strict=True)
        n_columns += len(named)
    if len(columns) != n_columns:
        raise ValueError(f"{path} must have each column once.")
    return columns


def column_values(given: Any, *, exact: bool) -> NDArray[Any]:
    """Return the values of one column of a table.

    Exact ones where the table has them: beside a gap NumPy makes floats of whole
    numbers, which round codes of 2**53 and more. Those that a reader may have rounded
    are floats here, and no category.
    """
    if exact and may_be_rounded(given):
        return np.asarray(as_read(given))
    if not exact or isinstance(given.dtype, np.dtype):
        return array_of(given)
    pandas = hasattr(given, "iloc")
    as_objects = (lambda: given.astype(object)) if pandas else given.to_list
    return array_of(without_data(as_objects), object)
