"""``privfeat train``: train a whole network on images by DP-SGD.

Train a network on images with differential privacy, and save it with its privacy
statement. Images that take more than a gibibyte are read again as steps draw them.
Needs `pip install 'privfeat[train]'`. For example

    privfeat train --data IMAGES --model wrn_16_4 --epsilon 4 --out model
    --ledger private.ledger --dataset photos
"""

import warnings
from argparse import Namespace
from pathlib import Path
from typing import Any

from privfeat.cli.shared import (
    estimators,
    files,
    images,
    job,
    models,
    options,
    terminal,
)
from privfeat.cli.shared.terminal import CommandError, warn


def add_parser(verbs: Any) -> None:
    """Add this verb to the parser of the command."""
    parser = options.verb(verbs, run, images.options(), options.fitted(), job.options())
    add = parser.add_argument
    add(
        "--data",
        metavar="DIR",
        required=True,
        help="a folder with images train/CLASS/*, and test/ likewise if there is a "
        "test set, which --test-is-public alone reads; or with CLASS/*. Or an HDF5 "
        "file with train/images, train/labels, likewise test/, and class_names; "
        "train/groups says whose each image is. The names of the classes become public",
    )
    options.add_public_test(parser, "of test/ in DIR")
    add(
        "--groups",
        metavar="FILE",
        help="protect all images of a user together; --batch counts users. A CSV file "
        "with the columns file (the path of an image below DIR) and user, as for "
        "privfeat-extract",
    )
    options.add_privacy(parser, linear=False)
    add = options.add_training(parser)
    folder = "keep checkpoints there, and go on from them if the fit was interrupted"
    add("--checkpoints", dest="checkpoint_dir", metavar="DIR", help=folder)
    every = "steps between checkpoints (default 100)"
    add("--checkpoint-every", metavar="STEPS", type=int, help=every)
    restore = "do not fit: save in --out the model of the finished fit of --checkpoints"
    add("--restore", action="store_true", help=restore)


def run(args: Namespace) -> None:
    """Train, save, and print accuracy and statement."""
    if args.restore and args.distributed:
        raise CommandError("--restore must run in one process, without --distributed.")
    written = {"--out": args.out, "--checkpoints": args.checkpoint_dir}
    images.check_outside(args.data, written)
    with job.joined_job(args), models.model_folder(args) as begun:
        _run(args, begun)


def _run(args: Namespace, begun: list[Any]) -> None:
    """Train a network on the images of a command, and save it."""
    from privfeat import DPSGDClassifier, persistence
    from privfeat.data.users import read_users

    params = estimators.parameters(args) | {"ledger": files.open_ledger(args)}
    if Path(str(params.get("weights"))).is_dir():
        params["weights"] = _parameters_of(params["weights"])
    warnings.filterwarnings("always", message="skipped ")
    below, (X, y, names, paths), groups, test = images.read_data(args)
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
    persistence.written_before(clf, names)
    begun.append(clf)
    if args.restore:
        clf.restore()
        first = True
    else:
        with job.all_of_job(args) as first:
            terminal.progress(args, f"training {args.model} on {args.data} ...")
            # a fit that goes on was charged by the command that began it
            asked = None if args.checkpoint_dir is not None else params["ledger"]
            with terminal.charged_within(asked):
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
    if not model.privacy_.private:
        warn(
            f"weights are of a network without privacy, {folder}: nothing covers what "
            "they tell of its records. Pass them only if these are public."
        )
    found: dict[str, Any] = model.parameters_
    return found
