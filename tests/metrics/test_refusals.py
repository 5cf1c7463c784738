import math

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LinearRegression, LogisticRegression

from privfeat import (
    ConformalClassifier,
    DPLeastSquares,
    PrivacyLedger,
    PrivatePipeline,
    TemperatureScaling,
)
from privfeat.exceptions import PrivacyError, PrivacyWarning
from privfeat.metrics import evaluation_of_predictions, private_evaluation
from privfeat.preprocessing import DPStandardScaler
from tests.metrics.drawn import draw


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"epsilon": 0.0}, "epsilon must be"),
        ({"delta": 1.5}, "delta must be"),
        ({"adjacency": "swap"}, "adjacency must be"),
        ({"confidence": 1.0}, "confidence must be"),
        ({"scores": 1}, "scores must be"),
        ({"ledger": "path"}, "ledger must be"),
        ({"random_state": "a"}, "random_state must be"),
        ({"target_bounds": (0, 1)}, "target_bounds must be None"),
        ({"max_group_size": 2}, "groups must be given"),
        ({"groups": [1] * 40}, "max_group_size must be given"),
        ({"groups": [1] * 40, "max_group_size": 0}, "max_group_size must be"),
        ({"groups": [1] * 3, "max_group_size": 2}, "groups must hold one user"),
    ],
)
def test_bad_parameters_are_refused(model, params, message):
    with pytest.raises((TypeError, ValueError), match=message):
        private_evaluation(model, *draw(40), **params)


def test_more_records_than_margins_cover_are_refused(model, plant):
    plant("most rows of a private step", 39)
    for use in (
        lambda: private_evaluation(model, *draw(40)),
        lambda: TemperatureScaling(model).fit(*draw(40)),
        lambda: ConformalClassifier(model).fit(*draw(40)),
    ):
        with pytest.raises(ValueError, match="at most 39 rows, got more"):
            use()


def test_names_of_classes_are_refused_where_the_classes_are_numbers(model):
    X, y = draw(40)
    names = np.where(y == 1, "yes", "no")
    for labels in (names, names.astype(object)):
        for measure in (
            lambda: private_evaluation(model, X, labels),  # noqa: B023
            lambda: ConformalClassifier(model).fit(X, labels),  # noqa: B023
            lambda: TemperatureScaling(model).fit(X, labels),  # noqa: B023
        ):
            with pytest.raises(ValueError, match=r"y must hold numbers, .* strings"):
                measure()
    with pytest.raises(ValueError, match=r"y must hold strings, .* numbers"):
        evaluation_of_predictions(names, y, classes=["no", "yes"])


@pytest.mark.parametrize(
    "stays",
    [
        np.arange(40).astype("m8[h]"),
        np.arange(40).astype("M8[s]"),
        [np.timedelta64(1, "h")] * 39 + [np.timedelta64(61, "m")],
        np.array([1.0, *[np.timedelta64(1, "h")] * 39], object),
    ],
)
def test_dates_and_durations_are_no_targets(stays):
    """They became whole numbers, of a unit that one record decided."""
    X = np.arange(80.0).reshape(40, 2)
    regressor = LinearRegression().fit(X, X[:, 0])
    with pytest.raises(TypeError, match="must be numbers, got dates"):
        private_evaluation(regressor, X, stays, target_bounds=(0, 30))


@pytest.mark.parametrize("kind", ["m8[h]", "M8[s]"])
def test_dates_and_durations_are_no_records_of_a_pipeline(kind):
    X, y = draw(40)
    steps = [
        ("scale", DPStandardScaler(bounds=(-9, 9))),
        ("clf", DPLeastSquares(classes=[0, 1])),
    ]
    fitted = PrivatePipeline(steps, epsilon=9.0).fit(X, y)
    stays = np.arange(X.size).reshape(X.shape).astype(kind)
    for rows in (stays, list(stays), pd.DataFrame(stays)):
        with pytest.raises(TypeError, match=r"X must hold numbers|readable as arrays"):
            private_evaluation(fitted, rows, y)


