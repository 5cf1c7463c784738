"""What `planned_recall` and `planned_roc_auc` promise is what an evaluation finds."""

import math
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit, ndtri

from privfeat.metrics import (
    evaluation_of_predictions,
    planned_recall,
    planned_roc_auc,
)

N_RARE, N_OTHERS, FOUND = 100, 400, 0.8

GUIDE = Path(__file__).parents[2] / "docs/guides/evaluation.md"


def measured(seed, **budget):
    """Return the recall of the rare class, of which eighty in a hundred are found."""
    y = np.repeat([1, 0], [N_RARE, N_OTHERS])
    p = np.where(np.arange(len(y)) < FOUND * N_RARE, 0.9, 0.1)
    found = evaluation_of_predictions(
        np.c_[1 - p, p], y, classes=[0, 1], random_state=seed, **budget
    )
    return found.recall.each()[1]


@pytest.mark.filterwarnings("ignore::privfeat.PrivacyWarning")
@pytest.mark.parametrize("scores", [True, False])
@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_planned_recall_is_as_wide_as_those_that_are_found(scores, adjacency):
    budget = {"epsilon": 4.0, "scores": scores, "adjacency": adjacency}
    planned = planned_recall(N_RARE, recall=FOUND, **budget)
    widths = [
        found.high - found.low for found in (measured(s, **budget) for s in range(30))
    ]
    assert planned.high - planned.low == pytest.approx(np.mean(widths), rel=0.1)


@pytest.mark.filterwarnings("ignore::privfeat.PrivacyWarning")
def test_planned_recall_of_users_has_their_noise():
    budget = {"epsilon": 20.0, "max_group_size": 2}
    planned = planned_recall(N_RARE, recall=FOUND, **budget)
    users = np.arange(N_RARE + N_OTHERS) // 2
    found = [measured(seed, groups=users, **budget) for seed in range(30)]
    widths = [one.high - one.low for one in found]
    assert planned.high - planned.low == pytest.approx(np.mean(widths), rel=0.1)


@pytest.mark.filterwarnings("ignore::privfeat.PrivacyWarning")
def test_planned_recall_without_noise_is_the_interval_of_sampling():
    exact = measured(None, epsilon=math.inf)
    planned = planned_recall(N_RARE, recall=FOUND, epsilon=math.inf)
    assert (planned.low, planned.high) == pytest.approx((exact.low, exact.high))


def test_planned_recall_of_too_few_records_is_unknown():
    planned = planned_recall(3, epsilon=0.5)
    assert math.isnan(planned.value)
    assert (planned.low, planned.high) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"n_records": 0}, "n_records"),
        ({"recall": 1.1}, "recall"),
        ({"recall": math.nan}, "recall"),
        ({"n_classes": 1}, "n_classes"),
        ({"max_group_size": 0}, "max_group_size"),
        ({"confidence": 1.0}, "confidence"),
        ({"epsilon": 0.0}, "epsilon"),
    ],
)
def test_planned_recall_refuses_what_is_out_of_range(given, name):
    with pytest.raises(ValueError, match=f"^{name} must be"):
        planned_recall(**({"n_records": 100} | given))


def test_planned_recall_is_what_the_guide_says():
    columns = [(0.5, True), (1.0, True), (2.0, True), (0.5, False), (1.0, False)]
    for n in (25, 50, 100, 200, 500, 1000):
        row = [f"{n:,}"]
        for epsilon, scores in columns:
            found = planned_recall(n, epsilon=epsilon, scores=scores)
            told = f"{found.low:.2f} to {found.high:.2f}"
            row.append("unknown" if math.isnan(found.value) else told)
        assert f"| {' | '.join(row)} |" in GUIDE.read_text(encoding="utf-8")


def measured_area(seed, most, **budget):
    """Return the area of normal scores, which is 0.8, of 100 among 800 records."""
    rng, apart = np.random.default_rng(seed), math.sqrt(2.0) * ndtri(0.8)
    y = np.repeat([1, 0], [100, 700])
    x = rng.normal(size=len(y)) + apart * y
    p = expit(math.log(1 / 7) + apart * x - apart**2 / 2)
    if most > 1:
        budget |= {"groups": np.arange(len(y)) // most, "max_group_size": most}
    return evaluation_of_predictions(
        np.c_[1 - p, p], y, classes=[0, 1], random_state=seed, **budget
    ).roc_auc


@pytest.mark.filterwarnings("ignore::privfeat.PrivacyWarning")
@pytest.mark.parametrize(
    ("epsilon", "adjacency", "most"),
    [
        (1.0, "add_remove", 1),
        (2.0, "replace_one", 1),
        (4.0, "add_remove", 2),
        (math.inf, "add_remove", 1),
    ],
)
def test_planned_area_is_as_wide_as_those_that_are_found(epsilon, adjacency, most):
    budget = {"epsilon": epsilon, "adjacency": adjacency}
    planned = planned_roc_auc(100, 700, max_group_size=most, **budget)
    found = [measured_area(seed, most, **budget) for seed in range(20)]
    width = np.mean([one.high - one.low for one in found])
    assert planned.high - planned.low == pytest.approx(width, rel=0.1)
    assert planned.value == 0.8


def test_planned_area_of_too_few_records_is_unknown():
    planned = planned_roc_auc(3, 100, epsilon=0.5)
    assert math.isnan(planned.value)
    assert (planned.low, planned.high) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"n_positives": 0}, "n_positives"),
        ({"n_negatives": 0}, "n_negatives"),
        ({"area": 0.5}, "area"),
        ({"area": math.nan}, "area"),
        ({"max_group_size": 0}, "max_group_size"),
        ({"confidence": 1.0}, "confidence"),
        ({"epsilon": 0.0}, "epsilon"),
    ],
)
def test_planned_area_refuses_what_is_out_of_range(given, name):
    with pytest.raises(ValueError, match=f"^{name} must be"):
        planned_roc_auc(**({"n_positives": 100, "n_negatives": 700} | given))


def test_planned_area_is_what_the_guide_says():
    for n in (25, 50, 100, 200, 500, 1000):
        row = [f"{n:,} of {8 * n:,}"]
        for epsilon in (0.5, 1.0, 2.0, 4.0):
            found = planned_roc_auc(n, 7 * n, epsilon=epsilon)
            told = f"{found.low:.2f} to {found.high:.2f}"
            row.append("unknown" if math.isnan(found.value) else told)
        assert f"| {' | '.join(row)} |" in GUIDE.read_text(encoding="utf-8")
