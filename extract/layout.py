"""Read splits, classes and order from the paths of image files."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from privfeat.data.origin import digest_of_list
from privfeat.data.splits import SPLIT_NAMES, not_classes

from .errors import ExtractError, say
from .sources import Source


@dataclass(frozen=True)
class Layout:
    """What the paths say."""

    files: dict[str, list[str]]  # paths of each split, sorted
    labels: dict[str, list[int]]  # class of each path
    class_names: list[str]  # sorted over all splits


def read_layout(
    paths: Sequence[str],
    splits: Sequence[str] | None,
    data: str,
    folders: Sequence[str] = (),
) -> Layout:
    """Sort image paths into splits and classes.

    ``paths`` are relative, with forward slashes: ``[split/]class/.../file``. One folder
    around everything is ignored. ``splits`` are names of split folders: None takes the
    folders among ``SPLIT_NAMES`` that hold images, and if there is no such folder, all
    images as the split ``train``; a line says what is left out. Of ``folders``, all
    that there are, one that stands where those of classes do is a class, with or
    without images, so that no image decides what the classes are. Where images lie in
    folders that are not among them, as an archive need not name its folders, a line
    warns. ``data`` names the data in messages.

    ExtractError if there is no image, one name is written in two ways, a split is
    missing, an image lies in no class folder, or folders of splits would pass for
    classes (`privfeat.data.splits`).
    """
    found = {path: PurePosixPath(path).parts for path in sorted(paths)}
    if not found:
        raise ExtractError(f"--data must hold images, but {data} holds none.")
    if len(set(found.values())) < len(found):  # a/1.png and ./a/1.png
        raise ExtractError(
            f"--data must name each image once, but {data} writes the name of one in "
            "two ways: its record would count twice. Pack it anew."
        )
    # folders alone say what is a split and what a class: no image decides it
    inside = {PurePosixPath(path).parts for path in folders} - {()}
    of_images = {q[:depth] for q in found.values() for depth in range(1, len(q))}
    if of_images - inside:  # an archive need not name its folders
        say(
            f"warning: {data} does not name all of its folders, so that one image may "
            "be all that makes a folder a class, or a split. Models and reports "
            "publish classes. Pack the folders as well, as zip -r and tar cf do."
        )
    inside |= of_images
    tops = {parts[0] for parts in inside}
    while (
        len(tops) == 1
        and not tops & {*SPLIT_NAMES, *(splits or ())}
        and len({parts[1] for parts in inside if len(parts) > 1}) > 1
    ):
        found = {path: parts[1:] or parts for path, parts in found.items()}
        inside = {parts[1:] for parts in inside} - {()}
        tops = {parts[0] for parts in inside}
    known = tops & {*SPLIT_NAMES, *(splits or ())}
    # beside splits that are known, one in capitals is forgotten
    other = {parts for parts in inside if parts[0] not in known}
    if known or splits:
        other = {parts[:1] for parts in other}
    if (mistaken := not_classes(["/".join(parts) for parts in other])) is not None:
        raise ExtractError(
            f"{data} must hold the classes, or splits such as train with the classes "
            f"in them, got folders of which {mistaken}. Name splits in small letters "
            "or by --splits; put classes into a folder train."
        )
    wanted = list(splits or [name for name in SPLIT_NAMES if name in tops])
    if not wanted or (splits == ["train"] and not tops & set(SPLIT_NAMES)):
        wanted = ["train"]
        found = {path: ("train", *parts) for path, parts in found.items()}
        inside = {("train", *parts) for parts in inside}
        tops = {"train"}
    missing = [name for name in wanted if name not in tops]
    if missing:
        raise ExtractError(
            f"--splits must name folders of {data}, but {missing[0]!r} is not among "
            f"{sorted(tops)[:10]}."
        )
    chosen = {path: parts for path, parts in found.items() if parts[0] in wanted}
    for path, parts in chosen.items():
        if len(parts) < 3:
            raise ExtractError(
                "images must lie in class folders, [split/]class/file, "
                f"but {data} holds {path}."
            )
    if not chosen:
        raise ExtractError(f"{data} must hold images in {' or '.join(wanted)}.")
    class_names = sorted({q[1] for q in inside if len(q) == 2 and q[0] in wanted})
    number = {name: i for i, name in enumerate(class_names)}
    files = {name: [p for p, q in chosen.items() if q[0] == name] for name in wanted}
    if splits is None and (left := sorted(tops - {*wanted})):
        every = " ".join([*wanted, *left])
        say(f"left out: {', '.join(left)}, no names of splits. --splits {every}")
    if loose := sum(len(parts) == 1 for parts in found.values()):
        say(f"left out: {loose} image(s) in no folder, beside those of the splits")
    if splits is None:  # a folder for a split may be empty, and its classes count
        wanted = [name for name in wanted if files[name]]
        files = {name: files[name] for name in wanted}
    labels = {name: [number[chosen[p][1]] for p in files[name]] for name in wanted}
    return Layout(files, labels, class_names)


def source_of(name: str, layout: Layout, images: dict[str, Any]) -> Source:
    """Return the data set of a layout, whose ``images`` are lists by split."""
    digests = {
        split: digest_of_list(files, layout.labels[split])
        for split, files in layout.files.items()
    }
    return Source(name, images, layout.class_names, digests)
