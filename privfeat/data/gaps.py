"""What a user wants to know of a feature file before a fit: classes that are missing.

All of it is about records. It is for the terminal of the person who has the file, and
goes into no file, statement or report.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np


class Labelled(Protocol):
    """Rows of a feature file, or of a table."""

    @property
    def labels(self) -> Any:
        """Class of each row."""

    @property
    def class_names(self) -> Sequence[str] | None:
        """Names of all classes."""


def find_gaps(splits: Mapping[str, Labelled], *, everywhere: bool = True) -> list[str]:
    """Return sentences on classes without a row, which depend on records.

    Parameters
    ----------
    splits : mapping of str to FeatureSplit or TableRows
        By the name to print. Their classes are the same.
    everywhere : bool
        Also name classes that no split has a row of.
    """
    present = {name: _classes(split) for name, split in splits.items()}
    gaps = []
    for name, split in splits.items():
        known = range(len(split.class_names or ()) if everywhere else 0)
        expected = {*known, *(c for found in present.values() for c in found)}
        absent = sorted(expected - present[name])
        if absent:
            others = [o for o in splits if o != name and absent[0] in present[o]]
            where = f", {others[0]} has one" if others else ""
            more = f" (nor have {len(absent) - 1} more classes)" if absent[1:] else ""
            label = _label(split, absent[0])
            gaps.append(f"{name} has no row of class {label}{where}{more}.")
    return gaps


def _classes(split: Labelled) -> set[int]:
    labels = split.labels
    if labels.ndim == 2:
        return set(np.flatnonzero(labels.any(axis=0)).tolist())
    return set(np.unique(labels).tolist())


def _label(split: Labelled, number: int) -> str:
    names = split.class_names or ()
    return repr(names[number]) if 0 <= number < len(names) else str(number)
