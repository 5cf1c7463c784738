import math

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import LogisticRegression

from privfeat import (
    DPLeastSquares,
    DPNearestMean,
    PrivacyLedger,
    PrivatePipeline,
    TemperatureScaling,
)
from privfeat.analysis.calibration import report_of
from privfeat.exceptions import BudgetExceededError, PrivacyError, PrivacyWarning


class Sharp(ClassifierMixin, BaseEstimator):
    """Predict the softmax of the rows, ``sharpness`` times too sure of itself."""

    def __init__(self, sharpness=1.0):
        self.sharpness = sharpness

    def fit(self, X, y=None):
        self.classes_ = np.arange(X.shape[1])
        return self

    def predict_proba(self, X):
        return softmax(self.sharpness * X, axis=1)

    def predict(self, X):
        return np.argmax(X, axis=1)


def draw(n_rows, seed):
    """Return rows of logits, and labels drawn from their softmax."""
    rng = np.random.default_rng(seed)
    logits = 2.0 * rng.normal(size=(n_rows, 4))
    p = softmax(logits, axis=1)
    return logits, (rng.uniform(size=(n_rows, 1)) > p.cumsum(axis=1)).sum(axis=1)


@pytest.fixture(scope="module")
def sharp():
    return Sharp(5.0).fit(draw(2, 0)[0])


@pytest.mark.parametrize("sharpness", [0.3, 1.0, 5.0])
def test_public_temperature_is_the_true_one(sharpness):
    X, y = draw(5000, 1)
    scaled = TemperatureScaling(Sharp(sharpness).fit(X), public=True).fit(X, y)
    assert scaled.temperature_ == pytest.approx(sharpness, rel=0.1)
    assert not hasattr(scaled, "privacy_")


def test_private_temperature_repairs_calibration(sharp):
    X, y = draw(3000, 2)
    scaled = TemperatureScaling(sharp, epsilon=1.0, delta=1e-6).fit(X, y)
    X_test, y_test = draw(4000, 3)
    before, after = (report_of(model, X_test, y_test) for model in (sharp, scaled))
    assert before.ece > 0.15
    assert after.ece < 0.05
    assert after.nll < before.nll - 0.5
    assert after.accuracy == before.accuracy


def test_statement_tells_what_was_released(sharp):
    X, y = draw(50, 4)
    scaled = TemperatureScaling(sharp, epsilon=0.5, delta=1e-6, n_iter=4).fit(X, y)
    statement = scaled.privacy_
    assert (statement.epsilon, statement.delta) == (0.5, 1e-6)
    (release,) = statement.releases
    assert (release.name, release.count) == ("confidence_gap", 4)
    assert release.l2_sensitivity == 1.0
    assert not statement.seeded


def test_replacing_a_record_costs_nearly_twice_the_noise(sharp):
    X, y = draw(50, 4)
    one, two = (
        TemperatureScaling(sharp, adjacency=adjacency).fit(X, y).privacy_.releases[0]
        for adjacency in ("add_remove", "replace_one")
    )
    factor = 2 - 1 / len(sharp.classes_)
    assert two.noise_stddev == pytest.approx(factor * one.noise_stddev)


def test_a_record_moves_every_sum_by_at_most_one(sharp, plant):
    """Replay: neighbours with noise from one seed, the path of temperatures forced."""
    seen = []

    def record(self, name, exact, *, symmetric=False):
        seen.append(float(exact.value))
        self._blocks_left[name] -= 1
        return type("Fixed", (), {"value": np.array(1.0)})()

    plant("release of a sum", record)
    X, y = draw(1100, 5)  # over the end of a chunk
    TemperatureScaling(sharp).fit(X, y)
    whole = seen.copy()
    for drop in (1099, 1024):
        seen.clear()
        TemperatureScaling(sharp).fit(X[:drop], y[:drop])
        moved = np.abs(np.array(whole) - seen)
        assert np.all(moved <= 1100 - drop)
        assert np.all(moved > 0)


