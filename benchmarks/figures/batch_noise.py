"""How much less noise does a record of a large batch get?

    python benchmarks/figures/batch_noise.py --out batch_noise.png

Figure 5 of van der Veen, Seggers, Bloem & Patrini 2018: the noise multiplier over the
batch size, at one budget and number of epochs. Reads no data.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from privfeat.analysis.batches import BatchSetting, noise_by_batch_size


def main() -> None:
    """Draw the figure."""
    from matplotlib.figure import Figure

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--n", type=int, default=60_000, help="number of records")
    parser.add_argument("--sizes", nargs="+", type=int, default=[64, 256, 1024, 4096])
    parser.add_argument("--epsilon", type=float, default=2.0)
    parser.add_argument("--delta", type=float, default=1e-5)
    parser.add_argument("--epochs", type=float, default=10.0)
    parser.add_argument("--out", type=Path, required=True, help="of the figure")
    args = parser.parse_args()
    settings = noise_by_batch_size(
        args.n,
        args.sizes,
        epsilon=args.epsilon,
        delta=args.delta,
        n_epochs=args.epochs,
    )
    figure = Figure(layout="constrained")
    draw_noise(settings, figure.subplots())
    figure.savefig(args.out, dpi=150)
    for row in settings:
        each = f"{row.noise_per_example:.3g} for each record"
        print(f"batch {row.batch_size}: {row.noise_multiplier:.3f}, {each}")
    print(f"{args.out} written")


def draw_noise(settings: Sequence[BatchSetting], ax: Any) -> None:
    """Draw the noise of a record against the batch size."""
    sizes = [row.batch_size for row in settings]
    ax.plot(sizes, [row.noise_per_example for row in settings], "o-")
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.set_xlabel("batch size")
    ax.set_ylabel("noise multiplier / batch size")


if __name__ == "__main__":
    main()
