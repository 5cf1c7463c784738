"""A table in a file as a data frame: each value as it stands, whatever others hold."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from privfeat._checks import require
from privfeat.data.tables.csv_files import CsvForm, csv_parts
from privfeat.data.tables.files import arrow_table, read_schema, table_parts

if TYPE_CHECKING:
    import pandas


def read_table(
    path: str | Path,
    columns: Sequence[str] | None = None,
    *,
    delimiter: str = ",",
    encoding: str = "UTF-8",
) -> "pandas.DataFrame":
    r"""Read a table of private records, as the commands do.

    `pandas.read_csv` decides by all values what one of them is: a word in one record
    makes texts of a column of numbers, a gap makes fractions of whole numbers and
    rounds long ones, and a first line that is longer moves all columns. So one record
    changes all others, which no statement covers. Here nothing of a value depends on
    another record: a CSV file holds texts, blanks are no gaps but ``""``, and columns
    of Parquet and Arrow have the types that the file states, which keep whole numbers
    beside a gap. What a text means is for `privfeat.PublicColumns` to say, from public
    declarations; or change texts one by one, as by ``table["age"].astype(float)``.

    Parameters
    ----------
    path : str or Path
        A file .csv with names of columns in its first line, .parquet, .arrow, .feather
        (both of Arrow) or .npz (an array for each column; one of shape (n, k) is k
        columns, its name followed by 0, 1, ...).
    columns : sequence of str, default=None
        The names of the columns to read, in this order; None for all. Name them where
        the file may lack a line of names: its first record would be taken for one.
    delimiter : str, default=","
        What stands between the values of a CSV file: one character.
    encoding : str, default="UTF-8"
        The encoding of a CSV file, such as ``"cp1252"``, which spreadsheets write.

    Returns
    -------
    pandas.DataFrame
        With a row for each record, in the order of the file, numbered from 0. Lines
        without anything are no records.

    Raises
    ------
    ValueError
        If Python does not know the encoding, the file is no table of its format, a line
        has other than as many values as the first or a line break within a value, a
        column of ``columns`` is missing, or two have one name. No message holds a
        value; that there is one tells of the records.
    ImportError
        Without pandas; for Parquet and Arrow, without pyarrow.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "raw.csv")
    ...     _ = path.write_text("code;dose\n007;1,5\n008;\n")
    ...     read_table(path, delimiter=";").to_dict("list")
    {'code': ['007', '008'], 'dose': ['1,5', '']}
    """
    require("a table as a data frame", "pandas", extra="tables")
    import pandas

    form = CsvForm(delimiter, encoding)
    known = list(read_schema(path, form))
    names = known if columns is None else list(columns)
    lost = [name for name in names if name not in known]
    if lost:
        raise ValueError(f"{path} must have the columns {lost}, got none of this name.")
    suffix = Path(path).suffix.lower()
    if suffix in (".csv", ".npz"):
        texts = suffix == ".csv"
        parts = csv_parts(path, names, form) if texts else table_parts(path, names)
        return _of_parts(list(parts), names, texts=texts)
    # with types of pandas a gap would round the whole numbers of its column
    table = arrow_table(path, names)
    return table.to_pandas(types_mapper=pandas.ArrowDtype, ignore_metadata=True)


def _of_parts(
    parts: list[dict[str, Any]], names: list[str], *, texts: bool
) -> "pandas.DataFrame":
    """Return the parts of a file one after the other; an empty file may have none."""
    import pandas

    parts = parts or [{name: np.empty(0, object) for name in names}]
    values = {name: np.concatenate([part[name] for part in parts]) for name in names}
    return pandas.DataFrame(values, columns=names, dtype=str if texts else None)
