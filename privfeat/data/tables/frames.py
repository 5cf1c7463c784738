"""A table in a file as a data frame: each value as it stands, whatever others hold."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from privfeat._checks import require
from privfeat._messages import list_of, without_data
from privfeat.data.tables.arrow_files import arrow_table
from privfeat.data.tables.csv_files import CsvForm
from privfeat.data.tables.files import FORMATS, is_table, read_schema, table_parts

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
    beside a gap. Codes of 2**53 and more should be texts there as well: whole numbers
    of pandas, which may be rounded, are no users and no categories. What a text means
    is for `privfeat.PublicColumns` to say, from public declarations; or change texts
    one by one, as by ``table["age"].astype(float)``.

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
        What stands between the values of a CSV file: one character. Not used of others.
    encoding : str, default="UTF-8"
        The encoding of a CSV file, such as ``"cp1252"``, which spreadsheets write: one
        in which no line changes how others are read.

    Returns
    -------
    pandas.DataFrame
        With a row for each record, in the order of the file, numbered from 0. Lines
        without anything are no records.

    Raises
    ------
    TypeError, ValueError
        If the name of the file or the encoding is another, the file is no table of its
        format, a line has other than as many values as the first or a line break within
        a value, a column of ``columns`` is missing, or two have one name. No message
        holds a value; that there is one tells of the records.
    OSError
        If the file cannot be read.
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

    if not is_table(path):
        raise ValueError(f"path must end in one of {', '.join(FORMATS)}, got {path}.")
    form = CsvForm(delimiter, encoding)
    known = list(read_schema(path, form))
    names = known if columns is None else list_of("columns", columns)
    lost = [name for name in names if name not in known]
    if lost or len(set(names)) < len(names):
        got = f"got none of the name {lost}" if lost else "got one twice"
        raise ValueError(f"{path} must have each of the columns once, {got}.")
    suffix = Path(path).suffix.lower()
    if suffix in (".csv", ".npz"):
        parts = [*table_parts(path, names, form)]
        parts = parts or [{name: np.empty(0, object) for name in names}]
        values = {n: np.concatenate([part[n] for part in parts]) for n in names}
        texts = str if suffix == ".csv" else None
        return without_data(pandas.DataFrame, values, columns=names, dtype=texts)
    # with types of pandas a gap would round the whole numbers of its column
    of_file = {"types_mapper": pandas.ArrowDtype, "ignore_metadata": True}
    return without_data(arrow_table(path, names).to_pandas, **of_file)