@pytest.mark.slow
@pytest.mark.statistical
def test_noise_is_that_of_the_statement(sharp):
    """One step has two outcomes: balanced records give each half of the time.

    60 fits, false-positive rate below 1e-6; without noise all outcomes are equal.
    """
    X, y = np.zeros((2, 4)), np.array([0, 1])
    with pytest.warns(PrivacyWarning, match="random_state"):
        found = [
            TemperatureScaling(sharp, epsilon=0.01, n_iter=1, random_state=seed)
            .fit(X, y)
            .temperature_
            for seed in range(60)
        ]
    assert abs(np.mean(np.array(found) > 1) - 0.5) < 0.33


def test_one_record_of_a_list_does_not_change_the_type_of_the_others(sharp, plant):
    seen = []

    class Seen(type(sharp)):
        """Not of privfeat: it gets one record at a time."""

        def predict_proba(self, X):
            seen.append(X.dtype)
            return super().predict_proba(X)

    other = Seen()
    vars(other).update(vars(sharp))
    X, y = draw(3, 4)
    rows = [*X.astype(np.float32)]
    TemperatureScaling(other).fit(rows, y)
    assert set(seen) == {np.dtype(np.float64)}
    TemperatureScaling(other).fit([*rows, X[0]], [*y, y[0]])
    assert set(seen) == {np.dtype(np.float64)}
    with pytest.raises(TypeError, match="X must hold records of one type"):
        TemperatureScaling(other).fit([*rows, np.zeros(4, np.uint8)], [*y, y[0]])


def test_two_fits_differ(sharp):
    X, y = draw(20, 6)
    found = {
        TemperatureScaling(sharp, epsilon=0.05, n_iter=12).fit(X, y).temperature_
        for _ in range(8)
    }
    assert len(found) > 4


@pytest.mark.filterwarnings("ignore::privfeat.PrivacyWarning")
def test_no_privacy_finds_where_confidence_is_accuracy(sharp):
    X, y = draw(5000, 7)
    model = TemperatureScaling(sharp, epsilon=math.inf, n_iter=16)
    report = report_of(model.fit(X, y), X, y)
    assert report.confidence.mean() == pytest.approx(report.accuracy, abs=1e-3)


def test_any_classifier_with_names_for_classes():
    codes = np.arange(600) % 3
    X = np.eye(5)[codes] + 0.5 * np.random.default_rng(0).normal(size=(600, 5))
    y = np.array(["ant", "bee", "cat"])[codes]
    private = DPLeastSquares(epsilon=8, classes=["ant", "bee", "cat"])
    for base in (LogisticRegression(), private):
        scaled = TemperatureScaling(base.fit(X, y), public=True).fit(X, y)
        p = scaled.predict_proba(X)
        assert p.shape == (600, 3)
        assert p.sum(axis=1) == pytest.approx(1)
        assert np.array_equal(scaled.classes_[p.argmax(axis=1)], scaled.predict(X))


def test_scaling_is_a_scikit_learn_estimator(sharp):
    again = clone(TemperatureScaling(sharp, epsilon=2.0))
    assert again.get_params(deep=False)["epsilon"] == 2.0
    with pytest.raises(NotFittedError):
        again.predict_proba(np.zeros((1, 4)))


@pytest.fixture
def ledger(tmp_path):
    path = tmp_path / "validation.ledger"
    return PrivacyLedger(path, dataset="validation", epsilon=1.0, delta=1e-5)


def test_ledger_is_charged_before_noise_is_drawn(sharp, ledger, plant):
    def fails(key, shape, stddev):
        (charge,) = ledger.history
        assert charge.status != "fitted"
        raise MemoryError

    X, y = draw(50, 10)
    scaled = TemperatureScaling(sharp, epsilon=0.5, ledger=ledger)
    with plant.context() as patch:
        patch("Gaussian noise", fails)
        with pytest.raises(MemoryError):
            scaled.fit(X, y)
    (charge,) = ledger.history
    assert (charge.estimator, charge.statement) == (
        "TemperatureScaling",
        scaled.privacy_,
    )
    assert not hasattr(scaled, "temperature_")
    scaled.fit(X, y)
    assert [charge.status for charge in ledger.history][1] == "fitted"


