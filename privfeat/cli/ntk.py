"""``privfeat ntk``: what clipping does to the tangent kernel of a network."""

import argparse
from typing import Any


def add_parser(verbs: Any) -> None:
    """Add this verb to the parser of the command."""
    parser = verbs.add_parser(
        "ntk",
        help="what clipping does to the tangent kernel of a network",
        description="Print symmetry and positivity of the neural tangent kernel of a "
        "fresh network on random records, clipped by one norm or by one for each "
        "layer, and the decay of the loss that it predicts (Bu et al. 2023, Table 1).",
    )
    parser.set_defaults(run=run)
    parser.add_argument(
        "--model", default="mlp", help="a name of privfeat.networks (default mlp)"
    )
    parser.add_argument(
        "--shape",
        type=int,
        nargs=3,
        default=(8, 8, 1),
        metavar=("HEIGHT", "WIDTH", "CHANNELS"),
        help="of a record (default 8 8 1)",
    )
    parser.add_argument("--n-records", type=int, default=8, help="(default 8)")
    parser.add_argument("--n-classes", type=int, default=3, help="(default 3)")
    parser.add_argument("--clip-norm", type=float, default=0.1, help="(default 0.1)")
    parser.add_argument(
        "--clipping", default="abadi", help="the clipping factor (default abadi)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of weights and records")


def run(args: argparse.Namespace) -> None:
    """Print a row of Table 1 for each style of clipping."""
    from privfeat.analysis.ntk_table import kernels_by_style

    kernels = kernels_by_style(
        args.model,
        tuple(args.shape),
        n_records=args.n_records,
        n_classes=args.n_classes,
        clip_norm=args.clip_norm,
        clipping=args.clipping,
        seed=args.seed,
    )
    print(f"{'clipping':<10} symmetric  x'Ax >= 0  eigenvalues >= 0  decay of the loss")
    for style, kernel in kernels.items():
        found = kernel.properties
        print(
            f"{style:<10} {_word(found.symmetric):<10} "
            f"{_word(found.positive_quadratic_form):<10} "
            f"{_word(found.positive_eigenvalues):<17} {kernel.decay:.4g}"
        )


def _word(value: bool) -> str:
    return "yes" if value else "no"
