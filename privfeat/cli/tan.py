"""``privfeat tan``: what the settings of a DP-SGD training cost and imply."""

import argparse
import json
from typing import Any

from privfeat.cli.common import CommandError


def add_parser(verbs: Any) -> None:
    """Add this verb to the parser of the command."""
    parser = verbs.add_parser(
        "tan",
        help="settings of DP-SGD: epsilon, privacy wall, cheap simulations",
        description="Say what the settings of a DP-SGD training cost, how to simulate "
        "it cheaply on public data, and what else has the same total amount of noise "
        "(Sander et al. 2023). Reads no data.",
    )
    parser.set_defaults(run=run)
    parser.add_argument("--n", type=int, required=True, help="number of records")
    parser.add_argument(
        "--batch-size", type=int, required=True, help="expected size of a batch"
    )
    parser.add_argument(
        "--noise-multiplier",
        type=float,
        required=True,
        help="stddev of the noise over the clip norm",
    )
    parser.add_argument("--steps", type=int, required=True, help="steps of training")
    parser.add_argument("--delta", type=float, help="default: 1 / n")
    parser.add_argument(
        "--learning-rate",
        type=float,
        default=1.0,
        help="of this batch size (default 1)",
    )
    parser.add_argument(
        "--factor",
        type=float,
        default=64.0,
        help="how many times smaller the simulated batch is (default 64)",
    )
    parser.add_argument("--json", action="store_true", help="for programs")


def run(args: argparse.Namespace) -> None:
    """Print everything that follows from the settings."""
    from privfeat.analysis.planning import delta_warnings
    from privfeat.analysis.scaling import constant_tan_settings
    from privfeat.analysis.tan import TAN, simulate

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
    doubled = settings.with_more_data(2.0)
    same = constant_tan_settings(args.batch_size, args.steps, args.learning_rate)
    found = {
        "epsilon": settings.epsilon(delta),
        "epsilon_rdp": settings.epsilon(delta, accountant="rdp"),
        "epsilon_closed_form": settings.closed_form_epsilon(delta),
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
        },
        "same_noise": [choice._asdict() for choice in same],
        "twice_the_data": {"epsilon": doubled.epsilon(delta / 2), "delta": delta / 2},
        "warnings": [*settings.warnings(), *delta_warnings(delta, args.n)],
    }
    print(json.dumps(found, indent=2) if args.json else _text(found))


def _text(found: dict[str, Any]) -> str:
    small, twice = found["simulation"], found["twice_the_data"]
    lines = [
        f"epsilon = {found['epsilon']:.4g} at delta = {found['delta']:.3g} "
        f"(loss distributions; by Rényi {found['epsilon_rdp']:.4g})",
        f"closed form {found['epsilon_closed_form']:.4g} (an estimate, no guarantee), "
        f"from eta = {found['eta']:.4g}, in a step {found['eta_step']:.3g}; total "
        f"amount of noise {found['total_noise']:.4g}",
        f"privacy wall: Rényi over closed form = {found['overcharge']:.2f} (near 1 is "
        "good)",
        *(f"warning: {warning}" for warning in found["warnings"]),
        f"simulate on public data: batch size {small['batch_size']:g}, noise "
        f"multiplier {small['noise_multiplier']:.4g}, {small['n_iter']} steps; saves "
        f"{100 * small['compute_saved']:.1f} % of the compute",
        "settings with the same total amount of noise:",
        "  batch size      steps  learning rate",
    ]
    lines += [
        f"  {row['batch_size']:10d} {row['n_iter']:10d} {row['learning_rate']:14g}"
        for row in found["same_noise"]
    ]
    lines.append(
        f"twice the records, same batches: epsilon = {twice['epsilon']:.4g} at delta = "
        f"{twice['delta']:.3g}"
    )
    return "\n".join(lines)