def test_ledger_refuses_what_is_too_much(sharp, ledger):
    X, y = draw(50, 11)
    scaled = TemperatureScaling(sharp, epsilon=0.9, ledger=ledger).fit(X, y)
    before = scaled.privacy_, scaled.temperature_
    with pytest.raises(BudgetExceededError):
        scaled.fit(X, y)
    assert (scaled.privacy_, scaled.temperature_) == before
    with (
        pytest.warns(PrivacyWarning),
        pytest.raises(PrivacyError, match="no random_state"),
    ):
        TemperatureScaling(sharp, ledger=ledger, random_state=1).fit(X, y)
    assert len(ledger.history) == 1
    with pytest.raises(ValueError, match="ledger must be None for public"):
        TemperatureScaling(sharp, public=True, ledger=ledger).fit(X, y)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"ledger": "path"}, "ledger must be"),
        ({"public": True, "epsilon": 1.0}, "epsilon must be None for public"),
        ({"public": 1}, "public must be True or False"),
        ({"epsilon": 0.0}, "epsilon must be"),
        ({"epsilon": math.nan}, "epsilon must be"),
        ({"delta": 1.5}, "delta must be"),
        ({"n_iter": 0}, "n_iter must be"),
        ({"n_iter": 2.5}, "n_iter must be"),
        ({"adjacency": "swap"}, "adjacency must be"),
        ({"random_state": "a"}, "random_state must be"),
    ],
)
def test_scaling_refuses_bad_parameters(sharp, params, message):
    model = TemperatureScaling(sharp, **params)
    with pytest.raises((TypeError, ValueError), match=message):
        model.fit(*draw(5, 8))
    assert not hasattr(model, "privacy_")


def test_scaling_refuses_bad_records(sharp):
    X, y = draw(5, 9)
    for rows, labels in [(X, y[:4]), (X[:0], y[:0]), (X, y + 9), (X, y[:, None])]:
        with pytest.raises(ValueError, match=r"X and y|y must hold"):
            TemperatureScaling(sharp).fit(rows, labels)
    with pytest.raises(ValueError, match="finite"):
        TemperatureScaling(sharp).fit(X * np.nan, y)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.filterwarnings("error:X does not have valid feature names")
def test_scaling_of_a_data_frame_does_not_warn_of_its_own_chunks():
    pandas = pytest.importorskip("pandas")
    X, y = draw(60, 12)
    table = pandas.DataFrame(X, columns=list("abcd"))
    base = LogisticRegression().fit(table, y)
    for options in ({"public": True}, {"epsilon": 1.0}):
        TemperatureScaling(base, **options).fit(table, y)


def test_scaling_refuses_columns_in_another_order():
    pandas = pytest.importorskip("pandas")
    X, y = draw(60, 12)
    table = pandas.DataFrame(X, columns=list("abcd"))
    base = LogisticRegression().fit(table, y)
    TemperatureScaling(base, public=True).fit(table, y)
    with pytest.raises(ValueError, match="feature names should match"):
        TemperatureScaling(base, public=True).fit(table[list("bacd")], y)


@pytest.mark.filterwarnings("ignore::privfeat.PrivacyWarning")
def test_pipelines_of_texts_are_scaled():
    """Texts cannot be filled up with rows of zeros."""
    steps = [("hash", HashingVectorizer(n_features=8)), ("clf", DPNearestMean())]
    model = PrivatePipeline(steps, epsilon=np.inf)
    model.set_params(clf__center=False, clf__classes=[0, 1])
    texts, y = ["very ill", "healthy"] * 50, [0, 1] * 50
    scaled = TemperatureScaling(model.fit(texts, y), epsilon=10.0, random_state=0)
    found = scaled.fit(texts, y).predict_proba(texts[:2])
    assert found.argmax(axis=1).tolist() == [0, 1]
