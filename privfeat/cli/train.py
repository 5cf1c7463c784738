"""``privfeat train``: train a whole network on a folder of images and save it."""

import argparse
import sys
import warnings
from functools import partial
from pathlib import Path
from typing import Any

from privfeat.cli import options
from privfeat.cli.common import (
    CommandError,
    check_known,
    interrupt_explained,
    open_ledger,
    output_folder,
    parse_settings,
    print_fit,
    progress,
    refuse_to_replace,
    save_fit,
    warn,
)


def add_parser(verbs: Any) -> None:
    """Add this verb to the parser of the command."""
    parser = verbs.add_parser(
        "train",
        parents=[
            options.saved_model(),
            options.settings(
                "another parameter of DPSGDClassifier, such as ema_decay=0.999"
            ),
            options.ledger("charge the fit to", "whose budget is charged"),
            options.quiet("print warnings alone"),
        ],
        help="train a whole network on images by DP-SGD",
        description="Train a network on a folder of images with differential "
        "privacy, and save it with its privacy statement. Needs `pip install "
        "'privfeat[train]'`.",
    )
    parser.set_defaults(run=run)
    add = parser.add_argument
    add(
        "--data",
        metavar="DIR",
        required=True,
        help="a folder with images train/CLASS/*, and test/ likewise if there is a "
        "test set; or with CLASS/*. The names of the classes become public",
    )
    add("--model", default="wrn_16_4", help="name of a network (default wrn_16_4)")
    add("--image-size", type=int, default=32, help="side of the images (default 32)")
    add(
        "--skip-bad",
        action="store_true",
        help="list images that cannot be decoded and go on, instead of stopping",
    )
    add("--grey", action="store_true", help="one channel, no colours")
    add(
        "--groups",
        metavar="FILE",
        help="protect all images of a user together: a CSV file whose columns file and "
        "user name every image, by its path below DIR, and whose it is; the same table "
        "as for privfeat-extract",
    )
    add(
        "--max-group-size",
        type=int,
        help="with --groups: how many images of a user count; --batch counts users",
    )
    options.add_privacy(parser, linear=False)
    add = parser.add_argument_group("training").add_argument
    add("--epochs", type=float, help="default 10")
    add(
        "--batch",
        dest="expected_batch_size",
        metavar="BATCH",
        type=float,
        help="expected size (default 256), at most the images, or users, there are",
    )
    add("--learning-rate", type=float, help="of the optimizer")
    add("--clip-norm", type=float, help="longest gradient of one image")
    add(
        "--checkpoints",
        dest="checkpoint_dir",
        metavar="DIR",
        help="keep checkpoints there, and go on from them if the fit was interrupted",
    )
    add(
        "--checkpoint-every",
        metavar="STEPS",
        type=int,
        help="steps between checkpoints (default 100)",
    )
    add(
        "--restore",
        action="store_true",
        help="do not fit: save in --out the model of the finished fit of --checkpoints",
    )


def run(args: argparse.Namespace) -> None:
    """Train, save, and print accuracy and statement."""
    try:
        with interrupt_explained() as begun:
            _run(args, begun)
    except KeyboardInterrupt as error:
        if args.checkpoint_dir is not None:
            error.add_note(
                "The same command goes on from the last checkpoint, if there is one."
            )
        raise


