import math

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    confusion_matrix,
    mean_absolute_error,
    mean_squared_error,
    r2_score,
    recall_score,
    roc_auc_score,
)

from privfeat import DPLeastSquares, DPLeastSquaresRegressor, PrivacyLedger
from privfeat.audit.recorder import recording
from privfeat.exceptions import BudgetExceededError
from privfeat.metrics import evaluation_of_predictions, private_evaluation
from tests.metrics.drawn import draw

FREE = {"epsilon": math.inf}


@pytest.mark.filterwarnings("ignore::privfeat.PrivacyWarning")
def test_without_noise_figures_are_those_of_scikit_learn(model):
    X, y = draw(600, seed=1)
    found, predicted = private_evaluation(model, X, y, **FREE), model.predict(X)
    assert found.n_records.value == 600
    assert found.accuracy.value == accuracy_score(y, predicted)
    recall = recall_score(y, predicted, average=None)
    assert found.recall.value == pytest.approx(recall)
    balanced = balanced_accuracy_score(y, predicted)
    assert found.balanced_accuracy.value == pytest.approx(balanced)
    table = confusion_matrix(y, predicted)
    assert found.confusion.value == pytest.approx(table)
    exact = roc_auc_score(y, model.predict_proba(X)[:, 1])
    assert found.roc_auc.value == pytest.approx(exact, abs=2e-3)
    for name, figure in found.figures.items():
        assert figure.low <= figure.value <= figure.high, name


@pytest.mark.filterwarnings("ignore::privfeat.PrivacyWarning")
def test_three_classes_have_calibration_and_no_roc():
    X, y = draw(900, n_classes=3)
    model = LogisticRegression().fit(*draw(300, n_classes=3, seed=2))
    found, predicted = private_evaluation(model, X, y, **FREE), model.predict(X)
    assert found.roc_auc is found.roc is None
    assert found.confusion.value == pytest.approx(confusion_matrix(y, predicted))
    sure = model.predict_proba(X).max(axis=1)
    curve = found.reliability
    for low, high, rate in zip(
        curve.bin_edges[:-1], curve.bin_edges[1:], curve.accuracy.value, strict=True
    ):
        inside = (low < sure) & (sure <= high)
        if inside.sum() > 50:
            assert rate == pytest.approx((predicted == y)[inside].mean())
    assert found.ece.high < 0.1


@pytest.mark.filterwarnings("ignore::privfeat.PrivacyWarning")
def test_without_noise_figures_of_a_regressor_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 2))
    y = X @ [1.0, 2.0] + rng.normal(size=500)
    model = LinearRegression().fit(X[:100], y[:100])
    found = private_evaluation(model, X, y, target_bounds=(-20, 20), **FREE)
    p = model.predict(X)
    assert found.r2.value == pytest.approx(r2_score(y, p), abs=1e-4)
    for name, exact in (
        ("mean_absolute_error", mean_absolute_error),
        ("mean_squared_error", mean_squared_error),
    ):
        figure = found.figures[name]
        assert figure.value == pytest.approx(exact(y, p), rel=1e-3)
        assert figure.low < figure.value < figure.high


def test_reliability_of_a_sure_and_wrong_classifier_shows():
    y = np.arange(20_000) % 2
    p = np.where(np.arange(20_000) % 10 < 6, y, 1 - y) * 0.9 + 0.05
    found = evaluation_of_predictions(np.c_[1 - p, p], y, classes=[0, 1])
    assert found.accuracy.value == pytest.approx(0.6, abs=0.02)
    assert found.ece.low < 0.35 < found.ece.high
    assert found.ece.low > 0.2


def test_statement_tells_what_was_released(model):
    X, y = draw(300)
    cost = private_evaluation(model, X, y, epsilon=0.5, delta=1e-6).privacy
    assert (cost.epsilon, cost.delta, cost.unit) == (0.5, 1e-6, "record")
    assert [release.name for release in cost.releases] == ["outcomes", "scores"]
    for release in cost.releases:
        assert release.l2_sensitivity == pytest.approx(math.sqrt(3.0), rel=1e-5)
    assert any("one record at a time" in fact for fact in cost.public)
    assert not any("the number of records" in fact for fact in cost.public)


