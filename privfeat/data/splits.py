"""Names of splits, and folders of splits, which must not pass for classes."""

from collections.abc import Collection
from pathlib import Path

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

    Names of folders are public: no image decides.

    Parameters
    ----------
    folders : collection of str
        Paths of all folders, with forward slashes; those of classes come first in them.

    Examples
    --------
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
