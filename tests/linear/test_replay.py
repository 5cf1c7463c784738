"""The fits on neighbouring data: what may differ, and by how much.

Every exact sum may differ by the declared sensitivity only, and nothing else may differ
at all. The same `check_*` functions must notice planted faults.
"""

import math

import numpy as np
import pytest
from scipy import stats

from privfeat import DPFC, DPAdamLinear, DPLeastSquares, DPNearestMean, DPNewton
from tests.linear.replaying import (
    answered,
    assert_same_state,
    check_independence,
    check_noise,
    check_sensitivity,
    recorded,
    replay,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning"),
]
FITS = {
    "ls": (DPLeastSquares, {}),
    "ls-class": (DPLeastSquares, {"class_gram": True}),
    "ls-full": (DPLeastSquares, {"class_gram": True, "gram_noise": "full"}),
    "newton-softmax": (DPNewton, {"n_iter": 2}),
    "newton-sigmoid": (
        DPNewton,
        {"n_iter": 2, "loss": "sigmoid", "hessian_noise": "full"},
    ),
    "newton-once": (DPNewton, {"n_iter": 1}),
    "newton-sigmoid-once": (DPNewton, {"n_iter": 1, "loss": "sigmoid"}),
    "fc-softmax": (DPFC, {"n_iter": 3}),
    "fc-sigmoid": (
        DPFC,
        {
            "n_iter": 3,
            "loss": "sigmoid",
            "gram_clip_norm": 0.3,
            "gradient_clip_norm": 0.2,
            "gram_noise": "full",
        },
    ),
    "fc-squared": (
        DPFC,
        {"n_iter": 3, "loss": "squared", "gram_clip_norm": 5.0},
    ),
    "adam-softmax": (DPAdamLinear, {"n_iter": 3, "gradient_clip_norm": 2.0}),
    "adam-sigmoid": (DPAdamLinear, {"n_iter": 3, "loss": "sigmoid"}),
    "ls-weighted": (DPLeastSquares, {"class_weight": [0.1, 1.0, 0.4]}),
    "ls-balanced": (DPLeastSquares, {"class_weight": "balanced", "class_gram": True}),
    "fc-weighted": (
        DPFC,
        {"n_iter": 3, "class_weight": {0: 50}, "gram_clip_norm": 0.3},
    ),
    "fc-balanced": (DPFC, {"n_iter": 3, "class_weight": "balanced"}),
    "adam-balanced": (DPAdamLinear, {"n_iter": 3, "class_weight": "balanced"}),
    "adam-squared": (DPAdamLinear, {"n_iter": 3, "loss": "squared"}),
    "nearest": (DPNearestMean, {}),
}
ROW_OPTIONS = {
    "unit": {"row_scaling": "unit"},
    "unit-intercept": {"row_scaling": "unit", "fit_intercept": True, "clip_norm": 0.7},
    "clip": {"row_scaling": "clip", "clip_norm": 1.3},
    "clip-intercept": {
        "row_scaling": "clip",
        "fit_intercept": True,
        "intercept_scaling": 0.3,
    },
}
EXTREMES = [
    np.array([1e4, 0.0, 0.0, 0.0]),
    np.array([-1e300, 1e300, 1e-300, 5e-324]),
    np.array([0.0, -1e4, 1.0, 0.0]),
    np.zeros(4),
    np.full(4, 1e-310),
    np.array([-1e4, 0.0, 0.0, 0.0]),
]


def neighbours(X, y, adjacency):
    """Data sets, each with neighbours; one loses the only record of a class."""
    if adjacency == "add_remove":
        more = [(0, 0, 0), (9, 1, 1), (20, 2, 2), (31, 4, 0)]
        yield (
            (X, y),
            [
                (
                    np.insert(X, place, EXTREMES[row], axis=0),
                    np.insert(y, place, label),
                )
                for place, row, label in more
            ],
        )
    else:
        for one, two, labels in [
            (0, 1, (0, 0)),
            (0, 5, (1, 1)),
            (2, 0, (0, 2)),
            (4, 3, (1, 2)),
        ]:
            left, right = X.copy(), X.copy()
            left[7], right[7] = EXTREMES[one], EXTREMES[two]
            y_left, y_right = y.copy(), y.copy()
            y_left[7], y_right[7] = labels
            yield (left, y_left), [(right, y_right)]
    rare = y.copy()
    rare[rare == 2] = 0
    rare[4] = 2
    if adjacency == "add_remove":
        yield (X, rare), [(np.delete(X, 4, axis=0), np.delete(rare, 4))]
    else:
        yield (X, rare), [(X, np.where(rare == 2, 1, rare))]


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
@pytest.mark.parametrize("rows", ROW_OPTIONS)
@pytest.mark.parametrize("fit", FITS)
def test_fit_on_neighbours_differs_by_the_declared_sensitivity_alone(
    fit, rows, adjacency, center, three_classes, spy
):
    """With a centre too: its sum moves as declared, and then both use the release."""
    cls, options = FITS[fit]

    def make():
        return cls(
            epsilon=2.0,
            classes=range(3),
            adjacency=adjacency,
            center=center,
            random_state=0,
            **options,
            **ROW_OPTIONS[rows],
        )

    for one, others in neighbours(*three_classes, adjacency):
        first, calls = recorded(spy, make, one)
        for two in others:
            second, other_calls = answered(spy, make, calls, two)
            check_sensitivity(first.privacy_, calls, other_calls)
            assert_same_state(first, second)


