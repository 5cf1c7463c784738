"""Images in class folders."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from privfeat.data.pixels import decode, list_images

from .layout import read_layout, source_of
from .sources import Source, as_labels


class FolderImages:
    """One split of an image folder; ``names`` are paths below ``root``."""

    def __init__(self, root: Path, names: list[str], labels: list[int]) -> None:
        self.root, self.names, self.labels = root, names, as_labels(labels)

    def __len__(self) -> int:
        return len(self.names)

    def changed_since(self, seconds: float, numbers: range) -> bool:
        """Return whether one of these images, or what has its name, is newer."""
        places = (self.root / self.names[number] for number in numbers)
        states = (os.stat(place) for place in places if place.exists())
        return any(max(s.st_mtime, s.st_ctime) > seconds for s in states)

    def load(self, index: int) -> tuple[Any, int]:
        """Return the decoded image and its label."""
        return decode(self.root / self.names[index]), int(self.labels[index])


def open_folder(root: Path, splits: Sequence[str] | None, workspace: Path) -> Source:
    """List the images of a folder, in sorted order.

    What this extraction itself keeps there, in ``workspace``, is no class. ExtractError
    as for `read_layout`.
    """
    paths, folders = list_images(root)
    own = workspace.resolve()
    folders = [f for f in folders if not (root / f).resolve().is_relative_to(own)]
    layout = read_layout(paths, splits, str(root), folders)
    images = {
        name: FolderImages(root, files, layout.labels[name])
        for name, files in layout.files.items()
    }
    return source_of(root.resolve().name, layout, images)
