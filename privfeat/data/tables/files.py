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

from privfeat._checks import require
from privfeat._messages import array_of, without_data
from privfeat.data.tables.csv_files import (
    CSV,
    N_ROWS,
    CsvForm,
    csv_header,
    csv_parts,
    objects_of,
)
from privfeat.data.tables.rounding import as_read, holds_long, may_be_rounded

FORMATS = (".csv", ".parquet", ".arrow", ".feather", ".npz")
_OF_DTYPES = {
    "f": "numeric",
    "i": "integer",
    "u": "integer",
    "b": "boolean",
    "M": "date",
}
Part = dict[str, NDArray[Any]]


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
        schema, _ = _arrow_file(path)
        kinds = [(field.name, _arrow_kind(field.type)) for field in schema]
    names = [name for name, _ in kinds]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        places = [place for place, name in enumerate(names, 1) if name == twice]
        raise ValueError(  # the first line may be a record: it is not shown
            f"{path} must have each column once, but columns {places} have one name. "
            "Rename all but one."
        )
    return dict(kinds)


def table_parts(path: str | Path, names: Sequence[str]) -> Iterator[Part]:
    """Give the values of these columns of `read_schema`, of some rows at a time.

    The name of the file ends in .csv (commas, UTF-8, names in the first line), .npz
    (one array for each column; one of shape (n, k) is k columns, its name followed by
    0, 1, ...), .parquet, .arrow or .feather (both of Arrow). A part has for each column
    an array of shape (n_rows,) with values as they stand: of CSV, texts; None or NaN
    where Arrow has null.

    ValueError if the file is no table of its format. No message holds a value.
    """
    suffix = Path(path).suffix.lower()
    if suffix == ".csv":
        yield from csv_parts(path, names)
    elif suffix == ".npz":
        arrays = _arrays(path)
        n_rows = {len(values) for values in arrays.values()}
        if len(n_rows) > 1:
            raise ValueError(f"{path} must have columns of one length.")
        yield {name: arrays[name] for name in names}
    else:
        yield from _arrow_parts(path, names)


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


def _arrow_parts(path: str | Path, names: Sequence[str]) -> Iterator[Part]:
    """Yield the parts of an Arrow table; ValueError, without a value, if damaged."""
    batches = _arrow_file(path, names)[1]
    while True:
        part, refused = _arrow_part(batches, names)
        if refused:
            raise _damaged(path)
        if part is None:
            return
        yield part


def arrow_table(path: str | Path, names: Sequence[str]) -> Any:
    """Return these columns as a table of Arrow, with the values of dictionaries.

    ValueError, without a value, if the file is damaged, or no Parquet or Arrow.
    """
    table = _arrow_table(*_arrow_file(path, names), names)
    if table is None:
        raise _damaged(path)
    return table


def _arrow_table(schema: Any, batches: Any, names: Sequence[str]) -> Any:
    """Return the table, or None if it cannot be read, with no cause to show."""
    import pyarrow

    try:
        found = list(batches)
        table = pyarrow.Table.from_batches(found, None if found else schema)
        plain = {name: _decoded(table.column(name)) for name in names}
        read = pyarrow.table(plain)
        read.validate(full=True)  # else a text that is none would be shown later
        return read
    except Exception:  # noqa: BLE001 - pyarrow's errors of many kinds hold values
        return None


def _damaged(path: str | Path) -> ValueError:
    return ValueError(
        f"{path} must hold values of the types of its columns, text in UTF-8. Write it "
        "again."
    )


def _arrow_part(
    batches: Iterator[Any], names: Sequence[str]
) -> tuple[Part | None, bool]:
    """Return the next rows, and whether they cannot be read, with no cause to show."""
    try:
        batch = next(batches, None)
        if batch is None:
            return None, False
        part = {name: arrow_values(batch.column(name)) for name in names}
        if b"pandas" in (batch.schema.metadata or {}):
            # which may have rounded long whole numbers before it wrote the file
            part |= {n: as_read(v) for n, v in part.items() if holds_long(v)}
        return part, False
    except Exception:  # noqa: BLE001 - pyarrow's errors of many kinds hold values
        return None, True


def _arrow_file(
    path: str | Path, names: Sequence[str] | None = None
) -> tuple[Any, Iterator[Any]]:
    """Return the schema of a file, and its batches of rows."""
    require("a table of Parquet or Arrow", "pyarrow", extra="tables")
    import pyarrow
    from pyarrow import parquet

    Path(path).open("rb").close()  # a file that is missing is named as others are
    try:
        if Path(path).suffix.lower() == ".parquet":
            file = parquet.ParquetFile(path)
            parts = file.iter_batches(batch_size=N_ROWS, columns=names)
            return file.schema_arrow, parts
        from pyarrow import feather

        table = feather.read_table(path, columns=names, memory_map=True)
        return table.schema, iter(table.to_batches(max_chunksize=N_ROWS))
    except pyarrow.ArrowException:
        pass  # its message may hold what is in the file
    raise ValueError(f"{path} must be a file of Parquet or Arrow, as its name says.")


def arrow_values(column: Any) -> NDArray[Any]:
    """Return a column of Arrow, in one piece or in several, as an array."""
    from pyarrow import types

    column = _decoded(column)
    if types.is_integer(column.type) and column.null_count:
        return objects_of(column.to_pylist())  # not floats, which round large numbers
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _decoded(column: Any) -> Any:
    """Return a column of Arrow in one piece, with the values that numbers stand for."""
    from pyarrow import ChunkedArray, types

    if isinstance(column, ChunkedArray):
        column = column.combine_chunks()
    return column.dictionary_decode() if types.is_dictionary(column.type) else column


def _arrow_kind(kind: Any) -> str | None:
    """Return the kind of a column of this type; dictionaries are not read."""
    from pyarrow import types

    known = {
        "numeric": types.is_floating(kind) or types.is_decimal(kind),
        "integer": types.is_integer(kind),
        "boolean": types.is_boolean(kind),
        "category": types.is_dictionary(kind),
        "date": types.is_date(kind) or types.is_timestamp(kind),
    }
    return next((name for name, is_so in known.items() if is_so), None)


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
