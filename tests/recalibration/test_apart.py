"""What is computed of a record depends on that record alone."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from privfeat import DPLeastSquares, TemperatureScaling
from privfeat._process import (
    keeps_one_thread,
    library_of_numpy,
    one_thread_a_product,
)
from privfeat.audit.recorder import recording
from privfeat.data import FeatureWriter, open_features, write_features
from privfeat.data.schema import WITHOUT_DUPLICATES
from privfeat.metrics.predictions import record_by_record


class Neighbours(ClassifierMixin, BaseEstimator):
    """Standardizes the rows of a call by one another, as a batch norm may."""

    classes_ = np.array([0, 1])

    def fit(self, X, y):
        return self

    def __sklearn_is_fitted__(self):
        return True

    def predict_proba(self, X):
        z = (X[:, 0] - X[:, 0].mean()) / (X[:, 0].std() + 1e-9)
        p = 1 / (1 + np.exp(-20 * z))
        return np.c_[1 - p, p]


def test_a_classifier_that_mixes_rows_moves_no_sum_by_more_than_one():
    """Called with chunks of 1,024 rows, by 121."""
    draw = np.random.default_rng(0)
    X = 0.01 * draw.normal(size=(1000, 1))
    X[0] = 1e4
    y = (X[:, 0] > 0).astype(int)
    sums = []
    for kept in (slice(0, None), slice(1, None)):
        with recording() as recorder:
            model = TemperatureScaling(Neighbours(), epsilon=1.0, n_iter=1)
            model.fit(X[kept], y[kept])
        sums.append(float(recorder.calls[0].exact))
    assert abs(sums[0] - sums[1]) <= 1.0
    assert "one record at a time" in model.privacy_.public[-1]


@pytest.mark.filterwarnings("ignore::privfeat.PrivacyWarning")
def test_a_prediction_does_not_depend_on_its_place_among_others():
    """Three threads share a product by a vector, and round where they meet otherwise.

    Rows on the border between two classes were then predicted to be of one in some
    places of a call: removing the first record moved the sum by 60 of 20,480.
    """
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 512)), np.arange(300) % 2
    options = {"row_scaling": "clip", "center": False, "fit_intercept": False}
    clf = DPLeastSquares(epsilon=np.inf, classes=[0, 1], **options).fit(X, y)
    (normal,) = clf.coef_
    rows = 1e3 * rng.normal(size=(30, 512))
    rows -= np.outer(rows @ normal, normal) / (normal @ normal)
    with threadpool_limits(3, user_api="blas"):
        for row in rows:
            alike = np.repeat(row[None], 1024, axis=0)
            made = record_by_record(clf, "predict_proba", alike, np.asarray)
            assert np.all(made == made[0])


@pytest.fixture
def accelerate(monkeypatch):
    """Let NumPy say that it multiplies by a library whose threads nobody limits."""
    built = {"Build Dependencies": {"blas": {"name": "accelerate"}}}
    monkeypatch.setattr(np, "show_config", lambda mode: built)
    library_of_numpy.cache_clear()
    yield
    library_of_numpy.cache_clear()


def test_rows_are_predicted_alone_where_a_product_may_have_threads(accelerate):
    """Of Accelerate, the library of macOS, ``threadpoolctl`` knows nothing."""
    X, y, shapes = np.eye(4)[np.arange(40) % 4], np.arange(40) % 2, []
    clf = DPLeastSquares(epsilon=1.0, classes=[0, 1]).fit(X, y)
    predict_proba = clf.predict_proba
    clf.predict_proba = lambda rows: shapes.append(rows.shape) or predict_proba(rows)
    scaled = TemperatureScaling(clf, epsilon=1.0).fit(X, y)
    assert set(shapes) == {(1, 4)}
    assert not any("one record at a time" in fact for fact in scaled.privacy_.public)
    shapes.clear()
    TemperatureScaling(clf, public=True).fit(X, y)
    assert shapes == [(40, 4)]


def test_products_of_this_machine_keep_to_one_thread():
    """Else rows are predicted one by one, which takes long."""
    with one_thread_a_product():
        assert keeps_one_thread()


def test_labels_that_a_fraction_of_another_merges_are_refused():
    X, classes = np.array([[0.0], [1.0]] * 3), [2**53, 2**53 + 1]
    clf = LogisticRegression().fit(X, classes * 3)
    labels = [*classes * 2, 2**53 + 1, 0.0 + 2**53]
    with pytest.raises(ValueError, match="must hold one label a row"):
        TemperatureScaling(clf, public=True).fit(X, labels)


@pytest.mark.filterwarnings("ignore::privfeat.PrivacyWarning")
def test_rows_that_records_have_chosen_are_not_public(tmp_path):
    rows, path = np.eye(4, dtype=np.float32), tmp_path / "rest.h5"
    with FeatureWriter(path, n_features=4, dtype="float32") as writer:
        writer.append("train", rows, [0, 1, 0, 1])
        chosen = {"train": {WITHOUT_DUPLICATES: ["of private records"]}}
        writer.finish(split_metadata=chosen)
    split, copy = open_features(path)["train"], tmp_path / "copy.h5"
    clf = DPLeastSquares(classes=[0, 1], random_state=0).fit(rows, split.y)
    write_features(copy, {"train": (split.X, split.y)})
    for part in (split, open_features(copy)["train"]):
        with pytest.raises(ValueError, match="must not be chosen by private records"):
            TemperatureScaling(clf, public=True).fit(part.X, part.y)
