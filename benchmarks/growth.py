"""How do time and memory grow with records, features, classes and steps?

Fits DPFC, DPLeastSquares (with a Gram matrix per class), DPNewton and DPAdamLinear
around a base point, of which one size at a time is doubled, each in a fresh process.
Prints the exponents, slopes of least squares in doubly logarithmic scale. ``--plots``
draws one figure for each size:

    python benchmarks/growth.py --out growth.json --plots figures/
    python benchmarks/growth.py --base 4096 32 4 4 --doublings 2      # a first look

Time is the median of fits after one that compiles; memory the peak of the process
above that after a fit of ten rows, the data included. Then it measures the rates of
this machine, those of sums over two processes among them, and says how long fits of a
billion records would take on 1 to 64 such devices (formula: ``_extrapolation.py``);
``--rates`` takes those of another machine.
What the file of ``--out`` holds already is not measured again.
"""

import argparse
import math
import socket
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
from _extrapolation import Rates, duration, seconds, work
from _processes import Failed, run_fresh
from _results import keep_tables, markdown_table, read_earlier, write_json

HERE = Path(__file__).parent
ESTIMATORS = ("DPFC", "DPLeastSquares", "DPNewton", "DPAdamLinear")
AXES = ("n", "d", "m", "T")
QUANTITIES = {"seconds": "time, s", "mib": "memory, MiB"}
DEVICES = (1, 2, 4, 8, 16, 32, 64)
# n_iter of the extrapolation: the defaults, and a second step of Newton
STEPS = {"DPFC": 20, "DPLeastSquares": 1, "DPNewton": 2, "DPAdamLinear": 12}
Cells = dict[str, dict[str, float]]
Sizes = tuple[int, int, int, int]


def main() -> None:
    """Print exponents and extrapolation, and draw if asked to."""
    args = parse()
    settings = {"repeats": args.repeats, "rates_at": args.rates_at}
    results = read_earlier(args.out, settings) or {"settings": settings}
    cells: Cells = results.setdefault("cells", {})
    if args.rates:
        rates = Rates(*(1e9 * rate for rate in args.rates))
    else:
        if "rates" not in results:
            results["rates"] = measured_rates(args)
            save(args.out, results)
        rates = Rates(**results["rates"])
    for estimator in args.estimators:
        for sizes in all_sizes(estimator, args.base, args.doublings):
            key = cell_key(estimator, sizes)
            if key in cells:
                continue
            try:
                cells[key] = measured_fit(estimator, sizes, args)
            except Failed as error:
                print(f"{key}: {error}", flush=True)
                continue
            print(f"{key}: {cells[key]['seconds']:.3f} s, {cells[key]['mib']:.0f} MiB")
            save(args.out, results)
    print(f"\n{exponent_table(cells, args)}")
    if args.plots:
        draw(cells, args)
    print(f"\n{extrapolation(rates, args)}")
    save(args.out, results)
    keep_tables(args.out)


