"""``privfeat train``: train a whole network on a folder of images and save it."""

import argparse
import sys
import warnings
from pathlib import Path
from typing import Any

from privfeat._types import ADJACENCIES
from privfeat.cli.common import (
    CommandError,
    interrupt_explained,
    ledger_parameter,
    output_folder,
    parse_settings,
    progress,
    refuse_to_replace,
    warn,
)


def add_parser(verbs: Any) -> None:
    """Add this verb to the parser of the command."""
    parser = verbs.add_parser(
        "train",
        help="train a whole network on images by DP-SGD",
        description="Train a network on a folder of images with differential "
        "privacy, and save it with its privacy statement. Needs `pip install "
        "'privfeat[train]'`.",
    )
    parser.set_defaults(run=run)
    parser.add_argument(
        "--data",
        metavar="DIR",
        required=True,
        help="a folder with images train/CLASS/*, and test/ likewise if there is a "
        "test set; or with CLASS/*. The names of the classes become public",
    )
    parser.add_argument(
        "--model", default="wrn_16_4", help="name of a network (default wrn_16_4)"
    )
    parser.add_argument("--out", metavar="DIR", required=True, help="where to save")
    parser.add_argument(
        "--overwrite", action="store_true", help="replace a model that is there"
    )
    parser.add_argument(
        "--image-size", type=int, default=32, help="side of the images (default 32)"
    )
    parser.add_argument(
        "--skip-bad",
        action="store_true",
        help="list images that cannot be decoded and go on, instead of stopping",
    )
    parser.add_argument("--grey", action="store_true", help="one channel, no colours")
    group = parser.add_argument_group("privacy")
    budget = group.add_mutually_exclusive_group()
    budget.add_argument("--epsilon", type=float, help="budget (default 1)")
    budget.add_argument("--noise-multiplier", type=float, help="noise level instead")
    group.add_argument("--delta", type=float, help="default 1e-5")
    group.add_argument("--adjacency", choices=ADJACENCIES)
    group.add_argument(
        "--seed", type=int, help="reproducible noise, for tests: not private"
    )
    group.add_argument(
        "--ledger",
        metavar="LEDGER",
        help="charge the fit to a ledger, as `privfeat budget` makes one",
    )
    group.add_argument(
        "--dataset", metavar="NAME", help="with --ledger: whose budget is charged"
    )
    group.add_argument(
        "--groups",
        metavar="FILE",
        help="protect all images of a user together: a CSV file whose columns file and "
        "user name every image, by its path below DIR, and whose it is; the same table "
        "as for privfeat-extract",
    )
    group.add_argument(
        "--max-group-size",
        type=int,
        help="with --groups: how many images of a user count; --batch counts users",
    )
    training = parser.add_argument_group("training")
    training.add_argument("--epochs", type=float, help="default 10")
    training.add_argument(
        "--batch",
        type=float,
        help="expected size (default 256), at most the images, or users, there are",
    )
    training.add_argument("--learning-rate", type=float, help="of the optimizer")
    training.add_argument(
        "--clip-norm", type=float, help="longest gradient of one image"
    )
    training.add_argument(
        "--checkpoints",
        metavar="DIR",
        help="keep checkpoints there, and go on from them if the fit was interrupted",
    )
    training.add_argument(
        "--checkpoint-every",
        metavar="STEPS",
        type=int,
        help="steps between checkpoints (default 100)",
    )
    training.add_argument(
        "--restore",
        action="store_true",
        help="do not fit: save in --out the model of the finished fit of --checkpoints",
    )
    training.add_argument(
        "--set",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="any other parameter of DPSGDClassifier, such as ema_decay=0.999",
    )
    parser.add_argument("--quiet", action="store_true", help="print nothing")


def run(args: argparse.Namespace) -> None:
    """Train, save, and print accuracy and statement."""
    try:
        with interrupt_explained() as begun:
            _run(args, begun)
    except KeyboardInterrupt as error:
        if args.checkpoints is not None:
            error.add_note(
                "The same command goes on from the last checkpoint, if there is one."
            )
        raise


