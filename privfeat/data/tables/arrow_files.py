"""Tables of Parquet and Arrow: values in the types that the file states."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfeat._checks import require
from privfeat.data.tables.csv_files import N_ROWS, objects_of

Part = dict[str, NDArray[Any]]


def arrow_parts(path: str | Path, names: Sequence[str]) -> Iterator[Part]:
    """Yield the parts of an Arrow table; ValueError, without a value, if damaged."""
    batches = arrow_file(path, names)[1]
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
    table = _arrow_table(*arrow_file(path, names), names)
    if table is None:
        raise _damaged(path)
    return table


def _arrow_table(schema: Any, batches: Any, names: Sequence[str]) -> Any:
    """Return the table, or None if it cannot be read, with no cause to show."""
    import pyarrow

    try:
        found = list(batches)
        for batch in found:
            batch.validate(full=True)  # else values are read beyond the file
        table = pyarrow.Table.from_batches(found, None if found else schema)
        plain = {name: _decoded(table.column(name)) for name in names}
        read = pyarrow.table(plain)
        read.validate(full=True)  # dictionaries, too
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
        batch.validate(full=True)  # else values are read beyond the file
        return {name: arrow_values(batch.column(name)) for name in names}, False
    except Exception:  # noqa: BLE001 - pyarrow's errors of many kinds hold values
        return None, True


def arrow_file(
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
    except (pyarrow.ArrowException, OSError):
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
    if types.is_dictionary(column.type):
        return column.dictionary_decode()
    return column.cast("string") if types.is_string_view(column.type) else column


def arrow_kind(kind: Any) -> str | None:
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
