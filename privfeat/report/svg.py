"""Charts as inline SVG: no script, no file, colours from the page's style sheet."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree as ET

__all__ = ["Series", "bar_chart", "element", "line_chart"]

WIDTH, HEIGHT = 360, 250
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 10, 12, 42
Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Series:
    """A line with its name.

    Attributes
    ----------
    name : str
    points : sequence of (x, y)
    style : {"line-1", "line-2", "guide"}
        Class in the style sheet.
    """

    name: str
    points: Points
    style: str = "line-1"


def element(
    tag: str, *children: "ET.Element | str | None", **attributes: object
) -> ET.Element:
    """Return an element; text and attributes are escaped when it is written.

    ``class_`` stands for ``class``, other underscores for hyphens.

    Examples
    --------
    >>> made = element("p", "1 < 2 ", element("b", "&"), class_='a"b')
    >>> ET.tostring(made, encoding="unicode", method="html")
    '<p class="a&quot;b">1 &lt; 2 <b>&amp;</b></p>'
    """
    names = {key: key.removesuffix("_").replace("_", "-") for key in attributes}
    made = ET.Element(tag, {names[key]: str(v) for key, v in attributes.items()})
    last: ET.Element | None = None
    for child in children:
        if isinstance(child, ET.Element):
            made.append(child)
            last = child
        elif child is not None and last is None:
            made.text = (made.text or "") + child
        elif child is not None and last is not None:
            last.tail = (last.tail or "") + child
    return made


class _Axes:
    """From data to picture, linear or logarithmic."""

    def __init__(self, xs: Sequence[float], ys: Sequence[float], log_y: bool) -> None:
        self.log_y = log_y
        self.x = _span(xs)
        self.y = _span([math.log10(y) for y in ys] if log_y else ys)

    def place(self, x: float, y: float) -> tuple[float, float]:
        height = math.log10(y) if self.log_y else y
        across = (x - self.x[0]) / (self.x[1] - self.x[0])
        up = (height - self.y[0]) / (self.y[1] - self.y[0])
        return (
            _LEFT + across * (WIDTH - _LEFT - _RIGHT),
            HEIGHT - _BOTTOM - up * (HEIGHT - _TOP - _BOTTOM),
        )

    def frame(self, x_label: str, y_label: str) -> list[ET.Element]:
        parts = []
        for value in _ticks(*self.x):
            x, _ = self.place(value, 10 ** self.y[0] if self.log_y else self.y[0])
            bottom = HEIGHT - _BOTTOM
            parts += [
                _line(x, _TOP, x, bottom, "grid"),
                _text(x, bottom + 16, f"{value:g}", "middle"),
            ]
        marks = _decades(*self.y) if self.log_y else _ticks(*self.y)
        for value in marks:
            _, y = self.place(self.x[0], 10.0**value if self.log_y else value)
            label = f"1e{value:.0f}" if self.log_y else f"{value:g}"
            parts += [
                _line(_LEFT, y, WIDTH - _RIGHT, y, "grid"),
                _text(_LEFT - 5, y + 4, label, "end"),
            ]
        middle = (HEIGHT - _BOTTOM + _TOP) / 2
        turned = _text(13, middle, y_label, "middle")
        turned.set("transform", f"rotate(-90 13 {middle:g})")
        across = (WIDTH - _RIGHT + _LEFT) / 2
        return [*parts, turned, _text(across, HEIGHT - 6, x_label, "middle")]


def line_chart(
    series: Sequence[Series],
    *,
    title: str,
    x_label: str,
    y_label: str,
    log_y: bool = False,
) -> ET.Element:
    """Return lines over a grid; a series of one point is a dot.

    ``title`` is what a screen reader says.

    Raises
    ------
    ValueError
        If there is no point, or one is not finite.
    """
    points = [point for one in series for point in one.points]
    if not points or not all(math.isfinite(v) for point in points for v in point):
        raise ValueError("series must hold finite points, at least one.")
    axes = _Axes([x for x, _ in points], [y for _, y in points], log_y)
    parts = axes.frame(x_label, y_label)
    for one in series:
        places = [axes.place(x, y) for x, y in one.points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(element("polyline", points=path, class_=one.style))
        if len(places) == 1:
            x, y = places[0]
            parts.append(
                element("circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r=3.5, class_="dot")
            )
    return _svg(title, parts)


def bar_chart(
    edges: Sequence[float],
    heights: Sequence[float],
    *,
    title: str,
    x_label: str,
    y_label: str,
    diagonal: bool = False,
) -> ET.Element:
    """Return bars between ``edges``, (n + 1,), from 0 up; NaN heights are left out."""
    axes = _Axes([edges[0], edges[-1]], [0.0, 1.0 if diagonal else max(heights)], False)
    parts = axes.frame(x_label, y_label)
    for low, high, height in zip(edges, edges[1:], heights, strict=False):
        if not height > 0.0:
            continue
        left, top = axes.place(low, height)
        right, bottom = axes.place(high, 0.0)
        parts.append(
            element(
                "rect",
                x=f"{left:.1f}",
                y=f"{top:.1f}",
                width=f"{max(right - left - 1, 0.5):.1f}",
                height=f"{bottom - top:.1f}",
                class_="bar",
            )
        )
    if diagonal:
        ends = [axes.place(0.0, 0.0), axes.place(1.0, 1.0)]
        parts.append(_line(*ends[0], *ends[1], "guide"))
    return _svg(title, parts)


def _svg(title: str, parts: Sequence[ET.Element]) -> ET.Element:
    return element(
        "svg", *parts, viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img", aria_label=title
    )


def _line(x1: float, y1: float, x2: float, y2: float, style: str) -> ET.Element:
    ends = {"x1": x1, "y1": y1, "x2": x2, "y2": y2}
    return element(
        "line", class_=style, **{key: f"{value:.1f}" for key, value in ends.items()}
    )


def _text(x: float, y: float, text: str, anchor: str) -> ET.Element:
    return element("text", text, x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchor)


def _span(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _ticks(low: float, high: float) -> list[float]:
    """Return about four round numbers in the range."""
    raw = (high - low) / 4
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= 0.999 * raw)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(i * step, 12) for i in range(first, last + 1)]


def _decades(low: float, high: float) -> list[float]:
    whole = range(math.ceil(low - 1e-9), math.floor(high + 1e-9) + 1)
    return [float(power) for power in whole[:: max(1, len(whole) // 5)]]
