"""Figures. matplotlib is imported where it is used, and draws without a screen."""

import io
import math
from collections.abc import Sequence

from privfeat._extras import require
from privfeat.report.accuracy import AccuracyGrid

__all__ = ["plot_grid"]

# Okabe & Ito: told apart with every kind of colour vision.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_GREY = "#555555"


def plot_grid(grid: AccuracyGrid) -> bytes:
    """Return a PNG: accuracy against epsilon, one labelled line per estimator.

    Points are means; bands are one standard deviation over the fits to both sides. The
    column at the right, joined by dots, is the same estimator without any privacy.

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
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import PercentFormatter

    finite = [epsilon for epsilon in grid.epsilons if epsilon != math.inf]
    places = {e: float(i) for i, e in enumerate(finite)}
    last = places[math.inf] = len(finite) + 0.4

    figure = Figure(figsize=(8.0, 4.8), layout="constrained")
    canvas = FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.axhline(grid.baseline, color=_GREY, linewidth=1, linestyle=(0, (5, 3)))
    axes.annotate(
        f"{grid.baseline_name} (no privacy)",
        xy=(-0.2, grid.baseline),
        xytext=(2, 3),
        textcoords="offset points",
        color=_GREY,
        fontsize=9,
    )
    ends = {}
    for i, name in enumerate(grid.estimators):
        colour = _COLOURS[i % len(_COLOURS)]
        means = [grid.mean(name, e) for e in finite]
        spreads = [grid.spread(name, e) for e in finite]
        xs = [places[e] for e in finite]
        axes.plot(xs, means, color=colour, marker="o", markersize=4, linewidth=1.8)
        axes.fill_between(
            xs,
            [m - s for m, s in zip(means, spreads, strict=True)],
            [m + s for m, s in zip(means, spreads, strict=True)],
            color=colour,
            alpha=0.15,
            linewidth=0,
        )
        end = means[-1] if means else grid.mean(name, math.inf)
        if math.inf in grid.epsilons:
            end = grid.mean(name, math.inf)
            start = [xs[-1]] if xs else []
            axes.plot([*start, last], [*means[-1:], end], color=colour, linestyle=":")
            axes.plot(last, end, color=colour, marker="D", markersize=5)
        ends[name] = (end, colour)

    low, high = axes.get_ylim()
    low, high = max(0.0, low), min(1.0 + 0.02 * (high - low), high)
    axes.set_ylim(low, high)
    gap = 0.055 * (high - low)
    heights = spread_labels([end for end, _ in ends.values()], gap, top=high)
    for (name, (end, colour)), height in zip(ends.items(), heights, strict=True):
        x = [last + 0.1, last + 0.3]
        axes.plot(x, [end, height], color=colour, linewidth=0.7, clip_on=False)
        axes.text(x[1] + 0.05, height, name, color=colour, va="center")
    axes.set_xticks(list(places.values()), [f"{e:g}" for e in finite] + ["∞"])
    axes.set_xlim(-0.2, last + 0.1)
    axes.set_xlabel("epsilon (left is more private; ∞ is without privacy)")
    axes.yaxis.set_major_formatter(PercentFormatter(xmax=1, decimals=0))
    axes.set_ylabel("test accuracy")
    axes.set_title(grid.title, loc="left", fontsize=11)
    axes.grid(axis="y", color="#DDDDDD", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    buffer = io.BytesIO()
    canvas.print_figure(buffer, format="png", dpi=150)
    return buffer.getvalue()


def spread_labels(
    heights: Sequence[float], gap: float, top: float = math.inf
) -> list[float]:
    """Return heights near the given ones, in the same order, at least ``gap`` apart.

    Labels that are too close form a block around their mean, again and again until no
    two blocks touch. None is placed above ``top``.

    Examples
    --------
    >>> spread_labels([0.5, 0.0, 0.5], gap=0.25)
    [0.375, 0.0, 0.625]
    """

    def bottom(block: list[int]) -> float:
        height = gap * (len(block) - 1)
        mean = sum(heights[i] for i in block) / len(block)
        return min(mean - height / 2, top - height)

    order = sorted(range(len(heights)), key=lambda i: heights[i])
    blocks: list[list[int]] = []
    for i in order:
        blocks.append([i])
        while len(blocks) > 1 and bottom(blocks[-1]) < (
            bottom(blocks[-2]) + gap * len(blocks[-2])
        ):
            upper = blocks.pop()
            blocks[-1] += upper
    placed = [0.0] * len(heights)
    for block in blocks:
        for step, i in enumerate(block):
            placed[i] = bottom(block) + gap * step
    return placed