def test_bad_records_are_refused(model):
    X, y = draw(40)
    for rows, labels in [(X, y[:4]), (X[:0], y[:0]), (X, y + 9), (X, y[:, None])]:
        with pytest.raises(ValueError, match=r"X and y|y must hold"):
            private_evaluation(model, rows, labels)
    with pytest.raises(ValueError, match="finite"):
        evaluation_of_predictions(X * np.nan, y, classes=[0, 1])
    with pytest.raises(ValueError, match="one for each class"):
        evaluation_of_predictions(X, y, classes=[0, 1, 2])
    with pytest.raises(ValueError, match="predictions must hold one label"):
        evaluation_of_predictions(y + 1, y, classes=[0, 1])
    for bounds in (None, (1, 0), (0, math.inf), (0, 1, 2)):
        with pytest.raises(ValueError, match="target_bounds"):
            evaluation_of_predictions(y, y, target_bounds=bounds)
    with pytest.raises(ValueError, match="one finite number"):
        evaluation_of_predictions(y * math.nan, y, target_bounds=(0, 1))
    for classes in ([1, 0], [0], [[0, 1]]):
        with pytest.raises(ValueError, match="classes must be"):
            evaluation_of_predictions(X, y, classes=classes)


def test_several_labels_are_refused():
    X, y = draw(40)
    clf = DPLeastSquares(epsilon=1.0, classes=range(2)).fit(X, np.c_[y, 1 - y])
    with pytest.raises(ValueError, match="one label a record"):
        private_evaluation(clf, X, y)


def test_seed_is_told_and_refused_with_a_ledger(model, tmp_path):
    ledger = PrivacyLedger(tmp_path / "x", dataset="test", epsilon=1.0, delta=1e-5)
    with pytest.warns(PrivacyWarning, match="random_state"):
        found = [private_evaluation(model, *draw(40), random_state=1) for _ in "ab"]
    assert found[0].accuracy == found[1].accuracy
    assert found[0].privacy.seeded
    with pytest.warns(PrivacyWarning), pytest.raises(PrivacyError, match="no random"):
        private_evaluation(model, *draw(40), ledger=ledger, random_state=1)


def test_columns_in_another_order_are_refused():
    pandas = pytest.importorskip("pandas")
    X, y = draw(60)
    table = pandas.DataFrame(X, columns=list("ab"))
    model = LogisticRegression().fit(table, y)
    private_evaluation(model, table, y)
    with pytest.raises(ValueError, match="feature names should match"):
        private_evaluation(model, table[["b", "a"]], y)


class Odd(ClassifierMixin, BaseEstimator):
    """Predicts what it is told to, whatever the records are."""

    classes_ = np.array([0, 1])

    def __init__(self, predicted):
        self.predicted = predicted

    def fit(self, X, y):
        return self

    def __sklearn_is_fitted__(self):
        return True

    def predict_proba(self, X):
        return np.array(self.predicted)


@pytest.mark.parametrize(
    ("predicted", "message"),
    [
        ([[0.5, 0.5]] * 2, "one row for each record"),
        ([[0.5, math.nan]], "finite numbers"),
        ([[0.5, 0.2, 0.3]], "one for each class"),
    ],
)
@pytest.mark.parametrize(
    "use",
    [
        lambda model, X, y, **budget: private_evaluation(model, X, y, **budget),
        lambda model, X, y, **budget: ConformalClassifier(model, **budget).fit(X, y),
    ],
    ids=["evaluation", "sets"],
)
def test_odd_predictions_are_refused_before_the_charge(
    tmp_path, predicted, message, use
):
    """By an evaluation, and by the calibration of sets."""
    ledger = PrivacyLedger(tmp_path / "x", dataset="test", epsilon=1.0, delta=1e-5)
    model, (X, y) = Odd(predicted), draw(3)
    with pytest.raises(ValueError, match=message):
        use(model, X, y, epsilon=0.5, ledger=ledger)
    assert not ledger.history


def test_sparse_rows_are_refused_by_their_name(model):
    X, y = draw(40)
    with pytest.raises(TypeError, match=r"must be dense to be measured.*toarray"):
        private_evaluation(model, csr_array(X), y, epsilon=1.0)
