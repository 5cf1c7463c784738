"""Images as the command line names them: a folder of classes, or an HDF5 file."""

from argparse import ArgumentParser, Namespace
from functools import partial
from pathlib import Path
from typing import Any

from privfeat.cli.shared import files, terminal
from privfeat.cli.shared.terminal import CommandError

_MODEL = (
    "a name in privfeat.networks.NETWORKS, or such as 'simpleVGG-32(2)-64(2)-128' "
    "(default wrn_16_4)"
)
_NOTHING = (0, 0)  # of what is not there
_SIDE = "side to which the images of a folder are resized (default 32)"


def options() -> ArgumentParser:
    """Return the options that say which network sees images, and how."""
    parent = ArgumentParser(add_help=False)
    add = parent.add_argument
    add("--model", default="wrn_16_4", help=_MODEL)
    add("--image-size", type=int, default=32, help=_SIDE)
    skip = "list images that cannot be decoded and go on, instead of stopping"
    add("--skip-bad", action="store_true", help=skip)
    add("--grey", action="store_true", help="one channel, no colours")
    return parent


def read_data(args: Namespace) -> tuple[str, Any, Any, tuple[Any, Any, Path] | None]:
    """Return the folder below DIR, its images, and those of ``test/`` if it is public.

    Images are in memory, or read as they are used; of an HDF5 file they have no names,
    but may have users, which come after them.

    The person who has the files is warned of empty classes before anything is charged.
    """
    from privfeat.data.splits import folders_of, not_classes
    from privfeat.networks import read_folder

    root = Path(args.data)
    if root.is_file():
        return _read_file(args, root)
    if not root.is_dir():
        raise CommandError(f"--data must be a folder or a file, got {args.data!r}.")
    read = partial(
        read_folder,
        size=args.image_size,
        mode="L" if args.grey else "RGB",
        skip_bad=args.skip_bad,
        lazy=None,
    )
    below = "train/" if (root / "train").is_dir() else ""
    if not below and (mistaken := not_classes(folders_of(root))) is not None:
        raise CommandError(
            f"--data must be a folder that holds train/, or the classes, got "
            f"{args.data!r}, of whose folders {mistaken}. Put those of the classes "
            "into a folder train."
        )
    found = read(root / below)
    _report_empty_classes(root / below, found.class_names, found.labels)
    folder = root / "test"
    if not (args.test_is_public and below and folder.is_dir()):
        return below, found, None, None
    test = read(folder)
    _refuse_links(root / below, found.files, folder, test.files)
    other = sorted({*found.class_names} ^ {*test.class_names})
    if other:
        raise CommandError(
            f"test/ must have the classes of train/, but only one has {other[0]!r}."
            " Add an empty folder for it to the other."
        )
    _report_empty_classes(folder, found.class_names, test.labels)
    return below, found, None, (test.images, test.labels, folder)


def public_records(args: Namespace) -> tuple[int, tuple[Any, ...]]:
    """Return the number of classes, and records and labels to train and to test on.

    They are those of ``--public``: images, or rows of a feature file.
    """
    from privfeat.data import FeatureFileError, open_features

    path = Path(args.public)
    if path.is_file():
        try:
            names = open_features(path).class_names
        except FeatureFileError:
            names = None  # images, or what `read_data` refuses
        if names is not None:
            rows = [
                files.open_split(f"{path}:{split}", split, one_label=True)
                for split in ("train", "test")
            ]
            for split in rows:
                files.check_whole("--public", args.public, split)
            return len(names), tuple(part for r in rows for part in (r.X[:], r.y))
    given = {"grey": False, "skip_bad": False} | vars(args) | {"max_group_size": None}
    given |= {"data": args.public, "test_is_public": True}
    _, (X, y, names, _), _, test = read_data(Namespace(**given))
    if test is None:
        raise CommandError(f"--public must hold a test split, got {args.public!r}.")
    return len(names), (X, y, *test[:2])


def images_of(option: str, folder: str, shape: tuple[int, ...]) -> Any:
    """Return all images below a folder, in the order of their names, without labels.

    They are read when they are asked for, as a saved network takes them.
    """
    from privfeat.data.images import FolderImages
    from privfeat.data.pixels import list_images

    size, mode = _square(option, shape)
    names, _ = list_images(folder)
    if not names:
        raise CommandError(f"{option} must hold images, got none in {folder!r}.")
    return FolderImages(folder, names, size, mode)


