import math
import re
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privfeat.report.svg import bar_chart, line_chart

LABELS = {"title": "t", "x_label": "x", "y_label": "y"}


def paths_of(chart, style):
    """Return the corners of each path whose style holds a text."""
    found = [p for p in ET.fromstring(chart).iter("path") if style in p.get("style")]
    return [
        np.array(re.findall(r"[-\d.]+", path.get("d")), float).reshape(-1, 2)
        for path in found
    ]


def points_of(chart):
    (line,) = paths_of(chart, "stroke: var(--one)")
    return line


def texts_of(chart):
    return [text.text for text in ET.fromstring(chart).iter("text")]


def test_points_are_where_they_belong():
    chart = line_chart([0, 1, 2], [0, 10, 5], **LABELS)
    (x0, y0), (x1, y1), (x2, y2) = points_of(chart)
    assert x1 - x0 == pytest.approx(x2 - x1)
    assert y0 - y1 == pytest.approx(2 * (y0 - y2))  # down is larger
    assert {"0", "10", "2.0", "x", "y"} <= set(texts_of(chart))


def test_logarithmic_heights():
    chart = line_chart([0, 1, 2], [1e-8, 1e-4, 1.0], **LABELS, log_y=True)
    (_, y0), (_, y1), (_, y2) = points_of(chart)
    assert y0 - y1 == pytest.approx(y1 - y2)
    assert "1e-4" in texts_of(chart)


def test_one_point_is_a_dot():
    chart = line_chart([], [], dot=(1.0, 1e-5), **LABELS, log_y=True)
    (dot,) = paths_of(chart, "stroke: var(--two)")
    assert len(np.unique(dot, axis=0)) == 1
    assert "stroke-linecap: round" in chart


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(*[st.floats(-1e9, 1e9)] * 2), min_size=2, max_size=9))
def test_everything_lies_inside_the_picture(points):
    chart = line_chart(*zip(*points, strict=True), **LABELS)
    assert all(0 <= x <= 360 and 0 <= y <= 250 for x, y in points_of(chart))


def test_bars_stand_on_the_axis_and_nan_is_left_out():
    chart = bar_chart([0, 0.5, 1.0], [0.5, math.nan], **LABELS, diagonal=True)
    (bar,) = paths_of(chart, "fill: var(--one)")
    ((left, bottom), (right, top)) = paths_of(chart, "stroke: var(--soft)")[0]
    assert bar[:, 1].max() == pytest.approx(bottom)
    assert np.ptp(bar[:, 1]) == pytest.approx(0.5 * (bottom - top))
    assert left == pytest.approx(bar[:, 0].min())
    assert bar[:, 0].max() < (left + right) / 2


@pytest.mark.parametrize(
    "bad", [([], []), ([0.0], [math.nan]), ([math.inf], [1.0]), ([0.0, 1.0], [0.0])]
)
def test_points_must_be_finite(bad):
    with pytest.raises(ValueError, match=r"finite points|along dimension"):
        line_chart(*bad, **LABELS)


def test_charts_are_the_same_whatever_the_settings():
    from matplotlib import rc_context, rcParams

    known = dict(rcParams)
    first = bar_chart([0, 1], [0.5], **LABELS)
    with rc_context({"font.size": 30, "svg.hashsalt": "other", "axes.grid": False}):
        assert bar_chart([0, 1], [0.5], **LABELS) == first
    assert dict(rcParams) == known


def test_charts_hold_no_names_links_or_dates():
    chart = line_chart([0, 1], [0, 1], dot=(0, 1), **LABELS, diagonal=True)
    for part in ("id=", "href", "url(", "://", "<style", "<metadata", "#"):
        assert part not in chart


class Reader(HTMLParser):
    """Notes the tags, and the text of the title."""

    def __init__(self):
        super().__init__()
        self.tags, self.title = [], ""

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        if self.tags[-1:] == ["title"]:
            self.title += data


def test_title_is_escaped_and_names_the_picture():
    chart = line_chart([0], [1], **LABELS | {"title": '</title><b>"&'})
    reader = Reader()
    reader.feed(str(chart))
    assert '</title><b>"&' in reader.title
    assert "b" not in reader.tags
    assert chart.startswith('<svg role="img"')


def test_diagonal_stays_where_the_axes_are():
    """Nothing is clipped, so a line must not begin to the left of the bars."""
    chart = bar_chart([0.5, 0.75, 1.0], [0.5, 1.0], **LABELS, diagonal=True)
    (guide,) = paths_of(chart, "stroke-dasharray")
    (bar, *_) = paths_of(chart, "fill: var(--one)")
    assert guide[:, 0].min() >= bar[:, 0].min() - 5.0
