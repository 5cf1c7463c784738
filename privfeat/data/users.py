"""The users of files: the table that every command reads."""

import re
import string
import unicodedata
from collections.abc import Callable, Sequence
from datetime import date
from decimal import Decimal
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfeat._messages import list_of, without_data
from privfeat.data.tables.csv_files import csv_header, csv_parts
from privfeat.data.tables.rounding import EXACT, may_be_rounded

COLUMNS = ("file", "user")
# What programs and people write where nobody is named, signs around it left out (Nil
# and Nat are names of persons) ...
_NOBODY = re.compile(
    r"(n( ?[^\w\s] ?|[ _])?a|n/a n/a|nan|none|null|(?-i:nil|NIL|NaT)|1\.#(ind|qnan)0*"
    r"|missing|undefined|unknown)?",
    re.IGNORECASE,
)
_SIGNS = f" {string.punctuation}" + (
    "\xa1\xab\xb7\xbb\xbf\u2010\u2012\u2013\u2014\u2015\u2018\u2019\u201c\u201d\u201e"
    "\u2022\u2212"
)
# ... "\N" of databases, and errors of spreadsheets: "#VALUE!", "#DIV/0!" ...
_NO_NAME = re.compile(r"\\N|#[^a-z1-9]+[!?]")
# ... and codes of categories, also where they lost their sign, and integers of NaN.
_NO_NUMBERS = (-1, 2**32 - 1, 2**64 - 1, -(2**31), -(2**63), 2**63)
_NAMELESS = (
    "groups must name the user of each row, got a blank, or what stands for a missing "
    "one, such as 'NA' or -1. Leave the row out, or name who it is of."
)
# Objects that compare themselves could take two users for one.
_PLAIN: dict[type, Callable[[Any], Any]] = {
    Integral: int,
    str: str.__str__,
    bytes: bytes.__bytes__,
}
# What names a user in a table; of other objects the text would be taken for a name.
_NAMING = (str, bytes, Real, Decimal, date, type(None))
_WHOLE = re.compile(r"([-\N{MINUS SIGN}]?)(\d+)(\.0*)?")
# As programs shorten numbers. Digits that are cut off make one name of several, and
# "1e+05" is a second name of 100000; a code such as "1e05" is neither.
_SHORTENED = re.compile(r"[-+\N{MINUS SIGN}]?\d+([.,]\d*e\+?|e\+)\d+", re.IGNORECASE)
ROUNDED = (
    "groups must name users as their table has them, got a number that a program has "
    "shortened, such as 1.1e+17, or may have rounded, as a float, or one that pandas "
    "read from 2**53 on: it may be of several users. Pass them as texts, as "
    "privfeat.data.read_table reads a CSV file and Parquet keeps texts."
)
# Drawn as nothing: controls, and Default_Ignorable_Code_Point of Unicode 16.
_UNSEEN = re.compile(
    "[\0-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5"
    "\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff"
    "\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)
_BRAILLE_SPACE = "\u2800"
_NO_TEXT = "\uffff"  # Unicode keeps it out of all texts


def read_users(path: str | Path, files: Sequence[str]) -> list[str]:
    """Return the user of every file.

    The table at ``path`` is separated by commas, with the columns ``file``, a path
    below the folder or archive of images, as in ``files`` (``train/cat/1.png``), and
    ``user``, any text, of which `user_of` makes a name. Further columns, and rows on
    other files, are left out.

    ValueError if a column, a file or a user is missing, a line has other than as many
    values as the first (a name with a comma stands in quotes), or a file is named
    twice. The message names the first such file: it is for who has the files.
    """
    _check_header(path, csv_header(path))
    users: dict[str, str] = {}
    for part in csv_parts(path, COLUMNS):
        for file, user in zip(part["file"], part["user"], strict=True):
            if file in users:
                raise ValueError(
                    f"--groups must name each file once, but {path} names {file} twice."
                )
            users[file] = user_of(user)
    missing = next((file for file in files if not users.get(file)), None)
    if missing is not None:
        raise ValueError(
            "--groups must name the user of every image, by its path below --data, but "
            f"{path} has none for {missing}. Add it, or leave the image out."
        )
    return [users[file] for file in files]


def name_of(value: str) -> str:
    """Return a value of a table as all spellings of one name have it.

    Spaces around it make no other name, nor does an accent that is a separate letter.
    """
    return unicodedata.normalize("NFC", value).strip()


def user_of(text: str | bytes) -> str:
    """Return the name of a user; of what stands for a missing one, the empty text.

    Rows without a user, taken for those of one user, would have less protection. So
    would those of one user under two names: signs that are drawn alike are one, those
    that are drawn as nothing are left out, and 7.0 is 7, as files with gaps have it.
    Signs that this Python does not know, or that are private, are drawn: they stay.
    The name of a name is that name. ValueError for a number that a program has rounded
    or shortened: users with long codes would pass for one.

    >>> user_of("Ann\N{NO-BREAK SPACE}Smith\N{SOFT HYPHEN} "), user_of("7.0")
    ('Ann Smith', '7')
    >>> user_of("#N/A"), user_of("(null)"), user_of("--")
    ('', '', '')
    """
    if isinstance(text, bytes):
        decoded = bytes.decode(text, errors="surrogateescape")
        if {"Cc", "Cs"} & {*map(unicodedata.category, decoded)}:
            return f"{_NO_TEXT}{bytes.hex(text)}"  # a number, say
        text = decoded
    drawn = _UNSEEN.sub("", unicodedata.normalize("NFKC", str.__str__(text)))
    spaced = " ".join(drawn.replace(_BRAILLE_SPACE, " ").split())
    name = unicodedata.normalize("NFKC", spaced)  # parts that met
    whole = _WHOLE.fullmatch(name)
    long = whole and whole[3] and float(whole[2]) >= EXACT
    if long or _SHORTENED.fullmatch(name):
        raise ValueError(ROUNDED)
    if whole:
        name = "-" * len(whole[1]) + whole[2]
    coded = name in map(str, _NO_NUMBERS)
    nobody = coded or _NOBODY.fullmatch(name.strip(_SIGNS)) or _NO_NAME.fullmatch(name)
    return "" if nobody else name


def named(users: NDArray[Any]) -> NDArray[Any]:
    """Return users by whole number or date, or by name; ValueError for any other."""
    names: dict[Any, Any] = {}
    if not all(issubclass(kind, _NAMING) for kind in {*map(type, users.tolist())}):
        raise ValueError("groups must be names, numbers or dates, got another type.")
    for user in users.tolist():
        if user not in names:
            whole = isinstance(user, Integral) or not isinstance(user, Real)
            if not whole and user == user:
                raise ValueError(ROUNDED)  # of which float, a list does not tell
            text = isinstance(user, str | bytes)
            names[user] = user_of(user) if text else user
            missing = user is None or user != user or names[user] == ""  # NaN
            if missing or user in _NO_NUMBERS:
                raise ValueError(_NAMELESS)
    found = np.empty(len(users), object)
    found[:] = [names[user] for user in users.tolist()]
    return found


def check_exact(groups: Any) -> None:
    """Raise ValueError for a column of users in which two may have become one."""
    if may_be_rounded(groups):
        raise ValueError(ROUNDED)


def ids_of(groups: Any) -> NDArray[Any]:
    """Return the users of records as integers as given, or as names by `user_of`.

    An array of one NumPy type for all users would turn large integers beside small ones
    into floats and cut trailing zeros of strings: one user's name would then change
    which of the other users are told apart.

    TypeError if they are not all integers, or all strings or bytes; also for a mapping
    or a set, whose keys would pass for users of one record each. ValueError as for
    `named`, and for the numbers that stand for a missing user.
    """
    check_exact(groups)
    masked = isinstance(groups, np.ma.MaskedArray)  # lists have None for what is
    if isinstance(groups, np.ndarray) and groups.ndim == 1 and not masked:
        if groups.dtype.kind in "iu":
            # a copy: which records count, and where they stand, must be of one reading
            found = np.array(groups)
            if any((found == number).any() for number in _NO_NUMBERS):
                raise ValueError(_NAMELESS)
            return found
    values = list_of("groups", groups)
    for kind, plain in _PLAIN.items():
        if all(isinstance(value, kind) for value in values):
            ids = np.empty(len(values), object)
            ids[:] = without_data(list, map(plain, values))
            return named(ids)
    raise TypeError(
        "groups must be one-dimensional and hold integers only or strings only, "
        "got another type or a missing value."
    )


def _check_header(path: str | Path, header: Sequence[str]) -> None:
    """Raise ValueError unless both columns are there; the header is not printed."""
    if any(header.count(name) > 1 for name in COLUMNS):
        raise ValueError(
            f"--groups must have each column once, but {path} has two of one name. "
            "Leave one out."
        )
    missing = [repr(name) for name in COLUMNS if name not in header]
    if missing:
        raise ValueError(
            "--groups must be separated by commas and have the columns file and user, "
            f"but {path} has no column {' and no column '.join(missing)}. Name them in "
            "the first line."
        )