def _run(args: argparse.Namespace, begun: list[Any]) -> None:
    from privfeat import DPSGDClassifier, persistence
    from privfeat.data.users import read_users
    from privfeat.networks import read_folder

    refuse_to_replace(args)
    ledger = open_ledger(args)
    root = Path(args.data)
    if not root.is_dir():
        raise CommandError(f"--data must be a folder, got {args.data!r}.")
    mode = "L" if args.grey else "RGB"
    read = partial(read_folder, size=args.image_size, mode=mode, skip_bad=args.skip_bad)
    split = root / "train"
    warnings.filterwarnings("always", message="skipped ")
    below = "train/" if split.is_dir() else ""
    X, y, names, files = read(root / below)
    _report_empty_classes(root / below, names, y)
    test = None
    if split.is_dir() and (root / "test").is_dir():
        test = read(root / "test")
        _refuse_links(split, files, root / "test", test.files)
        other = sorted({*names} ^ {*test.class_names})
        if other:
            raise CommandError(
                f"test/ must have the classes of train/, but only one has {other[0]!r}."
                " Add an empty folder for it to the other."
            )
        _report_empty_classes(root / "test", names, test.labels)
    groups = None
    if args.groups is not None:
        groups = read_users(args.groups, [below + file for file in files])
    params = _parameters(args) | {"classes": range(len(names))}
    if ledger is not None:
        params["ledger"] = ledger
    bar = sys.stderr.isatty() and not args.quiet
    clf = DPSGDClassifier(**({"verbose": int(bar)} | params))
    begun.append(clf)
    persistence.written_before(clf, names)
    with output_folder(args.out):
        if args.restore:
            clf.restore()
        else:
            if not args.quiet:
                by_user = groups is not None and args.max_group_size is not None
                n_units = len(set(groups or ()) if by_user else y)
                print(_charge(clf, n_units), flush=True)
            progress(args, f"training {args.model} on {args.data} ...")
            clf.fit(X, y, groups=groups)
        save_fit(args, clf.set_params(verbose=0), names)
    tested = None if test is None else (test.images, test.labels, root / "test")
    print_fit(args, clf, tested)


def _refuse_links(split: Path, train: list[str], other: Path, test: list[str]) -> None:
    """Raise CommandError if an image of ``test/`` is one of ``train/``."""
    known = {_identity(split / file) for file in train}
    if any(_identity(other / file) in known for file in test):
        raise CommandError(
            f"{other} must not lead to images of {split}, got a link. An accuracy on "
            "training images tells of them."
        )


def _identity(file: Path) -> tuple[int, int]:
    state = file.stat()
    return state.st_dev, state.st_ino


def _report_empty_classes(folder: Path, names: list[str], labels: Any) -> None:
    """Warn the person who has the files, before anything is charged."""
    for place in sorted(set(range(len(names))) - {*labels.tolist()}):
        warn(
            f"{folder / names[place]} holds no image that was read. It stays a class, "
            "since folders are public: remove it everywhere if it is none."
        )


def _charge(clf: Any, n_units: int) -> str:
    """Return what the fit is going to cost, and whom."""
    from privfeat.core.accounting.calibration import DEFAULT_EPSILON
    from privfeat.core.accounting.rounding import rounded_down, rounded_up

    epsilon, ledger = clf.epsilon, clf.ledger
    if clf.noise_multiplier is not None:
        epsilon = clf.planned(n_units).epsilon
    epsilon = DEFAULT_EPSILON if epsilon is None else epsilon
    cost = f"epsilon = {rounded_up(epsilon)} at delta = {clf.delta:g}"
    if ledger is None:
        return f"this fit costs {cost}; no ledger is charged"
    budget = ledger.budget  # what is left of it takes minutes where records are sampled
    return (
        f"this fit costs {cost}, charged to {budget.dataset!r} (not again if it goes "
        "on from a checkpoint), whose whole budget is epsilon = "
        f"{rounded_down(budget.epsilon)}"
    )


def _parameters(args: argparse.Namespace) -> dict[str, Any]:
    """Return the constructor parameters for the options that were given."""
    from privfeat import DPSGDClassifier

    known = DPSGDClassifier().get_params()
    named = options.given(args, known)
    settings = parse_settings(args.set)
    twice = sorted(set(named) & set(settings))
    if twice:
        raise CommandError(f"--set must not repeat an option, got {twice[0]!r}.")
    check_known("DPSGDClassifier", settings, known)
    return named | settings
