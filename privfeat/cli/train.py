"""``privfeat train``: train a whole network on images by DP-SGD.

Train a network on images with differential privacy, and save it with its privacy
statement. Images that take more than a gibibyte are read again as steps draw them.
Needs `pip install 'privfeat[train]'`.
"""

import warnings
from argparse import Namespace
from functools import partial
from pathlib import Path
from typing import Any

from privfeat.cli.shared import estimators, files, job, models, options, terminal
from privfeat.cli.shared.terminal import CommandError


def add_parser(verbs: Any) -> None:
    """Add this verb to the parser of the command."""
    parser = options.verb(verbs, run, options.fitted(), job.options())
    add = parser.add_argument
    add(
        "--data",
        metavar="DIR",
        required=True,
        help="a folder with images train/CLASS/*, and test/ likewise if there is a "
        "test set; or with CLASS/*. Or an HDF5 file with train/images, train/labels, "
        "likewise test/, and class_names; train/groups says whose each image is. The "
        "names of the classes become public",
    )
    add("--model", default="wrn_16_4", help=_MODEL)
    add("--image-size", type=int, default=32, help=_SIDE)
    skip = "list images that cannot be decoded and go on, instead of stopping"
    add("--skip-bad", action="store_true", help=skip)
    add("--grey", action="store_true", help="one channel, no colours")
    add(
        "--groups",
        metavar="FILE",
        help="protect all images of a user together; --batch counts users. A CSV file "
        "with the columns file (the path of an image below DIR) and user, as for "
        "privfeat-extract",
    )
    options.add_privacy(parser, linear=False)
    add = parser.add_argument_group("training").add_argument
    add("--epochs", type=float, help="passes over the images (default 10)")
    size = "expected size (default 256); at most the number of images, or users"
    add("--batch", dest="expected_batch_size", metavar="N", type=float, help=size)
    add("--learning-rate", type=float, help=_RATE)
    add("--clip-norm", type=float, help=_CLIP)
    folder = "keep checkpoints there, and go on from them if the fit was interrupted"
    add("--checkpoints", dest="checkpoint_dir", metavar="DIR", help=folder)
    every = "steps between checkpoints (default 100)"
    add("--checkpoint-every", metavar="STEPS", type=int, help=every)
    restore = "do not fit: save in --out the model of the finished fit of --checkpoints"
    add("--restore", action="store_true", help=restore)


_MODEL = (
    "a name in privfeat.networks.NETWORKS, or such as 'simpleVGG-32(2)-64(2)-128' "
    "(default wrn_16_4)"
)
_RATE = "peak rate of the optimizer (default 0.001; with --groups 1)"
_CLIP = "bound on the gradient of an image, or user (default 1)"
_SIDE = "side to which the images of a folder are resized (default 32)"


def run(args: Namespace) -> None:
    """Train, save, and print accuracy and statement."""
    if args.restore and args.distributed:
        raise CommandError("--restore must run in one process, without --distributed.")
    try:
        with job.joined_job(args), models.model_folder(args) as begun:
            _run(args, begun)
    except KeyboardInterrupt as error:
        if args.checkpoint_dir is not None:
            error.add_note(
                "The same command goes on from the last checkpoint, if there is one."
            )
        raise


def _run(args: Namespace, begun: list[Any]) -> None:
    from privfeat import DPSGDClassifier, persistence
    from privfeat.data.users import read_users

    params = estimators.parameters(args) | {"ledger": files.open_ledger(args)}
    if Path(str(params.get("weights"))).is_dir():
        params["weights"] = _parameters_of(params["weights"])
    warnings.filterwarnings("always", message="skipped ")
    below, (X, y, names, paths), groups, test = _read(args)
    if args.groups is not None:
        if paths is None:
            raise CommandError(
                f"--groups must be of the files of a folder, got {args.data!r}. Pass "
                "groups to fit in Python."
            )
        groups = read_users(args.groups, [below + path for path in paths])
    params |= {"classes": range(len(names))}
    params = {"verbose": int(not args.quiet)} | params
    clf = estimators.make_estimator(DPSGDClassifier(), params)
    begun.append(clf)
    persistence.written_before(clf, names)
    if args.restore:
        clf.restore()
        first = True
    else:
        with job.all_of_job(args) as first:
            terminal.progress(args, f"training {args.model} on {args.data} ...")
            clf.fit(X, y, groups=groups)
    if first:
        models.save_model(args, clf, names, test)


def _parameters_of(folder: str) -> dict[str, Any]:
    """Return the parameters of a saved network, for another to start from."""
    from privfeat import persistence
    from privfeat.networks.images.records import TO_UNIT_RANGE

    model = persistence.load(folder)
    if not hasattr(model, "parameters_"):
        raise CommandError(f"weights must be those of a network, got {folder!r}.")
    if model.pixel_scale_.shape != TO_UNIT_RANGE.shape:
        raise CommandError(
            "weights must be of a network that saw bytes as numbers in [-1, 1], got "
            f"{folder!r}, which began with those of timm. Pass floats in Python."
        )
    found: dict[str, Any] = model.parameters_
    return found


def _read(args: Namespace) -> tuple[str, Any, Any, tuple[Any, Any, Path] | None]:
    """Return the folder below DIR, its images, and those of ``test/`` if it is there.

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
    if not (below and folder.is_dir()):
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


def _read_file(
    args: Namespace, path: Path
) -> tuple[str, Any, Any, tuple[Any, Any, Path] | None]:
    """Return the images of an HDF5 file, as `_read` does those of a folder."""
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
    X.read_once()  # while nothing is spent
    _report_empty_classes(path, names, y)
    test = None
    if has_test(path, "train/images", "test/images"):
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


def _identity(file: Path) -> tuple[int, int]:
    state = file.stat()
    return state.st_dev, state.st_ino


def _report_empty_classes(folder: Path, names: list[str], labels: Any) -> None:
    for place in sorted(set(range(len(names))) - {*labels.tolist()}):
        terminal.warn(
            f"{folder / names[place]} holds no image that was read. It stays a class, "
            "since folders are public: remove it everywhere if it is none."
        )