def _run(args: argparse.Namespace, begun: list[Any]) -> None:
    from privfeat import DPSGDClassifier, persistence
    from privfeat.data.users import read_users
    from privfeat.trainers import read_folder

    refuse_to_replace(args)
    ledger = ledger_parameter(args)
    root = Path(args.data)
    if not root.is_dir():
        raise CommandError(f"--data must be a folder, got {args.data!r}.")
    options = {"size": args.image_size, "mode": "L" if args.grey else "RGB"}
    split = root / "train"
    warnings.filterwarnings("always", message="skipped ")
    options["skip_bad"] = args.skip_bad
    below = "train/" if split.is_dir() else ""
    X, y, names, files = read_folder(root / below, **options)
    _report_empty_classes(root / below, names, y)
    test = None
    if split.is_dir() and (root / "test").is_dir():
        if split.samefile(root / "test"):
            raise CommandError(
                f"test/ must not be train/, got one folder for both in {args.data!r}. "
                "An accuracy on training images tells of them."
            )
        test = read_folder(root / "test", **options)
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
    params = _parameters(args) | ledger | {"classes": range(len(names))}
    unknown = sorted(set(params) - set(DPSGDClassifier().get_params()))
    if unknown:
        raise CommandError(f"DPSGDClassifier has no parameter {unknown[0]!r}.")
    bar = sys.stderr.isatty() and not args.quiet
    clf = DPSGDClassifier(**({"verbose": int(bar)} | params))
    begun.append(clf)
    persistence.written_before(clf, names)
    with output_folder(args.out) as folder:
        if args.restore:
            clf.restore()
        else:
            if not args.quiet:
                n_units = len(y)
                if groups is not None and args.max_group_size is not None:
                    n_units = len(set(groups))
                print(_charge(clf, n_units), flush=True)
            progress(args, f"training {args.model} on {args.data} ...")
            clf.fit(X, y, groups=groups)
        persistence.save(
            clf.set_params(verbose=0),
            folder,
            overwrite=args.overwrite,
            class_names=names,
        )
    if args.quiet:
        return
    print(f"model saved in {args.out}")
    if test is not None:
        accuracy = clf.score(test.images, test.labels)
        print(
            f"test accuracy {accuracy:.4f} on {root / 'test'}\n"
            "  computed on the test labels: these must be public, or be accounted for "
            "separately; the statement below does not cover them"
        )
    print(clf.privacy_)


def _report_empty_classes(folder: Path, names: list[str], labels: Any) -> None:
    """Warn the person who has the files, before anything is charged."""
    for place in sorted(set(range(len(names))) - {*labels.tolist()}):
        warn(
            f"{folder / names[place]} holds no image that was read. It stays a class, "
            "since folders are public: remove it everywhere if it is none."
        )


def _charge(clf: Any, n_units: int) -> str:
    """Return what the fit is going to cost, and whom."""
    from privfeat.core.calibration import DEFAULT_EPSILON
    from privfeat.core.rounding import rounded_down, rounded_up

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
    given = {
        "model": args.model,
        "epsilon": args.epsilon,
        "noise_multiplier": args.noise_multiplier,
        "delta": args.delta,
        "adjacency": args.adjacency,
        "random_state": args.seed,
        "epochs": args.epochs,
        "expected_batch_size": args.batch,
        "learning_rate": args.learning_rate,
        "clip_norm": args.clip_norm,
        "max_group_size": args.max_group_size,
        "checkpoint_dir": args.checkpoints,
        "checkpoint_every": args.checkpoint_every,
    }
    named = {name: value for name, value in given.items() if value is not None}
    settings = parse_settings(args.set)
    twice = sorted(set(named) & set(settings))
    if twice:
        raise CommandError(f"--set must not repeat an option, got {twice[0]!r}.")
    return named | settings
