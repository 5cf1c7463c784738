import math
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privfeat.report.svg import Series, bar_chart, element, line_chart

LABELS = {"title": "t", "x_label": "x", "y_label": "y"}


def points_of(chart):
    (line,) = chart.findall("polyline[@class='line-1']")
    return [tuple(map(float, pair.split(","))) for pair in line.get("points").split()]


def test_points_are_where_they_belong():
    chart = line_chart([Series("a", [(0, 0), (1, 10), (2, 5)])], **LABELS)
    (x0, y0), (x1, y1), (x2, y2) = points_of(chart)
    assert x1 - x0 == pytest.approx(x2 - x1)
    assert y0 - y1 == pytest.approx(2 * (y0 - y2))  # down is larger
    texts = [text.text for text in chart.iter("text")]
    assert {"0", "10", "2", "x", "y"} <= set(texts)


def test_logarithmic_heights():
    chart = line_chart(
        [Series("a", [(0, 1e-8), (1, 1e-4), (2, 1.0)])], **LABELS, log_y=True
    )
    (_, y0), (_, y1), (_, y2) = points_of(chart)
    assert y0 - y1 == pytest.approx(y1 - y2)
    assert "1e-4" in [text.text for text in chart.iter("text")]


def test_one_point_is_a_dot():
    chart = line_chart([Series("a", [(1.0, 1e-5)])], **LABELS, log_y=True)
    assert len(chart.findall("circle")) == 1


@given(st.lists(st.tuples(*[st.floats(-1e9, 1e9)] * 2), min_size=2, max_size=9))
def test_everything_lies_inside_the_picture(points):
    chart = line_chart([Series("a", points)], **LABELS)
    assert all(0 <= x <= 360 and 0 <= y <= 250 for x, y in points_of(chart))


def test_bars_stand_on_the_axis_and_nan_is_left_out():
    chart = bar_chart([0, 0.5, 1.0], [0.5, math.nan], **LABELS, diagonal=True)
    (bar,) = chart.findall("rect")
    assert float(bar.get("height")) == pytest.approx(0.5 * (250 - 12 - 42), abs=0.1)
    assert len(chart.findall("line[@class='guide']")) == 1


@pytest.mark.parametrize("bad", [[], [(0.0, math.nan)], [(math.inf, 1.0)]])
def test_points_must_be_finite(bad):
    with pytest.raises(ValueError, match="finite points"):
        line_chart([Series("a", bad)], **LABELS)


class Reader(HTMLParser):
    """Notes the tags, and their titles."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs).get("title")))


@given(st.text())
def test_text_and_attributes_are_escaped(text):
    made = element("p", text, "b", element("i"), text, title=text)
    written = ET.tostring(made, encoding="unicode", method="html")
    reader = Reader()
    reader.feed(written)
    reader.close()
    assert reader.found == [("p", text), ("i", None)]