def parse() -> argparse.Namespace:
    """Return the arguments."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--base", nargs=4, type=int, default=[2**14, 2**7, 2**3, 2**4], metavar=AXES
    )
    parser.add_argument("--doublings", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=3, help="timed fits")
    parser.add_argument("--estimators", nargs="+", default=list(ESTIMATORS))
    parser.add_argument("--limit", type=float, help="seconds for each process")
    parser.add_argument(
        "--rates",
        nargs=len(fields(Rates)),
        type=float,
        metavar=tuple(field.name for field in fields(Rates)),
        help="of a device, in 1e9 a second, instead of measuring them",
    )
    parser.add_argument(
        "--rates-at", nargs=3, type=int, default=[2**13, 768, 1000], metavar=AXES[:3]
    )
    parser.add_argument("--records", type=float, default=1e9)
    parser.add_argument("--features", nargs="+", type=int, default=[768, 1664])
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--plots", type=Path, help="folder for four figures")
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


def all_sizes(estimator: str, base: Sequence[int], doublings: int) -> list[Sizes]:
    """Return the base point and the points on its axes, each once."""
    lines = (axis_sizes(estimator, axis, base, doublings) for axis in AXES)
    return list(dict.fromkeys(sizes for line in lines for sizes in line))


def axis_sizes(
    estimator: str, axis: str, base: Sequence[int], doublings: int
) -> list[Sizes]:
    """Return the points on one axis; none for steps of a closed form."""
    n, d, m, steps = base
    if estimator == "DPLeastSquares":
        if axis == "T":
            return []
        steps = 1
    if estimator == "DPNewton":  # as many Hessians as another takes gradients
        steps = max(2, steps // 8)
    start = dict(zip(AXES, (n, d, m, steps), strict=True))
    points = (start | {axis: start[axis] << k} for k in range(doublings + 1))
    return [(point["n"], point["d"], point["m"], point["T"]) for point in points]


def cell_key(estimator: str, sizes: Sizes) -> str:
    """Return how a cell is called in the file."""
    values = (f"{axis}={size}" for axis, size in zip(AXES, sizes, strict=True))
    return f"{estimator} {' '.join(values)}"


def measured_fit(
    estimator: str, sizes: Sizes, args: argparse.Namespace
) -> dict[str, float]:
    """Return time and memory from a fresh process."""
    arguments = ("fit", estimator, *sizes, args.repeats)
    return run_fresh(HERE / "_growth_cell.py", arguments, limit=args.limit)


def measured_rates(args: argparse.Namespace) -> dict[str, float]:
    """Return the rates of this machine, its disk being that of the current folder."""
    script = HERE / "_growth_cell.py"
    with tempfile.TemporaryDirectory(dir=".") as folder:
        arguments = ("rates", *args.rates_at, args.repeats, folder)
        alone = run_fresh(script, arguments)
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    with ThreadPoolExecutor() as pool:
        calls = [("together", port, index, args.repeats) for index in (0, 1)]
        together = [pool.submit(run_fresh, script, call, limit=600) for call in calls]
        return alone | together[0].result()


def save(path: Path | None, results: dict[str, Any]) -> None:
    """Write what there is so far."""
    if path:
        write_json(path, {key: results[key] for key in ("settings", "rates", "cells")})


def exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """Return the slope of least squares of log values over log sizes; NaN if none."""
    if len(sizes) < 2 or not min(values) > 0:
        return math.nan
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def axis_values(
    cells: Cells, estimator: str, axis: str, quantity: str, args: argparse.Namespace
) -> tuple[list[int], list[float]]:
    """Return the measured sizes on an axis and what was found there."""
    sizes, values = [], []
    for point in axis_sizes(estimator, axis, args.base, args.doublings):
        cell = cells.get(cell_key(estimator, point))
        if cell is not None:
            sizes.append(point[AXES.index(axis)])
            values.append(cell[quantity])
    return sizes, values


def exponent_table(cells: Cells, args: argparse.Namespace) -> str:
    """Return the exponents of all estimators, and those of the last doubling."""
    rows = []
    for estimator in args.estimators:
        for quantity in QUANTITIES:
            rows.append([estimator, QUANTITIES[quantity].split(",")[0]])
            for axis in AXES:
                found = axis_values(cells, estimator, axis, quantity, args)
                last = exponent(*(part[-2:] for part in found))
                slope = exponent(*found)
                text = "-" if math.isnan(slope) else f"{slope:.2f} ({last:.2f})"
                rows[-1].append(text)
    return "Exponents (of the last doubling)\n\n" + markdown_table(
        ["", "", *AXES], rows, "exponents"
    )


def draw(cells: Cells, args: argparse.Namespace) -> None:
    """Draw one figure for each axis."""
    from matplotlib.figure import Figure

    args.plots.mkdir(parents=True, exist_ok=True)
    for axis in AXES:
        figure = Figure(figsize=(9, 3.6), layout="constrained")
        for panel, quantity in zip(figure.subplots(1, 2), QUANTITIES, strict=True):
            for estimator in args.estimators:
                found = axis_values(cells, estimator, axis, quantity, args)
                if found[0]:
                    label = f"{estimator}: {exponent(*found):.2f}"
                    panel.plot(*found, marker="o", label=label)
            panel.set_xscale("log", base=2)
            panel.set_yscale("log")
            panel.set_xlabel(axis)
            panel.set_ylabel(QUANTITIES[quantity])
            panel.legend(title="exponent", fontsize="small")
        figure.savefig(args.plots / f"growth-{axis}.png", dpi=150)


def extrapolation(rates: Rates, args: argparse.Namespace) -> str:
    """Return the times of large fits."""
    n, m = args.records, args.classes
    rows = []
    for d in args.features:
        for estimator in args.estimators:
            todo = work(estimator, n, d, m, STEPS[estimator])
            times = (seconds(todo, rates, n, d, devices) for devices in DEVICES)
            rows.append([f"{estimator}, T={STEPS[estimator]}", f"{d}"])
            rows[-1] += map(duration, times)
    unit = ", ".join(f"{name} {rate / 1e9:.3g}" for name, rate in asdict(rates).items())
    title = f"{n:g} records, m = {m}, on devices with rates of (1e9 a second) {unit}"
    header = ["devices", "d", *(str(devices) for devices in DEVICES)]
    return f"{title}\n\n{markdown_table(header, rows, 'extrapolation')}"


if __name__ == "__main__":
    main()
