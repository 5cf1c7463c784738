"""Whether one record may decide in which form a step gets all others.

A table has one type for each column, and one word, gap or half in it is enough for
another.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from privfeat.core.callers.stateless import DECLARED, is_exactly, is_stateless

# As texts are that somebody made of whole floats.
_WHOLE_FLOAT = re.compile(r"-?\d+\.0|-?\d(\.\d+)?e\+\d+")


def form_varies(rows: Any) -> bool:
    """Return whether one record may decide in which form a step gets all others.

    One half makes a column of whole numbers one of floats, one gap makes floats of
    truth values. So all numbers must be floats, of the one width that who stores them
    chose: beside small whole numbers, float32 becomes float64 or stays. One text makes
    objects of them, and so are objects refused; of texts see `texts_vary`. In sparse
    rows without an order, steps add up entries of one place in an order that
    follows from all rows.
    """
    if not getattr(rows, "has_canonical_format", True):  # of sparse ones
        return True
    if not any(hasattr(rows, name) for name in ("dtype", "dtypes")):
        listed = isinstance(rows, list | tuple)  # numbers in one have no common type
        return not (listed and any(map(_holds_texts, rows)))
    numbers = {kind for kind in _types(rows) if not _keeps_values(kind)}
    floats = {k for k in numbers if isinstance(k, np.dtype) and k.kind == "f"}
    return numbers != floats or len(floats) > 1


def _holds_texts(row: Any) -> bool:
    """Return whether an element of a list is a text, or words, or counts of words."""
    words = isinstance(row, list | tuple) and any(isinstance(v, str) for v in row)
    return words or isinstance(row, str | bytes | Mapping)


def _types(rows: Any) -> list[Any]:
    """Return the types of the values of the columns of a table, or of an array."""
    if not hasattr(rows, "dtypes"):
        return [rows.dtype]
    types = [rows.dtypes] if rows.ndim == 1 else rows.dtypes  # one column
    plain = [getattr(kind, "subtype", kind) for kind in types]  # of sparse columns
    return [getattr(getattr(k, "categories", None), "dtype", k) for k in plain]


def _keeps_values(kind: Any) -> bool:
    if isinstance(kind, np.dtype):
        return kind.kind in "UST"
    return getattr(kind, "type", None) is str


def texts_vary(rows: Any, first: Any = None) -> bool:
    """Return whether one record may make texts of numbers that others have.

    A reader of tables makes numbers, or truth values, of a column in which no record
    has a word, and else texts: to most steps and models "3" is another value than 3. So
    texts that read as such are refused, but in a column of pandas' type ``string``.
    There whole floats are, lest somebody make texts of numbers: "3" is "3.0" beside a
    gap. Who reads texts as ``string`` without being asked (``dtype_backend``,
    ``convert_dtypes``) reads numbers as pandas' or Arrow's own types, which are
    refused. ``first`` is the step that gets the rows, if it is known: `PublicColumns`
    sees to its values, and what takes texts alone refuses numbers.

    *Proof.* Let values that neighbouring tables share be numbers in one, and texts in
    the other. These read as numbers, so that the other table is refused, unless their
    column is a ``string``. If it was asked for, it has texts in both tables; if not,
    the numbers are of a type of pandas or Arrow, and the first table is refused.
    """
    if is_exactly(first, DECLARED) or _takes_texts(first):
        return False
    if hasattr(rows, "iloc") and any(map(_is_guessed, _types(rows))):
        return True
    return any(
        (_WHOLE_FLOAT.fullmatch if asked else _reads_as_number)(text)
        for values, asked in _parts_of(rows)
        for text in _texts_among(values)
    )


def _takes_texts(step: Any) -> bool:
    kinds = {"sklearn.feature_extraction": {"FeatureHasher", "HashingVectorizer"}}
    pairs = getattr(step, "input_type", "string") != "string"
    return is_exactly(step, kinds) and is_stateless(step) and not pairs


def _texts_among(values: Iterable[Any]) -> Iterator[str]:
    for value in values:
        if isinstance(value, str | bytes):
            yield value if isinstance(value, str) else value.decode(errors="replace")


def _is_guessed(kind: Any) -> bool:
    """Return whether whoever chose this type takes ``string`` where there is a word."""
    return _marks_gaps(kind) and not _keeps_values(kind)


def _marks_gaps(kind: Any) -> bool:
    return type(getattr(kind, "na_value", None)).__name__ == "NAType"


def _reads_as_number(text: str) -> bool:
    with suppress(ValueError):
        float(text.replace(",", ""))  # of decimals, or of thousands
        return True
    return text.strip().lower() in ("true", "false")


def _parts_of(rows: Any) -> Iterator[tuple[Iterable[Any], bool]]:
    """Yield values of columns, or of listed records; and if texts were asked for."""
    objects = isinstance(rows, np.ndarray) and rows.dtype == object and rows.ndim == 1
    if isinstance(rows, list | tuple) or objects:
        yield from ((_values_of(row), False) for row in rows)
    elif hasattr(rows, "iloc"):
        for place, kind in enumerate(_types(rows)):
            column = rows if rows.ndim == 1 else rows.iloc[:, place]
            texts = column.astype(object) if kind.kind in "OUS" else ()
            yield texts, _marks_gaps(kind)
    elif isinstance(rows, np.ndarray) and rows.dtype.kind in "OUST":
        yield rows.ravel().tolist(), False


def _values_of(record: Any) -> list[Any]:
    """Return the values of a listed record, those of pairs too; of a text none."""
    if isinstance(record, np.ndarray):
        record = record.tolist() if record.dtype.kind in "OUS" else []
    if isinstance(record, Mapping):
        record = list(record.values())
    values = record if isinstance(record, list | tuple) else []
    return [v[-1] if isinstance(v, tuple) and v else v for v in values]
