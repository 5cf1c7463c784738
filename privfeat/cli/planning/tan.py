"""``privfeat tan``: what settings of DP-SGD cost, and cheap simulations of them.

TAN is the total amount of noise of a DP-SGD training (Sander et al. 2023). Print what
the settings cost, how to simulate them cheaply on public data, and which other settings
have the same TAN. Read no private data. With --public, train simulations of those
settings, and say which is best. For example

    privfeat tan --n 50000 --batch-size 4096 --noise-multiplier 3 --steps 2500
    --learning-rate 4 --public IMAGES --model wrn_16_4 --out search.json
"""

import json
import math
from argparse import Namespace
from functools import partial
from pathlib import Path
from typing import Any

from privfeat.cli.shared import estimators, options, terminal
from privfeat.cli.shared.images import public_records
from privfeat.cli.shared.terminal import CommandError

_STEP_FACTORS = [0.125, 0.25, 1.0, 4.0]


def add_parser(verbs: Any) -> None:
    """Add this verb to the parser of the command."""
    parser = options.verb(verbs, run, options.AS_JSON, *options.SET_AND_QUIET)
    add = parser.add_argument
    add("--n", type=int, required=True, help="number of records")
    add("--batch-size", type=int, required=True, help="expected size of a batch")
    noise = "stddev of the noise over the clip norm"
    add("--noise-multiplier", type=float, required=True, help=noise)
    add("--steps", type=int, required=True, help="number of steps")
    add("--delta", type=float, help="default 1 / n")
    rate = "learning rate of this batch size (default 1)"
    add("--learning-rate", type=float, default=1.0, help=rate)
    factor = "how many times smaller the simulated batch is (default 64)"
    add("--factor", type=float, default=64.0, help=factor)
    steps = "times the steps, of settings with the same noise (default 0.125 0.25 1 4)"
    add("--step-factors", type=float, nargs="+", default=_STEP_FACTORS, help=steps)
    more = "show the cost with so many times the records (default 2)"
    add("--data-factor", metavar="F", type=float, default=2.0, help=more)
    add = parser.add_argument_group("search, on public data").add_argument
    data = "train on PUBLIC images, as `train --data` names them, or a feature file"
    add("--public", metavar="DATA", help=data)
    add("--model", default="mlp", help="the network, as for `train` (default mlp)")
    side = "side to which the images of a folder are resized (default 32)"
    add("--image-size", type=int, default=32, help=side)
    add("--repeats", type=int, default=1, help="trainings of each (default 1)")
    kept = "keep each result from when it is known; the same command goes on from there"
    add("--out", metavar="FILE.json", help=kept)


def run(args: Namespace) -> None:
    """Print everything that follows from the settings."""
    from privfeat.analysis.central_limit import central_limit_epsilon
    from privfeat.analysis.planning import delta_warnings
    from privfeat.analysis.tan import TAN, constant_tan_settings, simulate
    from privfeat.core.accounting.plan import ReleaseRecord

    if not 1 <= args.batch_size <= args.n:
        raise CommandError(
            f"--batch-size must be in [1, {args.n}], the records, got "
            f"{args.batch_size}."
        )
    delta = 1.0 / args.n if args.delta is None else args.delta
    settings = TAN(args.batch_size / args.n, args.noise_multiplier, args.steps)
    small = simulate(
        settings.sampling_prob, settings.noise_multiplier, args.steps, args.factor
    )
    more = settings.with_more_data(args.data_factor)
    less_delta = delta / args.data_factor
    noise, prob = settings.noise_multiplier, settings.sampling_prob
    steps = ReleaseRecord("gradient", args.steps, 1.0, noise, noise, prob)
    reference = (args.batch_size, args.steps, args.learning_rate)
    same = constant_tan_settings(*reference, step_factors=args.step_factors)
    searched = {} if args.public is None else _search(args, same)
    found = {
        "epsilon": settings.epsilon(delta),
        "epsilon_rdp": settings.epsilon(delta, accountant="rdp"),
        "epsilon_closed_form": settings.closed_form_epsilon(delta),
        "epsilon_central_limit": central_limit_epsilon([steps], delta),
        "delta": delta,
        "eta": settings.eta,
        "eta_step": settings.eta_step,
        "total_noise": settings.total_noise,
        "overcharge": settings.overcharge(delta),
        "simulation": {
            "batch_size": args.batch_size / args.factor,
            "noise_multiplier": small.settings.noise_multiplier,
            "n_iter": args.steps,
            "compute_saved": small.compute_saved,
            "epsilon": small.settings.epsilon(delta),
        },
        "same_noise": [choice._asdict() for choice in same],
        "more_data": {
            "factor": args.data_factor,
            "epsilon": more.epsilon(less_delta),
            "delta": less_delta,
        },
        **searched,
        "warnings": [*settings.warnings(), *delta_warnings(delta, args.n)],
    }
    print(json.dumps(found, indent=2) if args.json else _text(found))


