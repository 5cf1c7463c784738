"""What do the figures of the TAN paper look like by this accountant?

    python benchmarks/tan_figures.py --plots figures/

Sander, Stock & Sablayrolles, TAN Without a Burn, 2023: Figure 2 (epsilon against the
noise multiplier at constant eta, for several numbers of steps), Figure 3 (Rényi
divergence of a step over its approximation, at constant eta of a step), and the
epsilons of Tables 4 to 6 beside those printed there. ``--plots`` draws both figures.
Takes a few seconds; reads no data.
"""

import argparse
import math
from pathlib import Path

import numpy as np
from _results import keep_tables, markdown_table, write_json
from figures.wall import draw_ratios, draw_wall, rdp_ratio, wall_curve

from privfeat.analysis.tan import TAN, closed_form_epsilon

DELTA = (
    1e-6  # of Figure 2, which does not say: with it eta gives the stated closed form
)
NOISES = (0.4, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 8.0)
STEPS = (1_000, 10_000, 100_000)
ETAS = (0.13, 0.95)
ETA_STEP = 3.9e-3
ORDERS = (2, 4, 8, 16, 32)
# table, records, batch size, noise multiplier, steps, delta, epsilon as printed
ROWS = (
    ("6, all of ImageNet", 1_281_167, 16_384, 2.5, 72_000, 8e-7, 8.00),
    ("6, half of it", 640_583, 16_384, 2.5, 72_000, 1.6e-6, 17.98),
    ("4, 72k steps", 1_281_167, 16_384, 2.5, 72_000, 8e-7, 7.97),
    ("4, 18k steps", 1_281_167, 32_768, 2.5, 18_000, 8e-7, 8.00),
    ("5, all of CIFAR-10", 50_000, 4_096, 3.0, 2_500, 1e-5, 7.1),
)


def main() -> None:
    """Print the tables, and draw the figures if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--noises", nargs="+", type=float, default=NOISES)
    parser.add_argument("--steps", nargs="+", type=int, default=STEPS)
    parser.add_argument("--plots", type=Path, help="folder for two figures")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    found = {
        "figure_2": {f"{eta:g}": figure_2(eta, args) for eta in ETAS},
        "figure_3": figure_3(args.noises),
        "epsilons": tables(),
    }
    for eta in ETAS:
        closed = closed_form_epsilon(eta, DELTA)
        print(f"\nFigure 2, eta = {eta:g}: epsilon, closed form {closed:.2f}")
        curves = found["figure_2"][f"{eta:g}"]
        rows = [[f"{n:,}", *map("{:.4g}".format, curve)] for n, curve in curves.items()]
        header = ["steps \\ noise", *map("{:g}".format, args.noises)]
        print(markdown_table(header, rows, f"figure 2, eta = {eta:g}"))
    print(f"\nFigure 3, eta of a step = {ETA_STEP:g}: divergence / approximation")
    rows = [
        [f"{noise:g}", *map("{:.4g}".format, ratios)]
        for noise, ratios in found["figure_3"].items()
    ]
    print(markdown_table(["noise \\ order", *map(str, ORDERS)], rows, "figure 3"))
    print("\nEpsilons of the tables")
    header = ["table", "printed", "Rényi", "closed form", "loss distributions"]
    rows = [
        [row["table"], *(f"{row[name]:.2f}" for name in list(row)[1:])]
        for row in found["epsilons"]
    ]
    print(markdown_table(header, rows, "epsilons"))
    if args.plots:
        draw(args)
    if args.out:
        write_json(args.out, found)
    keep_tables(args.out)


def figure_2(eta: float, args: argparse.Namespace) -> dict[int, list[float]]:
    """Return epsilon at each noise, for each number of steps."""
    curves = {n: wall_curve(eta, n, args.noises, DELTA) for n in args.steps}
    return {n: curve.tolist() for n, curve in curves.items()}


def figure_3(noises: list[float]) -> dict[float, list[float]]:
    """Return the ratio at each order, for each noise."""
    return {
        noise: rdp_ratio(
            TAN(ETA_STEP * math.sqrt(2) * noise, noise, 1), ORDERS
        ).tolist()
        for noise in noises
    }


def tables() -> list[dict[str, object]]:
    """Return the epsilons of the printed rows, by three ways of accounting."""
    found = []
    for name, n_samples, batch_size, noise, n_iter, delta, printed in ROWS:
        tan = TAN(batch_size / n_samples, noise, n_iter)
        found.append(
            {
                "table": name,
                "printed": printed,
                "rdp": tan.epsilon(delta, accountant="rdp"),
                "closed_form": tan.closed_form_epsilon(delta),
                "pld": tan.epsilon(delta),
            }
        )
    return found


def draw(args: argparse.Namespace) -> None:
    """Write both figures."""
    from matplotlib.figure import Figure

    args.plots.mkdir(parents=True, exist_ok=True)
    noises = np.geomspace(min(args.noises), max(args.noises), 25)
    for number in (2, 3):
        figure = Figure(figsize=(9, 4), layout="constrained")
        left, right = figure.subplots(1, 2)
        if number == 2:
            for eta, ax in zip(ETAS, (left, right), strict=True):
                draw_wall(eta, args.steps, noises, DELTA, ax)
        else:
            for ax in (left, right):
                draw_ratios(ETA_STEP, (0.5, 1.0, 2.0, 4.0), range(2, 33), ax)
            right.set(yscale="linear", ylim=(0.9, 2))
        path = args.plots / f"figure-{number}.png"
        figure.savefig(path, dpi=150)
        print(f"{path} written")


if __name__ == "__main__":
    main()
