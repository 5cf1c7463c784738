"""The exponents, and the count of operations against what fits really compute."""

import argparse
import math
from dataclasses import astuple, fields
from itertools import pairwise

import growth
import numpy as np
import pytest
from _extrapolation import Rates, Work, duration, seconds, work

import privfeat

N, D, M = 24, 3, 4


def test_exponent_is_the_slope_in_doubly_logarithmic_scale():
    sizes = np.array([4, 8, 16, 32])
    assert growth.exponent(sizes, 3.0 * sizes**1.5) == pytest.approx(1.5)


@pytest.mark.parametrize("values", [[], [1.0], [1.0, 0.0], [1.0, math.nan]])
def test_exponent_is_nan_where_there_is_none(values):
    assert math.isnan(growth.exponent([2, 4][: len(values)], values))


@pytest.mark.parametrize("estimator", growth.ESTIMATORS)
def test_axes_double_one_size_and_share_the_base_point(estimator):
    base = (64, 8, 2, 16)
    axes = [growth.axis_sizes(estimator, axis, base, 2) for axis in growth.AXES]
    for position, points in enumerate(axes):
        for point, following in pairwise(points):
            factors = [1] * 4
            factors[position] = 2
            assert following == tuple(np.multiply(point, factors))
    filled = [points for points in axes if points]
    assert len(filled) == (3 if estimator == "DPLeastSquares" else 4)
    sizes = growth.all_sizes(estimator, base, 2)
    assert len(sizes) == len(set(sizes)) == 1 + 2 * len(filled)


def test_exponent_table_reads_the_cells_of_each_axis():
    args = argparse.Namespace(base=(64, 8, 2, 16), doublings=2, estimators=["DPFC"])
    cells = {}
    for n, d, m, steps in growth.all_sizes("DPFC", args.base, args.doublings):
        cell = {"seconds": n * d**2 * m * steps, "mib": n * d}
        cells[growth.cell_key("DPFC", (n, d, m, steps))] = cell
    time, memory = growth.exponent_table(cells, args).splitlines()[-2:]
    assert [cell.split()[0] for cell in time.split("|")[3:7]] == [
        *("1.00", "2.00", "1.00", "1.00")
    ]
    assert [cell.split()[0] for cell in memory.split("|")[3:5]] == ["1.00", "1.00"]


@pytest.mark.filterwarnings("ignore::privfeat.PrivacyWarning")
@pytest.mark.parametrize(
    ("estimator", "parameters"),
    [
        ("DPFC", {"n_iter": 3}),
        ("DPAdamLinear", {"n_iter": 3}),
        ("DPLeastSquares", {"class_gram": True}),
        ("DPNewton", {"n_iter": 1}),
        ("DPNewton", {"n_iter": 3}),
    ],
)
def test_work_counts_what_a_fit_sums(estimator, parameters, plant):
    """Products, Gram matrices and passes, from the calls that a fit makes."""
    products, gram = 4 * N * D * M, N * D * (D + 1)
    costs = {
        "exact gradient": (products, 0, 1),
        "exact Gram matrix": (0, gram, 1),
        "exact Gram matrices of the classes": (0, gram, 1),
        "exact sums of the classes": (products / 2, 0, 1),
        # scores, and one Gram matrix for each class
        "exact curvature matrices": (products / 2, M * gram, 1),
    }
    total = np.array([0.0, 0.0, 1.0])  # the pass of the mean
    sent: list[int] = []

    def counted(name, function):
        def call(*arguments, **keywords):
            total[:] += costs[name]
            return function(*arguments, **keywords)

        return call

    release = plant.genuine("release of a sum")

    def released(mechanism, name, exact, **options):
        found = release(mechanism, name, exact, **options)
        sent.append(found.value.size)
        return found

    plant("release of a sum", released)

    for name in costs:
        plant(name, counted(name, plant.genuine(name)))
    X = np.random.default_rng(0).normal(size=(N, D))
    getattr(privfeat, estimator)(
        classes=range(M), fit_intercept=False, **parameters
    ).fit(X, np.arange(N) % M)
    found = work(estimator, N, D, M, parameters.get("n_iter", 1))
    np.testing.assert_allclose(
        total, [found.gradient, found.gram, found.passes], rtol=1e-12
    )
    assert (len(sent), sum(sent)) == (found.sums, found.values)


def test_work_refuses_an_unknown_estimator():
    with pytest.raises(ValueError, match="estimator must be"):
        work("DPSomething", 1, 1, 1, 1)


def test_seconds_divide_all_but_the_systems_and_what_is_sent():
    todo = Work(6.0, 10.0, 7.0, 3.0, sums=5.0, values=11.0)
    rates = Rates(2.0, 5.0, 7.0, 10.0, 20.0, network=4.0, reductions=8.0)
    # a fit reads its file once more than it passes over it: before the charge
    shared = 6 / 2 + 10 / 5 + (4 * 5) * (3 / 10 + (3 + 1) * 2 / 20)
    assert seconds(todo, rates, 4, 5, 1) == pytest.approx(shared + 1)
    # two reductions of each sum, of 8 bytes a value, in a ring
    sent = 2 * 5 / 8 * 7 + 2 * 11 * 8 / 4 * 2 * 7 / 8
    assert seconds(todo, rates, 4, 5, 8) == pytest.approx(shared / 8 + 1 + sent)


def test_seconds_fall_with_every_rate():
    todo, slow = Work(*[1.0] * len(fields(Work))), Rates(*[1.0] * len(fields(Rates)))
    for i in range(len(fields(Rates))):
        rates = list(astuple(slow))
        rates[i] = 2.0
        assert seconds(todo, Rates(*rates), 1, 1, 2) < seconds(todo, slow, 1, 1, 2)


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.5, "1.5 s"), (150, "2.5 min"), (9000, "2.5 h"), (216000, "2.5 d")],
)
def test_duration_reads_well(value, text):
    assert duration(value) == text