def labelled_images(
    option: str, folder: str, model: str | Path, network: Any
) -> tuple[Any, Any, list[str]]:
    """Return images, labels and files of ``CLASS/*``, as a saved network takes them.

    The files are paths below the parent of ``folder``, as a table of users has them.
    """
    from privfeat.networks.images.records import read_folder
    from privfeat.persistence import load_class_names

    size, mode = _square(option, network.input_shape_)
    if not Path(folder).is_dir():
        raise CommandError(
            f"{option} must be a folder of images, got {folder!r}. Of an HDF5 file, "
            "call privfeat.metrics.private_evaluation in Python."
        )
    X, y, names, found = read_folder(folder, size=size, mode=mode)
    if load_class_names(model) not in (None, names):
        raise CommandError(f"{folder} must have the classes of {model}.")
    return X, y, [f"{Path(folder).resolve().name}/{file}" for file in found]


def _square(option: str, shape: tuple[int, ...]) -> tuple[int, str]:
    """Return the side of the images of a network, and their mode."""
    if len(shape) != 3 or shape[0] != shape[1] or shape[2] not in (1, 3):
        raise CommandError(f"{option} is for networks of square images, got {shape}.")
    return shape[0], "L" if shape[2] == 1 else "RGB"


def check_apart(option: str, public: str, private: Path) -> None:
    """Refuse public images that are private ones, by their files, links followed."""
    if (_identities(Path(public)) & _identities(private)) - {_NOTHING}:
        raise CommandError(
            f"{option} must hold no file of --data, got one of both. Pass other "
            "images, that everyone may see."
        )


def check_outside(data: str | None, written: dict[str, str | None]) -> None:
    """Refuse to write among the classes of images: what is written would be one.

    ``written`` has the folders to be written, by the names of their options.
    """
    root = Path(data or "").resolve()
    if data is None or not root.is_dir():
        return
    splits = [root / name for name in ("train", "test")]
    places = splits if splits[0].is_dir() else [root]
    for option, folder in written.items():
        parents = () if folder is None else Path(folder).resolve().parents
        if {*parents} & {*places}:
            raise CommandError(
                f"{option} must lie outside the classes of images, got {folder!r} in "
                f"{data!r}: it would be a class of them. Pass a folder beside them."
            )


def classes_of(data: str) -> tuple[int, int, bool]:
    """Return the number of classes of images, their side, and whether they are grey.

    No image is read. The side is 0 if it is not that of an HDF5 file.
    """
    from privfeat.data.images import open_images
    from privfeat.data.splits import folders_of

    root = Path(data)
    if root.is_file():
        found = open_images(root)
        shape = found.images.shape
        return len(found.class_names or ()), min(shape[1:3]), shape[3] == 1
    below = root / "train" if (root / "train").is_dir() else root
    return len({name.partition("/")[0] for name in folders_of(below)}), 0, False


def _read_file(
    args: Namespace, path: Path
) -> tuple[str, Any, Any, tuple[Any, Any, Path] | None]:
    """Return the images of an HDF5 file, as `read_data` does those of a folder."""
    from privfeat.data.images import has_test, open_images

    X, y, names, groups = open_images(path)
    if names is None:
        raise CommandError(
            f"{path} must hold class_names: to read the classes from the labels would "
            "not be private. Add them."
        )
    if groups is not None and args.max_group_size is None:
        raise CommandError(
            f"{path} names the user of each image. Pass --max-group-size to protect "
            "all images of a user together, or remove train/groups from it to protect "
            "each image on its own."
        )
    _report_empty_classes(path, names, y)
    test = None
    if args.test_is_public and has_test(path, "train/images", "test/images"):
        found = open_images(path, images="test/images", labels="test/labels")
        test = found.images, found.labels, path / "test"
    return "", (X, y, names, None), groups, test


def _refuse_links(split: Path, train: list[str], other: Path, test: list[str]) -> None:
    """Raise CommandError if an image of ``test/`` is one of ``train/``."""
    known = {_identity(split / file) for file in train}
    if any(_identity(other / file) in known for file in test):
        raise CommandError(
            f"{other} must not lead to images of {split}, got a link. An accuracy on "
            "training images says something about them."
        )


def _identities(path: Path) -> set[tuple[int, int]]:
    """Return the identity of a file, or those of all files below a folder."""
    from privfeat.data.pixels import listed_below

    if not path.is_dir():
        return {_identity(path)}
    return {found for _, found in listed_below(path) if found is not None}


def _identity(path: Path) -> tuple[int, int]:
    try:
        state = path.stat()
    except OSError:  # a link to nothing holds no image
        return _NOTHING
    return state.st_dev, state.st_ino


def _report_empty_classes(folder: Path, names: list[str], labels: Any) -> None:
    for place in sorted(set(range(len(names))) - {*labels.tolist()}):
        terminal.warn(
            f"{folder / names[place]} holds no image that was read. It stays a class, "
            "since folders are public: remove it everywhere if it is none."
        )
