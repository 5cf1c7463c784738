import math
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from privfeat import DPFC, PrivacyLedger
from privfeat.exceptions import PrivacyWarning
from privfeat.preprocessing import DPQuantiles, DPStandardScaler, after_scaling

pytestmark = pytest.mark.filterwarnings("ignore:epsilon should be at most 20")

BOUNDS = [0.0, -10.0, 0.0], [50.0, 10.0, 3000.0]


def draw(n):
    X = np.random.default_rng(0).normal([20, 1, 900], [2, 3, 100], size=(n, 3))
    return X.clip(*BOUNDS)


def test_scaler_without_noise_is_that_of_sklearn():
    X = draw(500)
    ours = DPStandardScaler(epsilon=math.inf, bounds=BOUNDS).fit(X)
    plain = StandardScaler().fit(X)
    assert ours.transform(X) == pytest.approx(plain.transform(X), abs=1e-3)
    assert ours.inverse_transform(ours.transform(X)) == pytest.approx(X)


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
@pytest.mark.parametrize("arithmetic", ["float64", "exact"])
def test_scaler_of_many_records_is_close(adjacency, arithmetic):
    X = draw(30_000)
    ours = DPStandardScaler(bounds=BOUNDS, adjacency=adjacency, arithmetic=arithmetic)
    ours.fit(X)
    assert ours.scale_ == pytest.approx(X.std(axis=0), rel=0.1)
    assert np.all(np.abs(ours.mean_ - X.mean(axis=0)) < 0.1 * X.std(axis=0))


def test_noise_never_divides_by_almost_zero():
    """Of ten records nothing is known: columns are scaled alike, within the bounds."""
    X = draw(10)
    ours = DPStandardScaler(epsilon=0.1, bounds=BOUNDS).fit(X)
    half = (np.array(BOUNDS[1]) - BOUNDS[0]) / 2
    assert np.all(ours.scale_ > 0.1 * half)
    assert np.all(np.abs(ours.transform(X)) < 20)


def test_a_constant_column_stays_finite():
    X = np.tile([[0.25, -1.0]], (50, 1))
    ours = DPStandardScaler(epsilon=math.inf, bounds=(-1, 1)).fit(X)
    assert ours.scale_.tolist() == [1.0, 1.0]
    assert ours.transform(X) == pytest.approx(0.0, abs=1e-5)


def test_transform_cuts_to_the_bounds():
    ours = DPStandardScaler(bounds=BOUNDS).fit(draw(100))
    far = ours.transform([[1e9, -1e9, 0.0]])
    assert np.array_equal(far, ours.transform([[50.0, -10.0, 0.0]]))


def test_bounds_must_be_given(tmp_path):
    """Any that suit no column would spend a budget on scales of nothing."""
    ledger = PrivacyLedger(tmp_path / "x", dataset="x", epsilon=1.0, delta=1e-5)
    scaler = DPStandardScaler(epsilon=1, ledger=ledger)
    for attempt in (lambda: scaler.fit(draw(5)), lambda: scaler.planned(3)):
        with pytest.raises(ValueError, match="that everyone knows to be possible"):
            attempt()
    assert not ledger.history


@pytest.mark.parametrize("kind", [DPStandardScaler, DPQuantiles])
def test_bounds_that_are_the_extremes_of_the_records_are_warned_of(kind):
    X = np.random.default_rng(0).normal(size=(50, 2))
    X[:, 1] = X[:, 1] > 0  # many reach the ends of this column
    with pytest.warns(PrivacyWarning, match="bounds should be known without"):
        kind(bounds=(X.min(axis=0), X.max(axis=0))).fit(X)


def test_bounds_that_everyone_knows_are_not_warned_of():
    X = np.random.default_rng(0).normal(size=(50, 2)).clip(-0.9, 0.9)
    X[0], X[1] = -1, 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        DPStandardScaler(bounds=(-1, 1)).fit(X)  # one range for all columns
        DPStandardScaler(bounds=([-1, -1], [1, 2])).fit(X)
        DPStandardScaler(bounds=([1, 0], [5, 1])).fit(
            np.column_stack([np.arange(50) % 5 + 1, np.arange(50) % 2])
        )


@pytest.mark.parametrize(
    "bounds", [(1, 0), (0, 0), (0, math.nan), (0, math.inf), 3, ([0, 1], 2), "ab"]
)
def test_bad_bounds_are_refused(bounds):
    with pytest.raises(ValueError, match="bounds must"):
        DPStandardScaler(bounds=bounds).fit(draw(5))
    with pytest.raises(ValueError, match="bounds must"):
        DPStandardScaler(bounds=bounds).planned(3)


def test_names_of_columns_are_kept():
    frame = pd.DataFrame(draw(50), columns=["a", "b", "c"])
    ours = DPStandardScaler(bounds=BOUNDS).set_output(transform="pandas").fit(frame)
    assert ours.transform(frame).columns.tolist() == ["a", "b", "c"]
    assert "the number and the names of features (3)" in ours.privacy_.public


def test_scaler_works_before_an_estimator():
    X = draw(2000)
    y = (X[:, 0] > 20).astype(int)
    scaler = FrozenEstimator(DPStandardScaler(bounds=BOUNDS, rho=0.01).fit(X))
    model = DPFC(classes=[0, 1], **after_scaling(3))
    assert make_pipeline(scaler, model).fit(X, y).score(X, y) > 0.85
