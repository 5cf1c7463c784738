"""The benchmark of priors, without its data."""

import numpy as np
import pytest

from privfeat import DPFC

prior = pytest.importorskip("prior")
bars = pytest.importorskip("prior_bars")


def test_worse_priors_mix_up_half_of_the_classes_and_all():
    coef = np.arange(20.0).reshape(10, 2)
    found = prior.worse(coef)
    assert np.sum(np.any(found["half wrong"] != coef, axis=1)) == 5
    assert sorted(found["random"][:, 0]) == sorted(coef[:, 0])


def test_losses_are_cells_below_the_better_of_the_two():
    cells = {
        "set, kind, none": {"1": [60.0, 62.0], "alone": None},
        "set, kind, good": {"1": [60.6], "alone": 50.0},
        "set, kind, bad": {"1": [60.4], "alone": 5.0},
        "set, kind, sure": {"1": [69.0], "alone": 70.0},
    }
    assert prior.losses(cells) == ["set, kind, bad, 1", "set, kind, sure, 1"]


def test_a_prior_alone_scores_rows_of_unit_norm():
    rows = np.array([[3.0, 0.0], [0.0, 2.0], [0.5, 0.5], [0.5, 0.5]])
    data = (rows, np.array(["a", "b", "a", "b"]))
    assert prior.alone(np.eye(2), {"classes": ["a", "b"]}, data, data) == 75.0
    assert prior.alone(None, {}, data, data) is None


def test_evidence_grows_with_the_budget_and_falls_with_mixed_classes():
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=300)
    train = np.eye(3, 4)[labels] + rng.normal(size=(300, 4)) / 5.0, labels
    found = [
        prior.evidence(DPFC(epsilon=epsilon, classes=range(3)), coef, train)
        for epsilon in (0.1, 1.0)
        for coef in (np.eye(3, 4), np.roll(np.eye(3, 4), 1, axis=0))
    ]
    assert found[2] > 5.0 * found[0] > 0.0 > found[1] > found[3]


def test_heads_of_digits_are_right_half_wrong_and_random():
    train, test, options, heads = prior.digits()
    assert train[0].shape == (1297, 64)
    assert test[0].shape == (400, 64)
    found = {
        name: prior.alone(head, options, train, test) for name, head in heads.items()
    }
    assert found["right"] > 85.0
    assert 35.0 < found["half wrong"] < 60.0
    assert found["random"] < 20.0


def test_both_halves_of_the_bar_are_judged_in_every_cell():
    cells = {
        "set, kind, none, 1": [60.0, 62.0],
        "set, kind, good, 1": [63.0, 63.0],
        "set, kind, good, 8": [95.0, 95.0],
        "set, kind, none, 8": [96.0, 96.0],
        "set, kind, bad, 1": [60.0, 60.0],
    }
    alone = {"set, kind, good": 50.0, "set, kind, bad": 5.0}
    found = bars.judge(bars.cells_of({"cells": cells, "alone": alone}))
    # at 8 too little, beyond the errors, and too near to 100 for the second half
    assert found["set, kind, good"] == [2, 1, 1, 1, 1]
    assert found["set, kind, bad"] == [1, 0, 0, 1, 0]
    assert bars.shown([2, 1, 1, 1, 1]) == ("1 of 2 (1 beyond two errors)", "1 of 1")


def test_fits_to_few_records_are_judged_one_by_one():
    test = {
        "DPFC 1": {"1": [0.1, 0.1], "50": [0.7, 0.7]},
        "DPFC, names 1": {"1": [0.62, 0.62], "50": [0.75, 0.75]},
        "names alone 1": {"1": [0.62, 0.62], "50": [0.62, 0.62]},
    }
    found = bars.judge(bars.few_of({"set": "texts", "test": test}))
    assert found == {"texts, few records, DPFC, names": [2, 2, 0, 2, 1]}


def test_names_of_texts_are_compared_to_no_prior_alone():
    cells = {
        "films, without privacy": [0.8],
        "films, no prior, 1": [0.7, 0.7],
        "films, names as prior, 1": [0.75, 0.75],
    }
    result = {"cells": cells, "settings": {"estimator": "DPAdamLinear"}}
    found = bars.judge(bars.cells_of(result))
    assert found == {"films, DPAdamLinear, names as prior": [1, 1, 0, 0, 0]}
    assert bars.shown([1, 1, 0, 0, 0])[1] == "-"
