"""``privfeat evaluate``: measure a saved model on private test records, for a budget.

Print accuracy, recall, and with scores ROC and calibration, or of a regressor R squared
and mean errors, each with an interval that holds the noise and the sampling, and what
they cost the test records. Write them beside the model, where `report` finds them.
For example

    privfeat evaluate --model results/model --test private.h5:test --epsilon 0.5
    --ledger private.ledger --dataset test-photos
"""

import json
from argparse import Namespace
from pathlib import Path
from typing import Any

from privfeat._types import ADJACENCIES
from privfeat.cli.shared import files, options, tables, terminal
from privfeat.cli.shared.saved import last_of, load_for_rows
from privfeat.cli.shared.terminal import CommandError
from privfeat.cli.shared.tested import tested_records
from privfeat.cli.shared.users import users_of

_BUDGET = ("epsilon", "delta", "adjacency", "random_state")


def add_parser(verbs: Any) -> None:
    """Add this verb to the parser of the command."""
    parser = options.verb(verbs, run, options.AS_JSON)
    add = parser.add_argument
    model = "a folder that `fit` or `train` wrote; evaluation.json is written into it"
    add("--model", metavar="DIR", required=True, help=model)
    rows = (
        "private rows (split test if there are several) that the model was not fitted "
        "on; of a network of images, a folder with CLASS/*.png"
    )
    add("--test", metavar="FILE[:SPLIT]", required=True, help=rows)
    unseen = "the rows are in a split train, but not one that DIR was fitted on"
    add("--unseen", action="store_true", help=unseen)
    bounds = (
        "of a regressor: lowest and highest target, known to everyone (default: those "
        "that the model or its table was given)"
    )
    add("--target-bounds", nargs=2, type=float, metavar=("LOW", "HIGH"), help=bounds)
    alone = "spend all on accuracy, recall and confusion: no ROC, no calibration"
    add("--no-scores", action="store_true", help=alone)
    level = "of each interval by itself (default 0.95)"
    add("--confidence", type=float, default=0.95, help=level)
    again = "replace an evaluation that is in DIR; its budget stays spent"
    add("--overwrite", action="store_true", help=again)
    who = (
        "protect all rows of a user together, by the groups that FILE holds; of a "
        "folder of images, FILE.csv says whose each is, as for `train`"
    )
    add("--groups", nargs="?", const=True, metavar="FILE.csv", help=who)
    each = "protect each row on its own; must be said where FILE holds groups"
    add("--no-groups", dest="groups", action="store_const", const=False, help=each)
    whose = "of a table: protect all rows of a user together, by this column"
    add("--users", metavar="COLUMN", help=whose)
    size = (
        "with --groups or --users: at most so many records of a user count; the noise "
        "is so many times as large, so take 1 or 2, whatever `fit` had"
    )
    add("--max-group-size", type=int, help=size)
    add = parser.add_argument_group("privacy").add_argument
    add("--epsilon", type=float, help="budget of the test records (default 1)")
    add("--delta", type=float, default=1e-5, help="with --epsilon (default 1e-5)")
    add("--adjacency", choices=ADJACENCIES, default="add_remove", help="as for `fit`")
    seed = "reproducible noise, for tests and published experiments: not private"
    add("--seed", dest="random_state", metavar="SEED", type=int, help=seed)
    options.add_ledger(parser)


def run(args: Namespace) -> None:
    """Measure, print, and keep; whatever can fail early does so before the charge."""
    from privfeat.persistence.model_folder import read_document

    checksum = read_document(args.model)["sha256"]  # before it is loaded
    model = load_for_rows(args.model)
    refusal = (
        f"--model must be evaluated by one command at a time, got {args.model!r}, "
        f"which another evaluates now. Wait for it. {terminal.NOTHING_CHARGED}"
    )
    with files.alone(Path(args.model), ".evaluation.lock", refusal):
        _evaluate(args, model, checksum)


def _evaluate(args: Namespace, model: Any, checksum: str) -> None:
    """Evaluate a model on private records, for a charge, and write the result."""
    from privfeat import persistence
    from privfeat.metrics import private_evaluation
    from privfeat.metrics.files import evaluation_json, save_evaluation
    from privfeat.persistence.model_folder import EVALUATION

    if (Path(args.model) / EVALUATION).exists() and not args.overwrite:
        raise CommandError(
            f"--model must not hold an evaluation, got {args.model!r}. Pass "
            "--overwrite to replace it; its budget stays spent."
        )
    made, ledger = persistence.load_origin(args.model), files.open_ledger(args)
    names = persistence.load_class_names(args.model)
    tested = Path(args.test).name.encode(errors="replace").decode()  # JSON is UTF-8
    with terminal.charged_within(ledger):
        with files.output_folder(args.model):
            pass  # it can be written
        X, y, split = tested_records(args, model, made, public=False)
        groups = users_of(args, split, args.test, args.max_group_size)
        of_users = getattr(getattr(model, "privacy_", None), "unit", None) == "user"
        if of_users and groups is None and args.groups is None:
            terminal.warn(
                "the model protects users, but each test record is protected on its "
                "own. Name the users: by --users COLUMN of a table, --groups of a "
                "feature file, or --groups FILE.csv of a folder of images."
            )
        found = private_evaluation(
            model,
            X,
            y,
            groups=groups,
            target_bounds=_target_bounds(args, model),
            scores=not args.no_scores,
            ledger=ledger,
            **options.given(args, (*_BUDGET, "max_group_size", "confidence")),
        )
    # either may fail, the other must not be lost with it: it has cost a budget
    path, problem = None, None
    try:
        path = save_evaluation(found, args.model, test=tested, checksum=checksum)
    except (OSError, ValueError) as error:  # ValueError: it is another model now
        problem = getattr(error, "strerror", None) or str(error).rstrip(".")
    told = json.dumps(evaluation_json(found), indent=2) if args.json else None
    print(f"{found.shown(names)}\n{found.privacy}" if told is None else told)
    if path is None:
        raise CommandError(
            f"the evaluation could not be saved in {args.model} ({problem}). What it "
            "found is printed above. Its budget is spent."
        )
    if told is None:
        print(f"{path} written")


def _target_bounds(args: Namespace, model: Any) -> tuple[float, float] | None:
    """Return the bounds of the target that are given, or that a regressor knows."""
    if args.target_bounds is not None:
        return (args.target_bounds[0], args.target_bounds[1])
    declared = tables.declared_of(args.model)
    if hasattr(model, "classes_"):
        return None
    if declared is not None and declared.target is not None:
        return declared.target_bounds
    own: tuple[float, float] | None = getattr(last_of(model), "target_bounds", None)
    return own
