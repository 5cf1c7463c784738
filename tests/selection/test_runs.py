"""Scores of runs, and which run is kept, at their edges."""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

from privfeat import DPFC, PrivacyError
from privfeat.data import open_features, write_features
from privfeat.selection.runs import HoldoutScore

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")


def score(X, y, predict):
    """Return the score of a fit without its noise."""
    mechanism = SimpleNamespace(release=lambda name, exact: exact)
    fit = SimpleNamespace(mechanism=lambda plan: mechanism)
    plan = SimpleNamespace(records=())
    return HoldoutScore(X, y, plan, fit)(SimpleNamespace(predict=predict))


def test_no_held_out_record_scores_nothing():
    """Their number is secret: a fit must not fail where there are none."""
    assert score(np.zeros((0, 2)), np.zeros(0, int), None) == 0.0


def test_scores_are_correct_less_incorrect_predictions():
    y = np.array([0, 1, 1, 1])
    assert score(np.zeros((4, 2)), y, lambda rows: np.ones(len(rows), int)) == 2.0


def test_a_prediction_that_is_not_one_of_each_record_is_refused():
    with pytest.raises(ValueError, match="must predict one label"):
        score(np.zeros((4, 2)), np.zeros(4, int), lambda rows: np.zeros((len(rows), 2)))


def test_a_selection_of_no_runs_releases_nothing(make, data, plant):
    plant("number of runs", lambda *_: 0)
    search = make()
    with pytest.raises(PrivacyError, match="number of runs must be at least 1"):
        search.fit(*data)
    assert not hasattr(search, "best_estimator_")


def test_a_search_predicts_from_a_feature_file(make, data, tmp_path):
    X, y = data
    write_features(tmp_path / "rows.h5", {"train": (X, y)}, class_names=list("abc"))
    search = make(mean_runs=1.01).fit(X, y)
    lazy = open_features(tmp_path / "rows.h5")["train"].X
    expected = search.predict(np.asarray(lazy))
    np.testing.assert_array_equal(search.predict(lazy), expected)


@dataclass(kw_only=True, eq=False)
class Foreign(ClassifierMixin, BaseEstimator):
    """A private classifier of someone else, who tells nothing of its plan."""

    fits: object
    epsilon: float | None = 1.0
    rho: float | None = None
    delta: float = 1e-5
    noise_multiplier: float | None = None
    accounting: str = "exact"
    adjacency: str = "add_remove"
    ridge: float | None = None
    classes: object = None
    verbose: int = 0
    random_state: object = None

    def fit(self, X, y):
        self.fits.labels.append(y.tolist())
        params = self.get_params()
        del params["fits"]
        self.fitted_ = DPFC(**params, n_iter=2).fit(X, y)
        self.privacy_, self.classes_ = self.fitted_.privacy_, self.fitted_.classes_
        return self

    def predict(self, X):
        return self.fitted_.predict(X)


class Fits:
    """Labels of fits; a copy of an estimator shares them."""

    def __init__(self):
        self.labels = []

    def __deepcopy__(self, memo):
        return self


def test_a_classifier_of_others_is_first_fitted_in_a_run(make, data, five_runs):
    """It may charge a ledger or draw noise, so that nothing is tried before."""
    fits = Fits()
    search = make(Foreign(classes=range(3), fits=fits), {"ridge": [None, 1.0]})
    search.fit(*data, X_val=data[0].copy(), y_val=data[1])
    assert fits.labels == 5 * [data[1].tolist()]
    assert isinstance(search.best_estimator_, Foreign)
