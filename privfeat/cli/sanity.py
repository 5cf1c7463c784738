"""``privfeat sanity``: test whether a fit learns what it must not.

There are two tests, on data that the command makes. Random labels: a fit may remember
no more of them than its stated cost allows. Noise images with a patch: it must not
learn the patch of one user's images, and a classifier should learn one that many have
(van der Veen et al. 2018). A correct fit fails at most once in 1,000 runs, unless
--rate says otherwise. For example

    privfeat sanity --estimator DPLeastSquares --epsilon 1
"""

import json
import math
from argparse import Namespace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privfeat._checks import require
from privfeat.cli.shared import estimators, files, options, terminal
from privfeat.cli.shared.terminal import CommandError

if TYPE_CHECKING:
    from privfeat.audit import SanityResult


def add_parser(verbs: Any) -> None:
    """Add this verb to the parser of the command."""
    parser = options.verb(verbs, run, options.AS_JSON, options.tested())
    add = parser.add_argument
    n_users = "users with one image each, or ten with max_group_size (default 1000)"
    add("--n-users", type=int, default=1000, help=n_users)
    n_samples = "random labels of a fit (default 100)"
    add("--n-samples", type=int, default=100, help=n_samples)
    add("--n-patterns", type=int, default=1, help="patterns of a fit (default 1)")
    add("--n-fits", type=int, help="fits of each test (default 30 and 10)")
    rate = "false alarms of each of the two that must pass (default 0.0005)"
    add("--rate", type=float, default=5e-4, help=rate)
    search = "find the smallest noise multiplier that passes the random labels"
    add("--smallest-noise", action="store_true", help=search)
    add("--plots", metavar="FOLDER", help="write a PNG of each test")
    options.add_privacy(parser)


def run(args: Namespace) -> None:
    """Print a line for each test; fail if something was learned that must not be."""
    from sklearn.base import is_regressor

    from privfeat import audit

    if args.plots is not None:
        require("--plots", "matplotlib", extra="plot")
    params, basis = estimators.parameters(args), estimators.load_tested(args)
    estimator = estimators.make_estimator(basis, params)
    # two tests must not fail: together at most once in 1,000 runs of a correct fit
    rates: dict[str, Any] = {"rate": args.rate} | options.given(args, ("n_fits",))
    of_labels: dict[str, Any] = {"n_samples": args.n_samples}
    of_images: dict[str, Any] = {"n_users": args.n_users, "n_patterns": args.n_patterns}
    shape = estimators.shape_of_image(args, basis)
    if len(shape) == 3:
        side, channels = min(shape[:2]), shape[2]
        of_labels["n_features"] = (side, side, channels)
        of_images |= {"side": side, "patch": side // 2, "channels": channels}
    elif hasattr(basis, "steps"):  # whose first step may know each column
        width = int(basis.n_features_in_)
        side = min(14, math.isqrt(width))
        if side < 2:
            raise CommandError(
                "--model must take rows of at least 4 numbers to be tested, got a "
                f"pipeline for {width}. Name its last step: --estimator."
            )
        of_labels["n_features"] = width
        of_images |= {"side": side, "patch": side // 2, "n_features": width}
    labels: Any = partial(audit.random_label_test, **rates, **of_labels)
    pattern: Any = partial(audit.pattern_test, **rates, **of_images)
    results = []
    tests = [("random labels", labels), ("one user's pattern", pattern)]
    if not is_regressor(estimator):  # least squares shrinks what a quarter has
        tests.append(("everyone's pattern", partial(pattern, spread="all_users")))
    for name, test in tests:
        terminal.progress(args, f"{name} ...")
        results.append(test(estimator))
        if not args.json:
            print(results[-1], flush=True)
    if args.plots is not None:
        folder = Path(args.plots)
        folder.mkdir(parents=True, exist_ok=True)
        for result in results:
            name = result.name.replace(" ", "-")
            files.write_file(folder / f"{name}.png", result.plot())
    smallest = None
    if args.smallest_noise:
        terminal.progress(args, "searching for the smallest noise ...")
        found = audit.smallest_noise(
            lambda noise: estimators.make_estimator(
                estimator, {"noise_multiplier": noise}
            ),
            partial(labels, mu=0.0, n_fits=args.n_fits or 10),
        )
        smallest = found.noise_multiplier
        if not args.json:
            print(f"smallest noise multiplier that passes: {smallest:.3g}")
    passed = all(result.passed for result in results if result.must_stay_below)
    if args.json:
        told = {"passed": passed, "tests": [*map(_told, results)]}
        print(json.dumps(told | {"smallest_noise": smallest}, indent=2))
    if not passed:
        raise CommandError("a fit learned more than its stated cost allows.")


def _told(result: "SanityResult") -> dict[str, Any]:
    """Return the result of a test as the JSON document has it."""
    names = ("name", "passed", "mean", "limit", "margin", "chance", "must_stay_below")
    return {name: getattr(result, name) for name in names} | {"values": result.values}
