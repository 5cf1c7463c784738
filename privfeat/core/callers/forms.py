"""Whether one record may decide in which form a step gets all others.

A table has one type for each column, and one word, gap or half in it is enough for
another.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain
from numbers import Number
from typing import Any

import numpy as np

from privfeat.core.callers.stateless import DECLARED, is_exactly, is_stateless

# pandas' marks of a missing value, which compare and convert like nothing else
ABSENT = ("NAType", "NaTType")
# What sets thousands apart, in one country or another.
_THOUSANDS = re.compile(r"[\s,'_]|\.(?=\d{3}\b)")


def form_varies(rows: Any) -> bool:
    """Return whether one record may decide in which form a step gets all others.

    One half makes a column of whole numbers one of floats, one gap makes floats of
    truth values. So all numbers must be floats, of the one width that who stores them
    chose: beside small whole numbers, float32 becomes float64 or stays. One text makes
    objects of them, and so are objects refused; of texts see `values_vary`. In sparse
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


def values_vary(rows: Any, first: Any = None) -> bool:
    """Return whether one record may decide what the values of others are to a step.

    A reader of tables makes numbers, truth values or dates of a column in which no
    record has another word, and else texts: to most steps and models "3" is another
    value than 3. So only numbers and texts may stand in rows, and no text that reads as
    a number or as a truth value, whatever the type of its column: it may be one that
    whoever read the table chose after a look at all records. ``first`` is the step that
    gets the rows, if it is known: `PublicColumns` sees to its values, and what takes
    texts alone refuses numbers.

    *Proof.* Let a value that neighbouring tables share be a text in one, and something
    else in the other. If that is a number, the text reads as one, and its table is
    refused; if it is anything else but a gap, the other table is.
    """
    if is_exactly(first, DECLARED) or _takes_texts(first):
        return False
    types = _types(rows) if hasattr(rows, "dtype") or hasattr(rows, "dtypes") else []
    if not all(kind.kind in "iufcOUST" for kind in types):
        return True
    return not all(map(_is_plain, chain.from_iterable(_parts_of(rows))))


def _takes_texts(step: Any) -> bool:
    kinds = {"sklearn.feature_extraction": {"FeatureHasher", "HashingVectorizer"}}
    pairs = getattr(step, "input_type", "string") != "string"
    return is_exactly(step, kinds) and is_stateless(step) and not pairs


def _is_plain(value: Any) -> bool:
    """Return whether a value is a number, a gap, or a text that reads as no number."""
    if isinstance(value, str | bytes):
        text = value if isinstance(value, str) else value.decode("latin-1")
        with suppress(ValueError):
            float(_THOUSANDS.sub("", text))
            return False
        return text.strip().lower() not in ("true", "false")
    number = isinstance(value, Number) and not isinstance(value, bool)
    return number or value is None or type(value).__name__ in ABSENT


def _parts_of(rows: Any) -> Iterator[Iterable[Any]]:
    """Yield the values of each column that may have texts, or of each listed record."""
    objects = isinstance(rows, np.ndarray) and rows.dtype == object and rows.ndim == 1
    if isinstance(rows, list | tuple) or objects:
        yield from map(_values_of, rows)
    elif hasattr(rows, "iloc"):
        for place, kind in enumerate(_types(rows)):
            if kind.kind in "OUS":
                column = rows if rows.ndim == 1 else rows.iloc[:, place]
                yield column.astype(object)
    elif isinstance(rows, np.ndarray) and rows.dtype.kind in "OUST":
        yield rows.ravel().tolist()


def _values_of(record: Any) -> list[Any]:
    """Return the values of a listed record, those of pairs too; of a text none."""
    if isinstance(record, np.ndarray):
        record = record.tolist() if record.dtype.kind in "OUS" else []
    if isinstance(record, Mapping):
        record = list(record.values())
    values = record if isinstance(record, list | tuple) else []
    return [v[-1] if isinstance(v, tuple) and v else v for v in values]
