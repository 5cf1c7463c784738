"""``privfeat audit``: test whether an estimator keeps its privacy claim.

Test an estimator and budget: replay on neighbouring data, noise, a lower bound on
epsilon from planted records, and membership inference. The figures are exact: they are
NOT private, and are NOT charged to any budget. By default the rows are synthetic;
--public must name data that everyone may see, never the private data. For example

    privfeat audit --estimator DPLeastSquares --epsilon 1 --out audit.json
"""

import json
from argparse import Namespace
from dataclasses import asdict
from pathlib import Path
from typing import Any

from privfeat._checks import require
from privfeat.cli.shared import estimators, files, options, terminal
from privfeat.cli.shared.terminal import CommandError

_NOTICE = """\
Throw-away fits: nothing that was fitted is kept, and none of it may be published. The
figures come from exact data and no budget is charged: no private data may enter."""
# A public file that is read whole, since canaries are planted among its rows.
_MOST_ROWS = 20_000
# A verdict that an estimator must not be used: wrong in one of a million runs at most.
_SURE = 0.999999
# More canaries than records to hide among would be found by their number.
_MOST_CANARIES = 1000
_MEMBERSHIP = """Membership inference (half of the rows were members; of few rows chance
alone may take a figure over its bound)"""


def add_parser(verbs: Any) -> None:
    """Add this verb to the parser of the command."""
    parser = options.verb(verbs, run, options.tested())
    add = parser.add_argument
    public = "PUBLIC rows to audit on, instead of synthetic ones"
    add("--public", metavar="FILE[:SPLIT]", help=public)
    add("--n-samples", type=int, help="number of synthetic rows (default 1000)")
    n_features = "features of a synthetic row (default 200, or as the model has)"
    add("--n-features", type=int, help=n_features)
    n_classes = "number of classes (default 10, or as FILE names)"
    add("--n-classes", type=int, help=n_classes)
    add("--n-canaries", type=int, help="planted records (default: as many as features)")
    level = "of the lower bound: how rarely it calls a sound estimator faulty"
    add("--confidence", type=float, default=_SURE, help=f"{level} (default {_SURE})")
    add("--out", metavar="FILE.json", help="write the results, for `privfeat report`")
    options.add_privacy(parser)


def run(args: Namespace) -> None:
    """Run all audits and print a table; fail if one of them finds a fault."""
    import numpy as np

    from privfeat import audit
    from privfeat.audit.scores import target_levels
    from privfeat.estimation.bases import described

    # what comes before it takes half a minute
    require("a one-run audit", "jax_privacy", extra="audit")
    basis = estimators.load_tested(args)
    X, y, n_classes = _data(args, basis)
    params = estimators.parameters(args)
    if n_classes is not None:
        params |= {"classes": range(n_classes)}
    estimator = estimators.make_estimator(basis, params)
    if n_classes is None and args.public is None:
        y = target_levels(estimator, 2)[y]
    print(_NOTICE)
    source = "synthetic rows" if args.public is None else Path(args.public).name
    told = "targets" if n_classes is None else f"{n_classes} classes"
    data = f"{source}: {' x '.join(map(str, X.shape))}, {told}"
    print(f"{type(estimator).__name__} on {data}\n")
    size = getattr(estimator, "max_group_size", None)
    users = None if size is None else np.arange(len(X)) // size

    terminal.progress(args, "replaying neighbours ...")
    longest = int(np.argmax(np.linalg.norm(X.reshape(len(X), -1), axis=1)))
    left_out = {"record": longest} if users is None else {"user": users[longest]}
    replayed = audit.replay(estimator, X, y, groups=users, **left_out)
    whose = "" if users is None else "user of the "
    print(f"Replay without the {whose}longest row\n{replayed}\n")
    noise = audit.check_noise(estimator, X, y, groups=users)
    print(f"Noise\n{noise}\n")

    terminal.progress(args, "planting canaries ...")
    n_canaries = args.n_canaries or max(10, min(X[0].size, _MOST_CANARIES))
    bound = audit.audit_one_run(
        estimator, X, y, groups=users, n_canaries=n_canaries, confidence=args.confidence
    )
    print(f"One run with canaries\n{bound}\n")
    found = _membership(estimator, X, y, users)
    print(f"{_MEMBERSHIP}\n{found}\n")

    results: dict[str, Any] = {"replay": replayed, "noise": noise, "one_run": bound}
    verdicts = {
        name.replace("_", " "): "no fault found" if result.ok else "FAULT"
        for name, result in results.items()
    }
    for name, verdict in verdicts.items():
        print(f"{name:<10}{verdict}")
    if args.out is not None:
        content = {"audited": described(estimator), "data": data, "verdict": verdicts}
        for name, result in (results | {"membership": found}).items():
            content[name] = asdict(result)
        files.write_file(args.out, f"{json.dumps(content, indent=2)}\n".encode())
    if "FAULT" in verdicts.values():
        raise CommandError("the audit found a fault. Do not use this estimator.")