def test_fit_on_neighbours_keeps_other_records_contributions(spy):
    """1,024 copies of a record next to one more, which needs another chunk.

    The softmax of the copies must not be compiled to another order of operations.
    """
    rng = np.random.default_rng(0)
    for _ in range(3):
        X = np.repeat(rng.normal(size=(1, 5)), 1025, axis=0)
        y = np.repeat(rng.integers(0, 3, 1), 1025)

        def make():
            return DPFC(epsilon=2.0, classes=range(3), n_iter=3, random_state=0)

        for n_rows in (64, 512, 1024):
            first, _, calls, other_calls = replay(
                spy, make, (X[:n_rows], y[:n_rows]), (X[: n_rows + 1], y[: n_rows + 1])
            )
            check_sensitivity(first.privacy_, calls, other_calls)


@pytest.mark.statistical
@pytest.mark.parametrize("fit", FITS)
def test_fit_draws_the_declared_noise(fit, spy):
    """False-positive rate 1e-6 per query; half or twice the noise fails always."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 12)), np.arange(20) % 3
    cls, options = FITS[fit]
    clf = cls(epsilon=2.0, classes=range(3), random_state=1, **options).fit(X, y)
    check_noise(clf.privacy_, spy.calls)


@pytest.mark.statistical
@pytest.mark.parametrize("fit", FITS)
def test_fit_draws_independent_noise_for_classes_steps_and_blocks(fit, spy):
    """False-positive rate 1e-6 per shape; equal draws give a p-value of zero."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 12)), np.arange(20) % 3
    cls, options = FITS[fit]
    cls(epsilon=2.0, classes=range(3), random_state=1, **options).fit(X, y)
    check_independence(spy.calls)


@pytest.mark.parametrize("fit", FITS)
def test_fit_releases_what_the_statement_says(fit, three_classes, spy):
    cls, options = FITS[fit]
    clf = cls(epsilon=2.0, **options).fit(*three_classes)
    for record in clf.privacy_.releases:
        blocks = 3 if record.name in ("class_grams", "hessian") else 1
        assert len(spy.of(record.name)) == record.count * blocks
    assert {call.name for call in spy.calls} == {
        record.name for record in clf.privacy_.releases
    }


@pytest.mark.parametrize("fit", FITS)
def test_fit_without_privacy_adds_nothing(fit, three_classes, spy):
    cls, options = FITS[fit]
    clf = cls(epsilon=math.inf, **options).fit(*three_classes)
    assert all(np.all(call.noise == 0.0) for call in spy.calls)
    assert not clf.privacy_.private


def test_poisson_sampling_takes_all_steps_on_empty_batches(three_classes, spy):
    clf = DPAdamLinear(
        noise_multiplier=1.0,
        accounting="pld",
        sampling_prob=1e-6,
        n_iter=20,
        classes=range(3),
    ).fit(*three_classes)
    steps = spy.of("gradient")
    assert len(steps) == len(spy.calls) - 1 == clf.n_iter_ == 20
    assert sum(np.any(call.exact != 0.0) for call in steps) <= 2
    assert np.all([np.any(call.noise != 0.0) for call in spy.calls])


@pytest.mark.statistical
def test_poisson_sampling_takes_each_record_with_its_probability(spy):
    """Binomial test over 40 steps of 50 records; false-positive rate 1e-6."""
    X, y = np.tile([[1.0, 0.0]], (50, 1)), np.arange(50) % 2
    DPAdamLinear(
        noise_multiplier=1e4,
        accounting="pld",
        sampling_prob=0.3,
        n_iter=40,
        learning_rate=1e-9,
        classes=range(2),
        center=False,
        random_state=0,
    ).fit(X, y * 0)
    taken = [round(abs(call.exact[0, 0]) / 0.5) for call in spy.calls]
    p_value = stats.binomtest(sum(taken), 2000, 0.3).pvalue
    assert p_value > 1e-6
    assert len(set(taken)) > 5
