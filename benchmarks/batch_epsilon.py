"""How does epsilon fall with the batch, at one noise of the mean and as many steps?

    python benchmarks/batch_epsilon.py --out batch_epsilon.json

Kurakin et al. 2022, Figure 2, by privacy loss distributions: the noise multiplier grows
with the batch, so that the mean of the gradients is as noisy in every step. By default
the records, the steps and the delta of their Table 5, whose noise multiplier is 0.0028
for batches of 1,024, and hundreds of times that. Reads no data; takes a minute.
"""

import argparse
import math
from functools import partial
from pathlib import Path

from _results import Cells, keep_tables, markdown_table, settings_of

from privfeat.analysis.tan import TAN

PRINTED = 0.001 * math.sqrt(8)  # sigma of Table 5 for batches of 1,024
_SMALLEST = 1024


def main() -> None:
    """Print the table."""
    args = parse()
    cells = Cells(args.out, settings_of(args))
    rows = []
    for batch in [*args.batches, args.n]:
        rows.append([f"{batch:,}", f"{batch * args.steps / args.n:,.0f}"])
        for times in args.times:
            noise = times * PRINTED * batch / _SMALLEST
            tan = TAN(batch / args.n, noise, args.steps)
            name = f"batch={batch} times={times:g}"
            epsilon = cells.get(name, partial(finite_epsilon, tan, args.delta))
            shown = "inf" if epsilon is None else f"{epsilon:.3g}"
            rows[-1].append(f"{shown} (noise {noise:.3g})")
    header = [f"noise x {times:g}" for times in args.times]
    print(markdown_table(["batch", "epochs", *header], rows, "epsilon"))
    keep_tables(args.out)


def finite_epsilon(tan: TAN, delta: float) -> float | None:
    """Return epsilon; None where the accountant proves none."""
    epsilon = tan.epsilon(delta)
    return epsilon if math.isfinite(epsilon) else None


def parse() -> argparse.Namespace:
    """Return the arguments."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--n", type=int, default=1_281_167, help="number of records")
    parser.add_argument("--steps", type=int, default=12_512)
    parser.add_argument("--delta", type=float, default=1e-6)
    parser.add_argument("--times", nargs="+", type=float, default=[1, 100, 200])
    sizes = [_SMALLEST * 4**power for power in range(6)]
    parser.add_argument("--batches", nargs="+", type=int, default=sizes)
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