def _membership(estimator: Any, X: Any, y: Any, users: Any) -> Any:
    """Return the result of the attack on a fit of half of the rows."""
    from privfeat import audit
    from privfeat.audit.copies import fit_copy

    half = len(X) // 2
    data: tuple[Any, ...] = (X[:half], y[:half])
    n_units = half
    if users is not None:
        n_units = users[half]  # no user is on both sides
        half = n_units * estimator.max_group_size
        data = (X[:half], y[:half], users[:half])
    batch = getattr(estimator, "expected_batch_size", None)
    batch = min(batch, n_units) if isinstance(batch, int | float) else batch
    model = fit_copy(estimator, *data, expected_batch_size=batch)
    return audit.membership(model, data[:2], (X[half:], y[half:]))


def _data(args: Namespace, basis: Any) -> tuple[Any, Any, int | None]:
    """Return rows, labels and the number of classes; ``basis`` may be a model.

    Of a regressor there are no classes: synthetic labels are which end a target has.
    """
    import numpy as np

    from privfeat.audit.scores import predicts_numbers

    numbers = predicts_numbers(basis)
    if numbers and args.n_classes is not None:
        raise CommandError("--n-classes must not be given for a regressor.")
    if args.public is None:
        shape = estimators.shape_of_image(args, basis)
        shape = shape or (getattr(basis, "n_features_in_", 200),)
        shape = (args.n_features,) if args.n_features else shape
        n_classes = args.n_classes or len(getattr(basis, "classes_", range(10)))
        X, y = _synthetic(args.n_samples or 1000, shape, 2 if numbers else n_classes)
        return X, y, None if numbers else n_classes
    if args.n_samples is not None or args.n_features is not None:
        raise CommandError("--n-samples and --n-features must not go with --public.")
    split = files.open_split(args.public, preferred="train", one_label=True)
    files.check_whole("--public", args.public, split)
    labels = split.y
    if len(labels) > _MOST_ROWS:
        raise CommandError(
            f"--public must have at most {_MOST_ROWS} rows, got {len(labels)}. Take a "
            "part of it."
        )
    n_classes = args.n_classes or len(split.class_names or ())
    if numbers and split.class_names is not None:
        raise CommandError(
            f"{args.public} must hold numbers to predict, not classes, for a regressor."
        )
    if not (numbers or n_classes > 1):
        raise CommandError(f"{args.public} names no classes. Pass --n-classes.")
    # Files may be sorted by class, and halves are compared.
    order = np.argsort(np.arange(len(labels)) % 2, kind="stable")
    X = np.asarray(split.X.read(0, len(labels)))
    return X[order], np.asarray(labels)[order], None if numbers else n_classes


def _synthetic(
    n_samples: int, shape: tuple[int, ...], n_classes: int
) -> tuple[Any, Any]:
    """Return a Gaussian cluster for each class."""
    from privfeat._checks import check_int
    from privfeat.audit.random_numbers import make_rng

    check_int("n_samples", n_samples, low=10)
    for size in shape:
        check_int("n_features", size, low=1)
    check_int("n_classes", n_classes, low=2)
    rng = make_rng(None)
    y = rng.integers(n_classes, size=n_samples)
    centers = rng.normal(size=(n_classes, *shape))
    return centers[y] + rng.normal(size=(n_samples, *shape)), y
