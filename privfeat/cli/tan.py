"""``privfeat tan``: settings of DP-SGD: epsilon, privacy wall, cheap simulations.

Print what the settings of a DP-SGD training cost, how to simulate it cheaply on public
data, and what else has the same total amount of noise (Sander et al. 2023). Reads no
data.
"""

import json
from argparse import Namespace
from typing import Any

from privfeat.cli.shared import options
from privfeat.cli.shared.terminal import CommandError


def add_parser(verbs: Any) -> None:
    """Add this verb to the parser of the command."""
    add = options.verb(verbs, run, options.AS_JSON).add_argument
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
    more = "show the cost with so many times the records (default 2)"
    add("--data-factor", metavar="F", type=float, default=2.0, help=more)


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
    same = constant_tan_settings(args.batch_size, args.steps, args.learning_rate)
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
        "warnings": [*settings.warnings(), *delta_warnings(delta, args.n)],
    }
    print(json.dumps(found, indent=2) if args.json else _text(found))


def _text(found: dict[str, Any]) -> str:
    small, more = found["simulation"], found["more_data"]
    warnings = "".join(f"warning: {warning}\n" for warning in found["warnings"])
    rows = "".join(
        f"  {row['batch_size']:10d} {row['n_iter']:10d} {row['learning_rate']:14g}\n"
        for row in found["same_noise"]
    )
    return f"""\
epsilon = {found["epsilon"]:.4g} at delta = {found["delta"]:.3g} \
(loss distributions; by Rényi {found["epsilon_rdp"]:.4g})
by the central limit {found["epsilon_central_limit"]:.4g} (Gaussian DP of some papers: \
an approximation, often too small)
closed form {found["epsilon_closed_form"]:.4g} (an estimate, no guarantee), \
from eta = {found["eta"]:.4g}, in a step {found["eta_step"]:.3g}; \
total amount of noise {found["total_noise"]:.4g}
privacy wall: Rényi over closed form = {found["overcharge"]:.2f} (near 1 is good)
{warnings}\
simulate on public data: batch size {small["batch_size"]:g}, \
noise multiplier {small["noise_multiplier"]:.4g}, {small["n_iter"]} steps; \
saves {100 * small["compute_saved"]:.1f} % of the compute; \
its own epsilon is {small["epsilon"]:.4g}
settings with the same total amount of noise:
  batch size      steps  learning rate
{rows}\
{more["factor"]:g} times the records, same batches: epsilon = {more["epsilon"]:.4g} \
at delta = {more["delta"]:.3g}"""
