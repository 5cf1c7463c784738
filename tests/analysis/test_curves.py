"""The curves between which an estimator is recommended."""

import json
import re

import numpy as np
import pytest

from privfeat.analysis import curves
from privfeat.analysis.planning import plan

TWO = ["DPFC", "DPNearestMean"]


def measured(name, n_classes, first, second):
    """Cells of accuracies, each with a standard error of 0.02."""
    first, second = (
        [[(accuracy, 0.02) for accuracy in row] for row in rows]
        for rows in (first, second)
    )
    return {
        "name": name,
        "n_classes": n_classes,
        "records_per_class": [1, 100],
        "epsilons": [1.0, 4.0],
        "cells": {"DPFC": first, "DPNearestMean": second},
    }


@pytest.fixture
def drawn(plant):
    """Two sets of ten classes, and one of ninety."""
    sets = [
        measured("one", 10, [[0.1, 0.2], [0.9, 1.0]], [[0.3, 0.4], [0.5, 0.6]]),
        measured("two", 10, [[0.1, 0.2], [0.7, 0.8]], [[0.3, 0.4], [0.5, 0.6]]),
        measured("three", 90, [[0.0, 0.0], [0.2, 0.2]], [[0.0, 0.0], [0.4, 0.4]]),
    ]
    plant("measured curves", lambda: sets)


@pytest.mark.parametrize(
    ("point", "expected"),
    [
        ((100, 10, 1.0), (0.8, 0.5)),  # a cell: the mean of two sets
        ((10, 10, 1.0), (0.45, 0.4)),  # half way in the logarithm of records
        ((100, 10, 2.0), (0.85, 0.55)),  # of epsilon
        ((100, 30, 1.0), (0.5, 0.45)),  # of classes
        ((1e9, 1000, 100.0), (0.2, 0.4)),  # the nearest cell
        ((100, 2, 0.1), (0.45, 0.4)),  # a tenth of epsilon: of the records
    ],
)
def test_accuracy_is_between_the_cells(drawn, point, expected):
    found = curves.measured_accuracy(TWO, *point)
    accuracies = [found[name].accuracy for name in TWO]
    np.testing.assert_allclose(accuracies, expected, atol=1e-12)
    assert found["DPFC"].error == pytest.approx(0.02)


def test_accuracy_of_each_set_is_told_apart(drawn):
    """A mean of three very different sets promised 76 % where 58 came out."""
    found = curves.accuracy_of_each_set("DPFC", 100, 1.0)
    assert found == {
        "one (10 classes)": 0.9, "two (10 classes)": 0.7, "three (90 classes)": 0.2,
    }  # fmt: skip


def test_estimators_that_were_not_measured_are_left_out(drawn):
    assert curves.measured_accuracy(["DPNewton"], 10, 10, 1.0) == {}
    found = curves.measured_accuracy(["DPFC", "DPNewton"], 1, 10, 1.0)
    assert found == {"DPFC": curves.Measured(0.1, 0.02)}


@pytest.mark.parametrize(
    ("n_samples", "options", "best"),
    [
        (1000, {}, "DPFC"),
        (20, {}, "DPNearestMean"),
        (60, {}, "DPFC"),  # behind, but by less than the standard error
        (100, {}, "DPFC"),
        # about as many records at half of epsilon
        (100, {"adjacency": "replace_one"}, "DPFC"),
        (40, {"adjacency": "replace_one"}, "DPNearestMean"),
    ],
)
def test_plan_recommends_what_was_measured_to_be_better(
    drawn, n_samples, options, best
):
    found = plan(n_samples, 20, 10, epsilon=1.0, **options)
    assert found.recommended == best
    each = curves.accuracy_of_each_set(best, n_samples / 10, 0.5 if options else 1.0)
    assert [f"{one:.0%}" in found.reason for one in each.values()] == [True] * 3


def test_plan_takes_what_fits_in_memory(drawn):
    assert plan(20, 50_000, 10, epsilon=1.0).recommended == "DPAdamLinear"
    found = plan(1000, 20, 10, epsilon=1.0, estimators=["DPNewton"])
    assert found.recommended == "DPNewton"
    found = plan(1000, 50_000, 10, epsilon=1.0, estimators=["DPNewton"])
    assert "no estimator" in found.reason


def test_curves_of_the_package_are_whole_and_say_where_they_come_from():
    for found in json.loads(curves._FILE.read_text())["sets"]:
        assert found["sources"]
        for source in found["sources"]:
            assert re.fullmatch(
                r"python benchmarks/few.py .*, commit [0-9a-f]{7}", source
            )
        shape = len(found["records_per_class"]), len(found["epsilons"]), 2
        for cells in map(np.array, found["cells"].values()):
            assert cells.shape == shape
            assert np.all((cells >= 0.0) & (cells <= 1.0))
