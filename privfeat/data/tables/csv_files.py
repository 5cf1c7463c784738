"""Tables of texts, read a part at a time: each value as it stands in its line."""

import codecs
import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

N_ROWS = 2**15  # of a part
# Encodings, as `codecs` names them, in which bytes mean the same on each line: others
# switch from one set of characters to another, and one record would switch all later.
_WITHOUT_STATE = re.compile(
    r"ascii|utf-(8|8-sig|16|16-le|16-be|32|32-le|32-be)|iso8859-\d+|cp\d+|mac-\w+"
    r"|koi8-\w|kz1048|ptcp154|hp-roman8|tis-620|gb2312|gbk|gb18030|johab|big5\w*"
    r"|shift_jis\w*|euc_\w+"
)
_DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}


@dataclass(frozen=True)
class CsvForm:
    """How a CSV file is written: its delimiter, one character, and its encoding."""

    delimiter: str = ","
    encoding: str = "UTF-8"

    def __post_init__(self) -> None:
        """Raise TypeError or ValueError for a delimiter that is none."""
        if not isinstance(self.delimiter, str):
            kind = type(self.delimiter).__name__
            raise TypeError(f"delimiter must be a text, got {kind}.")
        if len(self.delimiter) != 1 or self.delimiter in '"\r\n':
            raise ValueError(
                f"delimiter must be one character, no quote, got {self.delimiter!r}."
            )

    def opened(self, path: str | Path) -> Any:
        """Return the file, open as text; a mark of the order of bytes is no text."""
        try:
            name = codecs.lookup(self.encoding).name
        except LookupError:
            name = ""
        if not _WITHOUT_STATE.fullmatch(name):
            raise ValueError(
                "encoding must be one of Python's for text, such as 'cp1252', in which "
                "no line changes how others are read (ISO-2022 is none), got "
                f"{self.encoding!r}. Save the file in UTF-8."
            )
        encoding = "utf-8-sig" if name == "utf-8" else self.encoding
        return Path(path).open(newline="", encoding=encoding)

    def rows(self, file: Any) -> Any:
        """Return the rows of an open file."""
        return csv.reader(file, delimiter=self.delimiter, strict=True)

    def refusal(self, path: str | Path) -> ValueError:
        """Return the error for a file that is written otherwise; it holds no value."""
        otherwise = f", or read it by {READER} if it is written so" * (self == CSV)
        return ValueError(
            f"{path} must be a table in {self.encoding}, separated by "
            f"{_word(self.delimiter)}, with the names of the columns in its first line "
            "and as many values in each other, none of them with a line break. Save "
            f"it so{otherwise}."
        )


CSV = CsvForm()
READER = 'privfeat.data.read_table(path, delimiter=";", encoding="cp1252")'


def _word(delimiter: str) -> str:
    return _DELIMITERS.get(delimiter, repr(delimiter))


def csv_header(path: str | Path, form: CsvForm = CSV) -> list[str]:
    """Return the names in the first line of a CSV file."""
    with form.opened(path) as file:
        names, refused = _rows(form.rows(file), 1)
    if refused or not names:
        raise form.refusal(path)
    header = [name.strip() for name in names[0]]
    if not all(map(_is_name, header)):
        raise ValueError(
            f"{path} must have the names of its columns in its first line, and there "
            "is a number, or nothing. Add them; if pandas wrote the file, pass "
            "index=False to to_csv."
        )
    for delimiter, word in _DELIMITERS.items():
        other = delimiter != form.delimiter
        if other and len(header) == 1 and delimiter in header[0]:
            wanted = _word(form.delimiter)
            raise ValueError(
                f"{path} must be separated by {wanted}, but its first line is by "
                f"{word}. Save it with {wanted}, or read it by "
                f"privfeat.data.read_table(path, delimiter={delimiter!r})."
            )
    return header


def _is_name(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return bool(text)
    return False


def csv_parts(
    path: str | Path, names: Sequence[str], form: CsvForm = CSV
) -> Iterator[dict[str, NDArray[Any]]]:
    """Give the values of these columns of a CSV file, as `table_parts` does."""
    header = csv_header(path, form)
    places = {name: header.index(name) for name in names}
    with form.opened(path) as file:
        reader = form.rows(file)
        n_lines = len(_rows(reader, 1)[0])
        while True:
            read, refused = _rows(reader, N_ROWS)
            n_lines += len(read)
            rows = [row for row in read if row]  # lines without anything
            # a quote without an end would swallow the records after it
            refused = refused or reader.line_num != n_lines
            if refused or any(len(row) != len(header) for row in rows):
                raise form.refusal(path)
            if rows:
                yield {
                    name: objects_of([row[place] for row in rows])
                    for name, place in places.items()
                }
            if len(read) < N_ROWS:
                return


def _rows(reader: Iterator[list[str]], size: int) -> tuple[list[list[str]], bool]:
    """Return the next rows, and whether they cannot be read, with no cause to show."""
    try:
        return list(islice(reader, size)), False
    except (UnicodeError, csv.Error):
        return [], True


def objects_of(values: list[Any]) -> NDArray[Any]:
    """Return values as they stand, in an array of objects."""
    array = np.empty(len(values), object)
    array[:] = values
    return array
