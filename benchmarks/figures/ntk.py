"""What does clipping do to the neural tangent kernel of a network?

    python benchmarks/figures/ntk.py --model mlp --clip-norm 0.1 --plots figures/

Bu, Wang & Long 2023, Table 1: symmetry and positivity of the kernel of a fresh network
on random records, clipped by one norm or by one for each layer, and the decay of the
loss that it predicts. ``--plots`` draws the loss of a small gradient descent, measured
and predicted. Takes a few seconds; reads no data.
"""

import argparse
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from ntk_decay import draw_decay, measure_decay
from ntk_kernel import CLIPPINGS, clipped_kernel

from privfeat.networks.engine.network import Network
from privfeat.networks.models import build


def main() -> None:
    """Print a row of Table 1 for each style of clipping."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="mlp", help="a name of privfeat.networks")
    parser.add_argument(
        "--shape",
        type=int,
        nargs=3,
        default=(8, 8, 1),
        metavar=("HEIGHT", "WIDTH", "CHANNELS"),
        help="of a record",
    )
    parser.add_argument("--n-records", type=int, default=8)
    parser.add_argument("--n-classes", type=int, default=3)
    parser.add_argument("--clip-norm", type=float, default=0.1)
    parser.add_argument("--clipping", default="abadi", help=", ".join(CLIPPINGS))
    parser.add_argument("--seed", type=int, default=0, help="of weights and records")
    parser.add_argument("--plots", type=Path, help="folder for a figure")
    args = parser.parse_args()
    batch = network_and_batch(
        args.model,
        tuple(args.shape),
        n_records=args.n_records,
        n_classes=args.n_classes,
        seed=args.seed,
    )
    styles = clipping_styles(batch[1], args.clip_norm, args.clipping)
    print(f"{'clipping':<10} symmetric  x'Ax >= 0  eigenvalues >= 0  decay of the loss")
    for style, clipping in styles.items():
        kernel = clipped_kernel(*batch, **clipping)
        found = kernel.properties
        print(
            f"{style:<10} {_word(found.symmetric):<10} "
            f"{_word(found.positive_quadratic_form):<10} "
            f"{_word(found.positive_eigenvalues):<17} {kernel.decay:.4g}"
        )
    if args.plots:
        draw(args.plots, batch, styles)


def network_and_batch(
    model: str, shape: tuple[int, ...], *, n_records: int, n_classes: int, seed: int
) -> tuple[Any, ...]:
    """Return a fresh network, its parameters, random records, labels, and the loss.

    They are the arguments of `clipped_kernel` and `measure_decay`.
    """
    if n_records < 1 or n_classes < 2:
        raise ValueError("n_records must be >= 1, and n_classes must be >= 2.")
    rng = np.random.default_rng(seed)
    rngs = nnx.Rngs(params=jax.random.key(int(rng.integers(2**31))))
    network = Network(build(model, shape, n_classes, rngs=rngs))
    x = rng.normal(size=(n_records, *shape))
    return network, network.initial, x, jnp.arange(n_records) % n_classes, _loss


def clipping_styles(
    layers: dict[str, Any], clip_norm: float, clipping: str
) -> dict[str, dict[str, Any]]:
    """Return the clipping of each row; layerwise, all layers have an equal part."""
    part = clip_norm / len(layers) ** 0.5
    return {
        "none": {"clip_norm": clip_norm, "clipping": "none"},
        "flat": {"clip_norm": clip_norm, "clipping": clipping},
        "layerwise": {"clip_norm": dict.fromkeys(layers, part), "clipping": clipping},
    }


def draw(
    folder: Path, batch: tuple[Any, ...], styles: dict[str, dict[str, Any]]
) -> None:
    """Write a figure of the loss in 20 steps without noise, for each style."""
    from matplotlib.figure import Figure

    folder.mkdir(parents=True, exist_ok=True)
    figure = Figure(figsize=(4 * len(styles), 4), layout="constrained")
    for ax, (style, clipping) in zip(
        figure.subplots(1, len(styles)), styles.items(), strict=True
    ):
        draw_decay(measure_decay(*batch, **clipping, learning_rate=1e-2), ax)
        ax.set_title(style)
    figure.savefig(folder / "ntk.png", dpi=150)
    print(f"{folder / 'ntk.png'} written")


def _word(value: bool) -> str:
    return "yes" if value else "no"


def _loss(scores: Any, label: Any) -> Any:
    return -jax.nn.log_softmax(scores)[label]


if __name__ == "__main__":
    main()
