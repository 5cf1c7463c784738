"""What does clipping do to the neural tangent kernel of a network?

    python benchmarks/ntk.py --model mlp --clip-norm 0.1 --plots figures/
    python benchmarks/ntk.py --table-1 --out ntk.json

Bu, Wang & Long 2023, Table 1: symmetry and positivity of the kernel of a fresh network
on random records, clipped by record or by batch, by one norm or by one for each layer,
and the decay of the loss that it predicts. ``--table-1`` adds the table itself, as
`figures.ntk_table` finds it in three linear models, in a minute. ``--plots`` draws the
loss of a small gradient descent, measured and predicted. Reads no data.
"""

import argparse
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from _results import Cells, keep_tables, markdown_table, settings_of
from figures.ntk_decay import draw_decay, measure_decay
from figures.ntk_kernel import CLIPPINGS, clipped_kernel
from figures.ntk_table import COLUMNS, Problem, of_kernel, table_1
from flax import nnx

from privfeat.networks.engine.network import Network
from privfeat.networks.weights import build

DRAWN = ("none", "small R, flat", "small R, layerwise")


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
    parser.add_argument("--table-1", action="store_true")
    parser.add_argument("--plots", type=Path, help="folder for a figure")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    batch = network_and_batch(
        args.model,
        tuple(args.shape),
        n_records=args.n_records,
        n_classes=args.n_classes,
        seed=args.seed,
    )
    styles = Problem(batch, args.clip_norm, n_steps=20).styles(args.clipping)
    kept = Cells(args.out, settings_of(args, "plots"))
    rows = kept.get("kernels", lambda: kernel_rows(batch, styles))
    header = ["clipping", *COLUMNS[:3], "decay of the loss"]
    print(markdown_table(header, rows, "kernels of a network"))
    if args.table_1:
        found = kept.get("table 1", lambda: table_1(args.clipping))
        rows = [[style, *map(_word, columns)] for style, columns in found.items()]
        print(markdown_table(["clipping", *COLUMNS], rows, "Table 1"))
    if args.out:
        keep_tables(args.out)
    if args.plots:
        draw(args.plots, batch, styles)


def kernel_rows(
    batch: tuple[Any, ...], styles: dict[str, dict[str, Any]]
) -> list[list[str]]:
    """Return a row for each style of clipping: properties, and decay of the loss."""
    rows = []
    for style, clipping in styles.items():
        kernel = clipped_kernel(*batch, **clipping)
        words = map(_word, of_kernel(kernel.properties))
        rows.append([style, *words, f"{kernel.decay:.4g}"])
    return rows


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


def draw(
    folder: Path, batch: tuple[Any, ...], styles: dict[str, dict[str, Any]]
) -> None:
    """Write a figure of the loss in 20 steps without noise, for three styles."""
    from matplotlib.figure import Figure

    folder.mkdir(parents=True, exist_ok=True)
    shown = {name: styles[name] for name in DRAWN}
    figure = Figure(figsize=(4 * len(shown), 4), layout="constrained")
    for ax, (style, clipping) in zip(
        figure.subplots(1, len(shown)), shown.items(), strict=True
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
