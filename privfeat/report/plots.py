"""Figures. matplotlib is imported where it is used, and draws without a screen."""

import io
import math
from typing import Any

import numpy as np

from privfeat._extras import require
from privfeat.report.accuracy import AccuracyGrid

__all__ = ["plot_grid"]

# Okabe & Ito: all kinds of colour vision can distinguish them.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_MARKERS = ("o", "s", "D", "^", "v", "P")


def plot_grid(grid: AccuracyGrid) -> bytes:
    """Return a PNG: accuracy against epsilon, a line for each estimator.

    Points are means, bands one standard deviation over the fits to both sides. Dotted
    lines lead to the same estimator without privacy.

    Raises
    ------
    ImportError
        If matplotlib is missing.

    Examples
    --------
    >>> cells = {0.5: [0.6, 0.7], 1.0: [0.8, 0.8], math.inf: [0.9]}
    >>> grid = AccuracyGrid({"DPFC": cells}, 0.95, "LogisticRegression", "digits")
    >>> plot_grid(grid)[1:4]
    b'PNG'
    """
    require("a figure", "matplotlib", extra="plot")
    from matplotlib.figure import Figure
    from matplotlib.ticker import PercentFormatter

    finite = [epsilon for epsilon in grid.epsilons if epsilon != math.inf]
    last = len(finite) + 0.4  # without privacy, a little apart
    figure = Figure(figsize=(8.0, 4.8), layout="constrained")
    axes = figure.add_subplot()
    for i, name in enumerate(grid.estimators):
        look: dict[str, Any] = {
            "color": _COLOURS[i % len(_COLOURS)],
            "marker": _MARKERS[i % len(_MARKERS)],
        }
        places = list(range(len(finite)))
        means = [grid.mean(name, epsilon) for epsilon in finite]
        spreads = [grid.spread(name, epsilon) for epsilon in finite]
        axes.plot(places, means, linewidth=1.8, markersize=5, label=name, **look)
        low, high = np.subtract(means, spreads), np.add(means, spreads)
        axes.fill_between(places, low, high, color=look["color"], alpha=0.15, lw=0)
        if math.inf in grid.epsilons:
            free = [*means[-1:], grid.mean(name, math.inf)]
            axes.plot([*places[-1:], last], free, linestyle=":", **look)
    plain = f"{grid.baseline_name}\n(no privacy)"
    axes.axhline(grid.baseline, color="#555555", lw=1, ls=(0, (5, 3)), label=plain)

    low, high = axes.get_ylim()
    axes.set_ylim(max(0.0, low), min(1.0 + 0.02 * (high - low), high))
    axes.set_xticks([*range(len(finite)), last], [f"{e:g}" for e in finite] + ["∞"])
    axes.set_xlim(-0.2, last + 0.2)
    axes.set_xlabel("epsilon (left is more private; ∞ is without privacy)")
    axes.yaxis.set_major_formatter(PercentFormatter(xmax=1, decimals=0))
    axes.set_ylabel("test accuracy")
    axes.set_title(grid.title, loc="left", fontsize=11)
    axes.grid(axis="y", color="#DDDDDD", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside right upper", frameon=False)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=150)
    return buffer.getvalue()
