"""Charts as inline SVG, which matplotlib draws: no script, no link, colours by CSS."""

import io
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from markupsafe import Markup
    from matplotlib.axes import Axes

WIDTH, HEIGHT = 360, 250
# The variables of the style sheet, and the colours that stand for them in matplotlib.
_COLOURS = {
    "ink": "#1b1b1b",
    "soft": "#5a5a5a",
    "rule": "#d4d4d4",
    "one": "#0063a6",
    "two": "#b34a00",
}
_SETTINGS: dict[str, Any] = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.labelcolor": _COLOURS["ink"],
    "figure.facecolor": "none",
    "font.sans-serif": ["DejaVu Sans"],  # comes with matplotlib: equal pages everywhere
    "font.size": 11,
    "grid.color": _COLOURS["rule"],
    "grid.linewidth": 0.7,
    "svg.fonttype": "none",
    "svg.hashsalt": "privfeat",
    **{f"{axis}tick.labelcolor": _COLOURS["ink"] for axis in "xy"},
    **{"xtick.bottom": False, "ytick.left": False},
}
# Years, months, days, hours, minutes and seconds, in figures; their first; beside them.
_DATES = {
    "formats": ["%Y", "%Y-%m", "%m-%d", "%H:%M", "%H:%M", "%S"],
    "zero_formats": ["%Y", "%Y-%m", "%m-%d", "%m-%d", "%H:%M", "%H:%M"],
    "offset_formats": ["", "", "%Y", "%Y-%m-%d", "%Y-%m-%d", "%Y-%m-%d %H:%M"],
}
# Names, clips and links of parts: they would clash with those of other charts.
_DROPPED = re.compile(
    r"<(metadata|defs)>.*?</\1>\s*|<defs/>\s*| (?:id|clip-path|xmlns[:\w]*)=\"[^\"]*\"",
    re.DOTALL,
)


def line_chart(
    x: ArrayLike,
    y: ArrayLike,
    *,
    dot: tuple[float, float] | None = None,
    log_y: bool = False,
    **labels: Any,
) -> "Markup":
    """Return a line over a grid, if asked with a dot; ``labels`` as of `bar_chart`.

    ValueError if there is no point, or one is not finite.
    """
    points = np.column_stack([x, y])
    marked = np.empty((0, 2)) if dot is None else np.array([dot])
    known = np.concatenate([points, marked])
    if not known.size or not np.all(np.isfinite(known)):
        raise ValueError("x, y and dot must hold finite points, at least one.")

    def draw(axes: "Axes") -> None:
        if log_y:
            axes.set_yscale("log")
            axes.minorticks_off()
            axes.yaxis.set_major_formatter(lambda v, _: f"1e{round(np.log10(v))}")
        axes.plot(*points.T, color=_COLOURS["one"], linewidth=2)
        # a line without length, of which only the round ends are seen
        (dots,) = axes.plot(*marked.repeat(2, axis=0).T, color=_COLOURS["two"])
        dots.set(linewidth=7, solid_capstyle="round")

    return _svg(draw, **labels)


def bar_chart(edges: ArrayLike, heights: ArrayLike, **labels: Any) -> "Markup":
    """Return bars between ``edges``, (n + 1,), from 0 up; NaN heights are left out.

    ``labels`` are ``title``, which a screen reader says, ``x_label``, ``y_label``, and
    ``diagonal``: whether to draw a dashed line from (0, 0) to (1, 1).
    """
    edges, heights = np.asarray(edges, np.float64), np.asarray(heights, np.float64)
    shown = heights > 0.0
    lefts, widths = edges[:-1][shown], 0.94 * np.diff(edges)[shown]

    def draw(axes: "Axes") -> None:
        axes.set_xlim(edges[0], edges[-1])
        bars = axes.bar(lefts, heights[shown], widths, align="edge", linewidth=0)
        for bar in bars:
            bar.set(color=_COLOURS["one"], alpha=0.75)

    return _svg(draw, **labels)


def step_chart(
    times: Sequence[datetime], heights: ArrayLike, *, limit: float, **labels: Any
) -> "Markup":
    """Return what holds from each time to the next, in UTC, below a dashed limit.

    ``labels`` are as of `bar_chart`; there is at least one time.
    """
    values = np.asarray(heights, np.float64)

    def draw(axes: "Axes") -> None:
        from matplotlib import dates

        untyped: Any = dates
        locator = untyped.AutoDateLocator(tz=UTC, minticks=2, maxticks=4)
        axes.xaxis.set_major_locator(locator)
        named = untyped.ConciseDateFormatter(locator, tz=UTC, **_DATES)
        axes.xaxis.set_major_formatter(named)
        (line,) = axes.step(np.array(times), values, where="post")
        line.set(color=_COLOURS["one"], linewidth=2)
        axes.axhline(limit, linestyle="--", color=_COLOURS["two"], linewidth=1.2)
        axes.set_ylim(0.0, 1.08 * max(limit, *values, 0.0))

    return _svg(draw, **labels)


def _svg(
    draw: Callable[["Axes"], None],
    *,
    title: str,
    x_label: str,
    y_label: str,
    diagonal: bool = False,
) -> "Markup":
    """Return what ``draw`` puts on new axes, of the same bytes every time."""
    from markupsafe import Markup
    from matplotlib import style
    from matplotlib.figure import Figure

    buffer = io.StringIO()
    with style.context(_SETTINGS, after_reset=True):
        figure = Figure((WIDTH / 72, HEIGHT / 72), layout="constrained")
        axes = figure.add_subplot(frame_on=False, xmargin=0.01, ymargin=0.01)
        axes.set(xlabel=x_label, ylabel=y_label)
        axes.locator_params("x", nbins=5)
        draw(axes)
        if diagonal:
            ends = [max(axes.get_xlim()[0], 0.0), 1.0]  # nothing is clipped
            (guide,) = axes.plot(ends, ends, "--", color=_COLOURS["soft"])
            guide.set(linewidth=1.2, zorder=3)
        metadata = {"Title": title, "Date": None}
        figure.savefig(buffer, format="svg", metadata=metadata)
    written = buffer.getvalue()
    picture = _DROPPED.sub("", written[written.index("<svg") :])
    for name, colour in _COLOURS.items():
        picture = picture.replace(colour, f"var(--{name})")
    return Markup(picture.replace("<svg", '<svg role="img"', 1))