def _search(args: Namespace, candidates: list[Any]) -> dict[str, Any]:
    """Train the simulations of what fits the records, and return what was found."""
    from privfeat import DPSGDClassifier
    from privfeat.analysis.tan import TAN
    from privfeat.analysis.tan_search import simulate_settings

    classes, data = public_records(args)
    # the rates of the candidates are for plain SGD
    params = {"model": args.model, "classes": range(classes), "optimizer": "sgd"}
    params |= estimators.parse_settings(args.set)
    results = simulate_settings(
        estimators.make_estimator(DPSGDClassifier(), params),
        [one for one in candidates if one.batch_size <= args.n],
        *data,
        noise_multiplier=args.noise_multiplier,
        factor=args.factor,
        n_repeats=args.repeats,
        path=None if args.out is None else Path(args.out),
        progress=partial(terminal.progress, args),
    )
    best = max(results, key=lambda one: one.accuracy).settings
    cost = TAN(best.batch_size / args.n, args.noise_multiplier, best.n_iter)
    delta = 1.0 / args.n if args.delta is None else args.delta
    return {
        "simulated": [
            {**one.settings._asdict(), "accuracies": one.accuracies} for one in results
        ],
        "best": {**best._asdict(), "epsilon": cost.epsilon(delta), "delta": delta},
    }


def _text(found: dict[str, Any]) -> str:
    """Return the result as text for a terminal."""
    small, more = found["simulation"], found["more_data"]
    warnings = "".join(f"warning: {warning}\n" for warning in found["warnings"])
    known = {row["n_iter"]: row["accuracies"] for row in found.get("simulated", ())}
    rows, best = "", ""
    for row in found["same_noise"]:
        scores = known.get(row["n_iter"], ())
        accuracy = f"{math.fsum(scores) / len(scores):.4f}" if scores else ""
        rows += (
            f"  {row['batch_size']:10d} {row['n_iter']:10d} "
            f"{row['learning_rate']:14g} {accuracy:>9}".rstrip()
            + "\n"
        )
    if known:
        chosen = found["best"]
        best = (
            f"best of the simulations: {chosen['n_iter']} steps of "
            f"{chosen['batch_size']} records at rate {chosen['learning_rate']:g}; "
            f"epsilon = {chosen['epsilon']:.4g} at delta = {chosen['delta']:.3g}\n"
        )
    return f"""\
epsilon = {found["epsilon"]:.4g} at delta = {found["delta"]:.3g} \
(loss distributions; by Rényi {found["epsilon_rdp"]:.4g})
by the central limit {found["epsilon_central_limit"]:.4g} (Gaussian DP of some papers: \
an approximation, often too small)
closed form {found["epsilon_closed_form"]:.4g} (an estimate, no guarantee), \
from eta = {found["eta"]:.4g}, in a step {found["eta_step"]:.3g}; \
total amount of noise {found["total_noise"]:.4g}
privacy wall: Rényi over closed form = {found["overcharge"]:.2f} (near 1: \
in front of it; far above 1: behind it)
{warnings}\
simulate on public data: batch size {small["batch_size"]:g}, \
noise multiplier {small["noise_multiplier"]:.4g}, {small["n_iter"]} steps; \
saves {100 * small["compute_saved"]:.1f} % of the compute; \
its own epsilon is {small["epsilon"]:.4g}
settings with the same total amount of noise:
  batch size      steps  learning rate{"  accuracy" if known else ""}
{rows}{best}\
{more["factor"]:g} times the records, same batches: epsilon = {more["epsilon"]:.4g} \
at delta = {more["delta"]:.3g}"""