def test_replaced_records_need_more_noise_and_a_known_number(model):
    X, y = draw(300)
    cost = private_evaluation(model, X, y, adjacency="replace_one").privacy
    assert cost.releases[0].l2_sensitivity == pytest.approx(math.sqrt(6.0), rel=1e-5)
    assert "the number of records" in cost.public


def test_one_release_without_scores(model):
    X, y = draw(300)
    found = private_evaluation(model, X, y, scores=False)
    assert [release.name for release in found.privacy.releases] == ["outcomes"]
    assert found.roc_auc is found.roc is found.ece is found.reliability is None
    assert "balanced_accuracy" in str(found)
    assert str(found.recall).splitlines() == [str(one) for one in found.recall.each()]
    assert [part.value for part in found.recall.each()] == found.recall.value.tolist()
    ridge = private_evaluation(RidgeClassifier().fit(X, y), X, y)
    assert len(ridge.privacy.releases) == 1  # it has no probabilities


def test_ledger_is_charged_before_noise_is_drawn(model, tmp_path, plant):
    ledger = PrivacyLedger(tmp_path / "x", dataset="test", epsilon=1.0, delta=1e-5)

    def fails(key, shape, stddev):
        (charge,) = ledger.history
        assert charge.status != "fitted"
        raise MemoryError

    X, y = draw(100)
    with plant.context() as patch:
        patch("Gaussian noise", fails)
        with pytest.raises(MemoryError):
            private_evaluation(model, X, y, epsilon=0.4, ledger=ledger)
    found = private_evaluation(model, X, y, epsilon=0.4, ledger=ledger)
    charge = ledger.history[1]
    assert (charge.estimator, charge.status) == ("PrivateEvaluation", "fitted")
    assert charge.statement == found.privacy
    assert charge.statement.charge == found.privacy.charge is not None
    with pytest.raises(BudgetExceededError):
        private_evaluation(model, X, y, epsilon=0.9, ledger=ledger)
    assert len(ledger.history) == 2


def test_users_count_with_at_most_so_many_records(model):
    """Of one user with 200 records, and of users with one each."""
    X, y = draw(300)
    users = np.maximum(np.arange(300) - 199, 0)
    with recording() as recorder:
        found = private_evaluation(model, X, y, groups=users, max_group_size=4)
    exact = recorder.calls[0].exact
    assert exact[:2].sum() == 100 + 4
    cost = found.privacy
    assert cost.unit == "user"
    assert cost.releases[0].l2_sensitivity == pytest.approx(4 * math.sqrt(3), rel=1e-5)
    assert "that of a user's records at most 4 count" in cost.public


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_a_record_moves_every_release_by_at_most_its_sensitivity(model, adjacency):
    """Recorded: all records, without one, and with one replaced."""
    X, y = draw(40)
    other = X.copy()
    other[7] = [1e6, -1e6]
    sets = [(X, y), (other, np.where(np.arange(40) == 7, 1 - y, y))]
    if adjacency == "add_remove":
        sets[1] = (np.delete(X, 7, axis=0), np.delete(y, 7))
    found = []
    for rows, labels in sets:
        with recording() as recorder:
            cost = private_evaluation(model, rows, labels, adjacency=adjacency).privacy
        found.append([call.exact for call in recorder.calls])
    for one, two, release in zip(*found, cost.releases, strict=True):
        moved = np.linalg.norm(one - two)
        assert 0.5 * release.l2_sensitivity < moved <= release.l2_sensitivity


class Neighbours(ClassifierMixin, BaseEstimator):
    """Predicts by the mean of the rows of a call, as a batch norm may."""

    classes_ = np.array([0, 1])

    def fit(self, X, y):
        return self

    def __sklearn_is_fitted__(self):
        return True

    def predict_proba(self, X):
        p = 1.0 * (X[:, 0] > X[:, 0].mean() - 1e-9)
        return np.c_[1 - p, p]


def test_a_model_that_mixes_rows_moves_no_count_by_more_than_its_own():
    X, y = np.arange(50.0)[:, None], np.zeros(50, int)
    X[0] = 1e9
    sums = []
    for kept in (slice(0, None), slice(1, None)):
        with recording() as recorder:
            private_evaluation(Neighbours(), X[kept], y[kept])
        sums.append(recorder.calls[0].exact)
    assert np.linalg.norm(sums[0] - sums[1]) <= math.sqrt(3.0) * (1 + 1e-5)


