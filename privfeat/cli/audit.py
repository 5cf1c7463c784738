"""``privfeat audit``: test whether an estimator keeps its claim, on data that may leak.

By default on synthetic rows of the stated shape; with ``--public`` on a feature file
that everyone may see.
"""

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from privfeat._extras import require
from privfeat.cli import options
from privfeat.cli.common import (
    CommandError,
    load_tested,
    open_split,
    parse_settings,
    progress,
    single_labels,
    tested_estimator,
    write_file,
)

_NOTICE = """\
Throw-away fits: nothing that was fitted is kept, and none of it may be published. The
figures come from exact data and no budget is charged: no private data may enter."""
# A public file that is read whole, since canaries are planted among its rows.
_MOST_ROWS = 20_000
# More canaries than records to hide among would be told by their number.
_MOST_CANARIES = 1000


def add_parser(verbs: Any) -> None:
    """Add this verb to the parser of the command."""
    parser = verbs.add_parser(
        "audit",
        parents=[options.tested(), options.settings(), options.quiet()],
        help="test whether an estimator keeps its privacy claim",
        description="Test an estimator and budget: replay on neighbouring data, noise, "
        "a lower bound on epsilon from planted records, and membership inference. The "
        "figures are exact: they are NOT private, and are NOT charged to any budget. "
        "By default the rows are synthetic; --public must name data that everyone may "
        "see, never the private data.",
    )
    parser.set_defaults(run=run)
    add = parser.add_argument
    add(
        "--public",
        metavar="FILE[:SPLIT]",
        help="PUBLIC rows to audit on, instead of synthetic ones",
    )
    add("--n-samples", type=int, help="of synthetic rows (default 1000)")
    add(
        "--n-features",
        type=int,
        help="of synthetic rows (default 200, or those of the model)",
    )
    add("--n-classes", type=int, help="(default 10, or as FILE names)")
    add("--n-canaries", type=int, help="planted records (default: as many as features)")
    add(
        "--confidence",
        type=float,
        default=0.95,
        help="of the lower bound (default 0.95)",
    )
    add("--out", metavar="FILE.json", help="write the results, for `privfeat report`")
    options.add_privacy(parser)


def run(args: argparse.Namespace) -> None:
    """Run all audits and print a table; fail if one of them finds a fault."""
    import numpy as np

    from privfeat import audit
    from privfeat.audit._throwaway import throw_away, without_privacy_warnings

    # what comes before it takes half a minute
    require("a one-run audit", "jax_privacy", extra="audit")
    model = load_tested(args.model)
    X, y, n_classes = _data(args, model)
    params = options.given(args, options.PRIVACY) | parse_settings(args.set)
    estimator = tested_estimator(args, model, params | {"classes": range(n_classes)})
    name = type(estimator).__name__
    print(_NOTICE)
    shape = " x ".join(map(str, X.shape))
    source = "synthetic rows" if args.public is None else Path(args.public).name
    data = f"{source}: {shape}, {n_classes} classes"
    print(f"{name} on {data}\n")
    progress(args, "replaying neighbours ...")
    longest = int(np.argmax(np.linalg.norm(X.reshape(len(X), -1), axis=1)))
    size = getattr(estimator, "max_group_size", None)
    users = None if size is None else np.arange(len(X)) // size
    whose: dict[str, Any] = {"record": longest}
    if users is not None:
        whose = {"user": users[longest], "groups": users}
    replayed = audit.replay(estimator, X, y, **whose)
    print(
        f"Replay without the {'user of the ' if size else ''}longest row\n{replayed}\n"
    )
    noise = audit.check_noise(estimator, X, y, groups=users)
    print(f"Noise\n{noise}\n")
    progress(args, "planting canaries ...")
    n_canaries = args.n_canaries or max(10, min(X[0].size, _MOST_CANARIES))
    bound = audit.audit_one_run(
        estimator, X, y, groups=users, n_canaries=n_canaries, confidence=args.confidence
    )
    print(f"One run with canaries\n{bound}\n")
    half = len(X) // 2 // (size or 1) * (size or 1)  # no user is on both sides
    batch = getattr(estimator, "expected_batch_size", None)
    few = {"expected_batch_size": batch and min(batch, half // (size or 1))}
    half_groups = {} if users is None else {"groups": users[:half]}
    with without_privacy_warnings():
        fitted = throw_away(estimator, **few).fit(X[:half], y[:half], **half_groups)
    told = audit.membership(fitted, (X[:half], y[:half]), (X[half:], y[half:]))
    print(f"Membership inference (half of the rows were members)\n{told}\n")
    verdicts = {"replay": replayed.ok, "noise": noise.ok, "one run": bound.ok}
    for key, ok in verdicts.items():
        print(f"{key:<10}{_verdict(ok)}")
    if args.out is not None:
        content = {
            "audited": repr(estimator),
            "data": data,
            "verdict": {key: _verdict(ok) for key, ok in verdicts.items()},
            "replay": asdict(replayed),
            "noise": asdict(noise),
            "one_run": asdict(bound),
            "membership": asdict(told),
        }
        write_file(args.out, f"{json.dumps(content, indent=2)}\n".encode())
    if not all(verdicts.values()):
        raise CommandError("the audit found a fault. Do not use this estimator.")


def _verdict(ok: bool) -> str:
    return "no fault found" if ok else "FAULT"


def _data(args: argparse.Namespace, model: Any) -> tuple[Any, Any, int]:
    import numpy as np

    if args.public is None:
        shape, n_classes = (200,), 10
        if model is not None:
            shape = getattr(model, "input_shape_", None) or (model.n_features_in_,)
            n_classes = len(model.classes_)
        if args.n_features:
            shape = (args.n_features,)
        return _synthetic(args.n_samples or 1000, shape, args.n_classes or n_classes)
    if args.n_samples is not None or args.n_features is not None:
        raise CommandError("--n-samples and --n-features must not go with --public.")
    split = open_split(args.public, preferred="train")
    labels = single_labels(split, args.public)
    if len(labels) > _MOST_ROWS:
        raise CommandError(
            f"--public must have at most {_MOST_ROWS} rows, got {len(labels)}. Take a "
            "part of it."
        )
    names = split.class_names
    n_classes = args.n_classes or (0 if names is None else len(names))
    if not n_classes > 1:
        raise CommandError(f"{args.public} names no classes. Pass --n-classes.")
    # Files may be sorted by class, and halves are compared.
    order = np.argsort(np.arange(len(labels)) % 2, kind="stable")
    X = np.asarray(split.X.read(0, len(labels)))
    return X[order], np.asarray(labels)[order], n_classes


def _synthetic(
    n_samples: int, shape: tuple[int, ...], n_classes: int
) -> tuple[Any, Any, int]:
    """Return a Gaussian cluster for each class."""
    from privfeat._checks import check_int
    from privfeat._random import make_rng

    check_int("n_samples", n_samples, low=10)
    for size in shape:
        check_int("n_features", size, low=1)
    check_int("n_classes", n_classes, low=2)
    rng = make_rng(None)
    y = rng.integers(n_classes, size=n_samples)
    centers = rng.normal(size=(n_classes, *shape))
    return centers[y] + rng.normal(size=(n_samples, *shape)), y, n_classes
