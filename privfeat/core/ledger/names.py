"""Names of data sets, and of who charges: no two differ by what is easily overlooked.

A second budget for the same records, under a name with a slip of the pen, would double
what may be spent of them. So a new name is refused that differs from another by spaces,
capitals or the form of accents alone; and one that is near another is, unless the
caller says that its records are others. Letters of other scripts that look alike are
other letters here: who writes a name in them, on purpose, gets a second budget.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any

from privfeat._warnings import STDERR, warn
from privfeat.core.ledger.budget import Budget
from privfeat.core.statement.weak_choices import is_large_delta

# Letters that are drawn as nothing, though Python calls them printable.
_FILLERS = frozenset("\u115f\u1160\u2800\u3164\uffa0")
# Of files that hold records; "north.east" has none.
_ENDINGS = re.compile(
    r"(?<=.)(\.(arrow|bz2|csv|dat|feather|gz|h5|hdf5|json|jsonl|npy|npz|parquet|sqlite"
    r"|tar|tsv|txt|xls|xlsx|xz|zip|zst))+\s*$"
)


def check_new_name(dataset: str, others: Sequence[str], *, new_dataset: bool) -> None:
    """Raise ValueError unless the name of a new budget differs from all other names.

    With ``new_dataset`` it may be `near` one, but not look like it.
    """
    for name in others:
        if _as_seen(name) == _as_seen(dataset):
            raise ValueError(
                f"dataset must differ from {name!r}, which has a budget, by more than "
                "spaces, capitals or the form of accents, got "
                f"{dataset!a}. Open that budget, or choose another name."
            )
    _check_plain("dataset", dataset)
    if not new_dataset and (near := nearest(dataset, others)) is not None:
        raise ValueError(
            f"dataset must differ from {near!r}, which has a budget, by more than a "
            f"slip of the pen, got {dataset!r}. Open that budget if the records are "
            "the same: two budgets would double what they may lose. If they are "
            "others, pass new_dataset=True (--new-dataset)."
        )


def check_who(who: Any) -> str | None:
    """Return who charges; ValueError unless it is None or a plain short name."""
    if who is None:
        return None
    if not isinstance(who, str) or not 0 < len(who) <= 100:
        raise ValueError(f"who must be a name of 1 to 100 characters, got {who!r}.")
    _check_plain("who", who)
    return who


def is_near(name: str, other: str) -> bool:
    """Return whether one name may be the other, mistyped.

    Without spaces, signs, capitals, accents and the ending of a file they are equal, or
    one letter apart (one more, less, another, or two swapped) where both have four or
    more, and two apart where they have eight or more.

    >>> is_near("chest x-rays", "Chest_xrays"), is_near("digits", "digtis")
    (True, True)
    >>> is_near("patients", "patients.csv"), is_near("patients.h5", "patients.csv.gz")
    (True, True)
    >>> is_near("digits", "digits, validation"), is_near("a1", "a2")
    (False, False)
    """
    one, two = _letters(name), _letters(other)
    most = min(len(one) // 4, len(two) // 4, 2)
    return abs(len(one) - len(two)) <= most and _n_slips(one, two, most) <= most


def nearest(dataset: str, others: Iterable[str]) -> str | None:
    """Return a name that looks like this one or is near it, if there is one."""
    for name in others:
        if _as_seen(name) == _as_seen(dataset) or is_near(name, dataset):
            return name
    return None


def tell_of_new(budget: Budget, ledger: str, others: Sequence[str]) -> None:
    """Say on stderr that a budget is created: a wrong name or path makes a second.

    Warn of a large delta first: where warnings are errors, no budget is created.
    """
    if is_large_delta(budget.delta, n_units=1):
        rule = f"delta should be well below one over the number of {budget.unit}s"
        warn(
            f"{rule}, got {budget.delta!r}. A budget cannot be changed: create this "
            "one anew, before its first fit."
        )
    alike = get_close_matches(budget.dataset, others, 10, 0.0)  # the nearest first
    beside = ", ".join(map(repr, alike)) or "nothing"
    beside += " and more" * (len(others) > len(alike))
    STDERR.write(
        f"privfeat: created a budget for {budget.dataset!r}, epsilon = "
        f"{budget.epsilon:g} at delta = {budget.delta:g}, in {ledger}, which held "
        f"{beside} before. If these records have a budget, open that one instead.\n"
    )


def _as_seen(name: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def _check_plain(what: str, name: str) -> None:
    seen = name.isprintable() and not _FILLERS.intersection(name)
    if name != name.strip() or not seen:
        raise ValueError(
            f"{what} must have no spaces at its ends and no invisible characters, got "
            f"{name!a}."
        )


def _letters(name: str) -> str:
    """Return the letters and digits without case and accents; all if there are none.

    Nor with the endings of a file: one opened by its name is of the same records.
    """
    folded = _ENDINGS.sub("", unicodedata.normalize("NFKD", name.casefold()))
    return "".join(filter(str.isalnum, folded)) or _as_seen(name)


def _n_slips(one: str, two: str, most: int) -> int:
    """Return the optimal string alignment distance, or any number above ``most``."""
    before: list[int] = []
    row = list(range(len(two) + 1))
    for i, letter in enumerate(one):
        last, before, row = before, row, [i + 1]
        for j, other in enumerate(two):
            changed = before[j] + (letter != other)
            row.append(min(before[j + 1] + 1, row[j] + 1, changed))
            if i and j and (letter, other) == (two[j - 1], one[i - 1]):
                row[-1] = min(row[-1], last[j - 1] + 1)
        if min(row) > most:  # so are all rows after it: a swap adds to one before
            return most + 1
    return row[-1]