def test_models_of_privfeat_are_evaluated_in_chunks():
    X, y = draw(1100, n_classes=3)
    clf = DPLeastSquares(epsilon=4, classes=range(3)).fit(X, y)
    shapes, predict_proba = [], clf.predict_proba
    clf.predict_proba = lambda rows: shapes.append(rows.shape) or predict_proba(rows)
    found = private_evaluation(clf, X, y, epsilon=8.0)
    assert set(shapes) == {(1024, 3)}
    assert found.accuracy.low < clf.score(X, y) < found.accuracy.high
    assert not any("one record at a time" in fact for fact in found.privacy.public)


def test_private_regressor_is_evaluated():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (3000, 2))
    y = X[:, 0]
    bounds = (-1.0, 1.0)
    reg = DPLeastSquaresRegressor(epsilon=8, target_bounds=bounds).fit(X, y)
    found = private_evaluation(reg, X, y, target_bounds=bounds, epsilon=2.0)
    assert found.r2.low < r2_score(y, reg.predict(X)) < found.r2.high
    assert "r2" in str(found)


def test_r2_of_targets_that_are_all_alike_is_unknown():
    y = np.full(5000, 0.3)
    found = evaluation_of_predictions(y + 0.1, y, target_bounds=(0, 1))
    assert math.isnan(found.r2.value)
    assert (found.r2.low, found.r2.high) == (-math.inf, 1.0)
    assert found.mean_absolute_error.low < 0.1 < found.mean_absolute_error.high


@pytest.mark.parametrize("n_rows", [2, 30])
def test_figures_of_few_records_are_unknown_not_wrong(model, n_rows):
    found = private_evaluation(model, *draw(n_rows), epsilon=0.05)
    for name in ("accuracy", "roc_auc", "ece", "balanced_accuracy"):
        figure = found.figures[name]
        assert math.isnan(figure.value), name
        assert (figure.low, figure.high) == (0.0, 1.0)
    x = np.linspace(0, 1, n_rows)
    found = evaluation_of_predictions(x, x, target_bounds=(0, 2), epsilon=0.05)
    assert math.isnan(found.r2.value)
    assert found.mean_absolute_error.high == 2.0


@pytest.mark.filterwarnings("ignore::privfeat.PrivacyWarning")
def test_calibration_of_fewer_records_than_noise_is_unknown():
    """Also where noise made their number negative."""
    p, y = [[0.3, 0.7]] * 20, [0, 1] * 10
    for seed in range(20, 30):
        options = {"classes": [0, 1], "epsilon": 0.1, "random_state": seed}
        ece = evaluation_of_predictions(p, y, **options).ece
        assert ece.low <= ece.high
        assert np.isnan(ece.value) or ece.low <= ece.value <= ece.high


@pytest.mark.filterwarnings("ignore::privfeat.PrivacyWarning")
def test_a_model_that_writes_its_answers_in_one_place_is_measured_rightly():
    """Predictions are copied: each would become the last one."""

    class Reusing(RegressorMixin, BaseEstimator):
        def fit(self, X, y):
            self.place_ = np.zeros(1)
            return self

        def predict(self, X):
            self.place_[:] = X[:, 0]
            return self.place_

    X = np.linspace(-1.0, 1.0, 40)[:, None]
    bounds = {"target_bounds": (-1.0, 1.0), **FREE}
    found = private_evaluation(Reusing().fit(X, X[:, 0]), X, X[:, 0], **bounds)
    assert found.mean_absolute_error.value == pytest.approx(0.0, abs=1e-6)


@pytest.mark.filterwarnings("ignore::privfeat.PrivacyWarning")
def test_labels_that_floats_merge_are_refused():
    p, classes = [[0.3, 0.7]] * 3, [2**53, 2**53 + 1]
    labels = [2**53 + 1, 2**53, 0.0 + 2**53]
    with pytest.raises(ValueError, match="must hold one label a row"):
        evaluation_of_predictions(p, labels, classes=classes, **FREE)
