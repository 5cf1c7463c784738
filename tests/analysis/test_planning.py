import math

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from privfeat import linear
from privfeat.analysis.planning import ESTIMATORS, expected_loss, plan


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return train_test_split(X, y, test_size=0.3, random_state=0)


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_noise_is_what_the_fit_draws(name, adjacency):
    X, y = np.eye(6)[np.arange(60) % 6], np.arange(60) % 3
    budget = {"epsilon": 2.0, "delta": 1e-6, "adjacency": adjacency}
    found = plan(60, 6, 3, estimators=[name], **budget)
    fitted = getattr(linear, name)(classes=range(3), **budget).fit(X, y)
    planned = [
        (r.query.name, r.query.count, r.noise_stddev, r.query.l2_sensitivity)
        for r in found.estimators[0].releases
    ]
    drawn = [
        (r.name, r.count, r.noise_stddev, r.l2_sensitivity)
        for r in fitted.privacy_.releases
    ]
    assert planned == drawn


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "epsilon"),
    [
        ("DPLeastSquares", 0.1),
        ("DPLeastSquares", 0.3),
        ("DPLeastSquares", 1.0),
        ("DPLeastSquares", 3.0),
        ("DPFC", 0.3),
        ("DPFC", 1.0),
    ],
)
@pytest.mark.filterwarnings("ignore::privfeat.PrivacyWarning")
def test_expectation_is_near_what_digits_lose(digits, name, epsilon):
    """Within 15 points of two fits: it tells hopeless, tight and ample apart."""
    X, X_test, y, y_test = digits
    row = plan(len(X), 64, 10, epsilon=epsilon, estimators=[name]).estimators[0]
    cls = getattr(linear, name)
    free = cls(epsilon=math.inf, classes=range(10)).fit(X, y).score(X_test, y_test)
    noisy = [
        cls(epsilon=epsilon, classes=range(10), random_state=seed)
        .fit(X, y)
        .score(X_test, y_test)
        for seed in (0, 1)
    ]
    assert abs(free * row.expected_loss - (free - np.mean(noisy))) < 0.15


def test_twice_the_data_halves_the_noise():
    found = plan(1000, 20, 5, epsilon=0.5)
    for row, twice in zip(found.estimators, found.more_data, strict=True):
        again = plan(2000, 20, 5, epsilon=0.5, estimators=[row.estimator])
        assert twice == again.estimators[0]
        assert twice.score_noise == pytest.approx(row.score_noise / 2)
        assert twice.expected_loss < row.expected_loss


def test_more_data_keep_the_noise_of_scores_at_a_smaller_epsilon():
    found = plan(1000, 20, 5, epsilon=0.5, data_factor=4.0)
    again = plan(
        4000, 20, 5, epsilon=found.same_noise_epsilon, estimators=["DPLeastSquares"]
    )
    noise = found.estimators[1].score_noise
    assert again.estimators[0].score_noise == pytest.approx(noise, rel=1e-3)
    assert found.more_data[1].score_noise == pytest.approx(noise / 4)
    with pytest.raises(ValueError, match="data_factor must be"):
        plan(1000, 20, 5, epsilon=0.5, data_factor=0.0)


def test_recommendation_depends_on_memory():
    assert plan(1000, 768, 10, epsilon=1.0).recommended == "DPFC"
    assert plan(1000, 50_000, 10, epsilon=1.0).recommended == "DPAdamLinear"


def test_loss_goes_from_nothing_to_chance():
    noises = [0.0, 1e-3, 0.01, 0.1, 1.0, 1e6]
    losses = [expected_loss(noise, 10) for noise in noises]
    assert losses[0] == 0.0
    assert np.all(np.diff(losses) > 0)
    assert losses[-1] == pytest.approx(0.9, abs=1e-4)
    assert expected_loss(0.1, 100) > expected_loss(0.1, 10)


def test_loss_is_that_of_simulated_noise():
    rng = np.random.default_rng(3)
    scores = 0.07 * rng.normal(size=(200_000, 5))
    scores[:, 0] += rng.uniform(0, 0.5, size=200_000)
    simulated = np.mean(scores.argmax(axis=1) != 0)
    assert expected_loss(0.07, 5) == pytest.approx(simulated, abs=0.005)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_samples": 0}, "n_samples must be in"),
        ({"n_classes": 1}, "n_classes must be in"),
        ({"epsilon": math.inf}, "epsilon must be finite"),
        ({"epsilon": math.nan}, "epsilon must be finite"),
        ({"estimators": ["Ridge"]}, "estimator must be one of"),
        ({"delta": 2.0}, "delta must be in"),
    ],
)
def test_plan_refuses(change, message):
    good = {"n_samples": 100, "n_features": 5, "n_classes": 3, "epsilon": 1.0}
    with pytest.raises(ValueError, match=message):
        plan(**good | change)
