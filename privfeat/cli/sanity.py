"""``privfeat sanity``: whether a fit learns what it must not."""

import argparse
from functools import partial
from pathlib import Path
from typing import Any

from privfeat._extras import require
from privfeat.cli.common import (
    ESTIMATORS,
    CommandError,
    add_budget_options,
    budget_parameters,
    make_estimator,
    parse_settings,
    progress,
)


def add_parser(verbs: Any) -> None:
    """Add this verb to the parser of the command."""
    parser = verbs.add_parser(
        "sanity",
        help="random labels and a user's pattern, which must not be learned",
        description="Fit random labels, which must not be remembered, and noise "
        "images with a white patch in those of one user, which must not be learned, or "
        "of many, which should be (van der Veen et al. 2018). Makes its own data.",
    )
    parser.set_defaults(run=run)
    parser.add_argument("--estimator", required=True, choices=ESTIMATORS)
    add_budget_options(parser)
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="any other parameter of the estimator; may be repeated",
    )
    parser.add_argument(
        "--n-users", type=int, default=1000, help="of ten images each (default 1000)"
    )
    parser.add_argument(
        "--calibrate",
        action="store_true",
        help="find the smallest noise multiplier that passes the random labels",
    )
    parser.add_argument("--plots", metavar="FOLDER", help="write a PNG of each test")
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr")


def run(args: argparse.Namespace) -> None:
    """Print a line for each test; fail if something was learned that must not be."""
    from privfeat import audit

    if args.plots is not None:
        require("--plots", "matplotlib", extra="plot")
    params = budget_parameters(args) | parse_settings(args.set)
    estimator = make_estimator(args.estimator, **params)
    pattern = partial(audit.pattern_test, n_users=args.n_users)
    results = []
    for name, test in (
        ("random labels", audit.random_label_test),
        ("one user's pattern", pattern),
        ("everyone's pattern", partial(pattern, spread="all_users")),
    ):
        progress(args, f"{name} ...")
        results.append(test(estimator))
        print(results[-1], flush=True)
    if args.plots is not None:
        folder = Path(args.plots)
        folder.mkdir(parents=True, exist_ok=True)
        for result in results:
            file = folder / f"{result.name.replace(' ', '-')}.png"
            file.write_bytes(result.plot())
            print(f"{file} written")
    if args.calibrate:
        progress(args, "calibrating ...")
        others = {"epsilon", "rho", "noise_multiplier"}
        rest = {name: value for name, value in params.items() if name not in others}
        found = audit.calibrate_noise(
            lambda noise: make_estimator(
                args.estimator, **rest, noise_multiplier=noise
            ),
            audit.random_label_test,
        )
        print(f"smallest noise multiplier that passes: {found.noise_multiplier:.3g}")
    if not all(result.passed for result in results if result.must_stay_below):
        raise CommandError("it learned what it must not. Pass a smaller epsilon.")
