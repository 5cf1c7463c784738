"""Names of splits, folders of splits, and classes that a split has no row of.

The last is about records: it is for the terminal of the person who has the file, and
goes into no file, statement or report.
"""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np

SPLIT_NAMES = (
    "train",
    "training",
    "val",
    "valid",
    "validation",
    "eval",
    "evaluation",
    "test",
    "testing",
)
# Of texts: one row for each class, made of its name.
CLASSES = "classes"


def not_classes(folders: Collection[str]) -> str | None:
    """Return why folders that stand where classes do are hardly classes, or None.

    Names of folders are public: no image decides. ``folders`` are the paths of all,
    with forward slashes; the first part of each is the folder that stands where a class
    does.

    >>> not_classes(["Train", "Train/cat", "Test"])
    "'Test' is the name of a split"
    >>> not_classes(["photos", "photos/train", "notes"])
    "'photos/train' is the name of a split"
    >>> not_classes(["a", "a/cat", "a/dog", "b", "b/cat", "b/dog"])
    "several have the same folders in them, such as 'cat'"
    >>> not_classes(["cat", "cat/near", "dog"])
    """
    inside: dict[str, set[str]] = {}
    for folder in sorted(folders):
        first, _, rest = folder.partition("/")
        for name in (first, second := rest.partition("/")[0]):
            if name.casefold() in SPLIT_NAMES:
                return f"{folder!r} is the name of a split"
        inside.setdefault(first, set()).update({second} - {""})
    sets = [names for names in inside.values() if names]
    if len(sets) > 1 and all(names == sets[0] for names in sets):
        return f"several have the same folders in them, such as {min(sets[0])!r}"
    return None


def folders_of(root: Path) -> list[str]:
    """Return the folders in ``root`` and those in them, but for hidden ones."""
    found = [
        path for pattern in ("[!.]*/", "[!.]*/[!.]*/") for path in root.glob(pattern)
    ]
    return [path.relative_to(root).as_posix() for path in found]


def find_gaps(splits: Mapping[str, Any], *, everywhere: bool = True) -> list[str]:
    """Return sentences on classes without a row, which depend on records.

    ``splits``, of feature files or tables, stand by the name to print, and have the
    same ``class_names``. With ``everywhere``, classes that no split has a row of are
    named too.
    """
    present = {name: _classes(split.y) for name, split in splits.items()}
    gaps = []
    for name, split in splits.items():
        named = range(len(split.class_names or ()) if everywhere else 0)
        expected = {*named, *(c for found in present.values() for c in found)}
        absent = sorted(expected - present[name])
        if absent:
            others = [o for o in splits if o != name and absent[0] in present[o]]
            where = f", {others[0]} has one" if others else ""
            more = f" (nor have {len(absent) - 1} more classes)" if absent[1:] else ""
            names = split.class_names or ()
            known = 0 <= absent[0] < len(names)
            label = repr(names[absent[0]]) if known else str(absent[0])
            gaps.append(f"{name} has no row of class {label}{where}{more}.")
    return gaps


def _classes(labels: Any) -> set[int]:
    if labels.ndim == 2:
        return set(np.flatnonzero(labels.any(axis=0)).tolist())
    return set(np.unique(labels).tolist())
