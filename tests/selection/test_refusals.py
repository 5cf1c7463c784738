"""Searches that fail, or that are refused before they are charged."""

import dataclasses
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from privfeat import (
    DPFC,
    DPAdamLinear,
    DPLeastSquares,
    DPRandomizedSearch,
    PrivacyError,
    PrivacyLedger,
    PrivacyWarning,
)
from privfeat.data import open_features, write_features
from privfeat.exceptions import UnsupportedEventError
from tests.selection.conftest import INF, NAN

pytestmark = [
    pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning"),
]


def test_search_fails_when_a_run_fails(make, data, five_runs, plant):
    """The budget is spent then, and no earlier result stays."""
    genuine = plant.genuine("fit of a linear model", of=DPFC)
    search, fits = make(epsilon=1.5).fit(*data), []

    def fit(self, X, y):
        fits.append(genuine(self, X, y))
        if len(fits) == 3:
            raise FloatingPointError("overflow")
        return self

    plant("fit of a linear model", fit, of=DPFC)
    search.set_params(epsilon=2.5)
    with pytest.raises(FloatingPointError, match="overflow"):
        search.fit(*data)
    assert search.privacy_.epsilon == 2.5
    assert not [name for name in vars(search) if name.startswith("best_")]


def test_search_does_not_skip_a_candidate_that_cannot_be_fitted(make, data):
    with pytest.raises(ValueError, match="learning_rate"):
        make(candidates={"learning_rate": [-1.0]}).fit(*data)


REFUSED = [
    ({"candidates": {"learning_rate": [0.1, -1.0]}}, {}, ValueError, "learning_rate"),
    ({"candidates": {"n_iter": [2, 2.5]}}, {}, TypeError, "n_iter"),
    ({"candidates": {"ridge": stats.uniform(-1, 2)}}, {}, ValueError, "ridge"),
    ({"candidates": {"budget_split": [{"a": 1.0}]}}, {}, ValueError, "budget_split"),
    ({"estimator": DPFC(classes=range(2))}, {}, ValueError, "another label"),
    ({}, {"X_val": np.zeros((9, 2))}, ValueError, "features"),
    ({"scoring": "roc_auc"}, {"X_val": np.zeros((9, 4))}, ValueError, "multi_class"),
    ({"scoring": lambda *_: "good"}, {"X_val": np.zeros((9, 4))}, TypeError, "number"),
    (
        {
            "estimator": DPAdamLinear(
                sampling_prob=0.5, accounting="pld", classes=range(3)
            ),
            "candidates": {"n_iter": [2]},
        },
        {},
        UnsupportedEventError,
        "sampled",
    ),
]


@pytest.mark.parametrize(("search", "validation", "error", "message"), REFUSED)
def test_search_is_not_charged_for_what_no_run_could_fit_or_score(
    search, validation, error, message, make, data, tmp_path
):
    ledger = PrivacyLedger(tmp_path / "ledger", dataset="d", epsilon=9.0, delta=1e-5)
    validation = validation and {**validation, "y_val": np.arange(9) % 3}
    with pytest.raises(error, match=message):
        make(**search).set_params(ledger=ledger, random_state=None).fit(
            *data, **validation
        )
    assert not ledger.history


def test_search_warns_once_and_not_for_every_run(make, data, five_runs):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make(DPFC(n_iter=2), random_state=0, delta=0.01, epsilon=30.0).fit(*data)
    assert [str(w.message).split()[0] for w in caught] == [
        "epsilon",
        "classes=None",
        "random_state",
        "delta",
    ]
    assert {w.category for w in caught} == {PrivacyWarning}
    assert {w.filename for w in caught} == {__file__}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make().fit(*data)


def test_search_knows_all_classes_though_a_run_may_not_see_them(make, data):
    X, y = data
    y = np.where(np.arange(60) == 7, 9, y % 2)
    for _ in range(5):
        search = make(DPFC(n_iter=2), validation_fraction=0.5).fit(X, y)
        assert search.classes_.tolist() == [0, 1, 9]


@pytest.mark.parametrize(
    "change",
    [
        lambda said: dataclasses.replace(said, mu=said.mu * 1.01),
        lambda said: dataclasses.replace(said, mu=None),
        lambda said: object.__setattr__(said, "mu", NAN) or said,
        lambda said: dataclasses.replace(said, seeded=True),
        lambda said: dataclasses.replace(said, adjacency="replace_one"),
        lambda said: dataclasses.replace(said, arithmetic="exact"),
        lambda said: None,
    ],
)
def test_search_refuses_a_fit_that_costs_something_else(change, make, data, plant):
    genuine = plant.genuine("fit of a linear model", of=DPFC)

    def fit(self, X, y):
        genuine(self, X, y)
        self.privacy_ = change(self.privacy_)
        return self

    plant("fit of a linear model", fit, of=DPFC)
    with pytest.raises(PrivacyError, match="every fit"):
        make().fit(*data)


def test_search_refuses_sampled_records(make, data):
    estimator = DPAdamLinear(
        sampling_prob=0.5, accounting="pld", n_iter=2, classes=range(3)
    )
    with pytest.raises(UnsupportedEventError, match="sampled"):
        make(estimator, {"learning_rate": [0.1]}).fit(*data)


@pytest.mark.validation
@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(),
        make_pipeline(StandardScaler(), DPFC()),
        DPFC,
        None,
        DPRandomizedSearch(DPFC(), {}),
    ],
)
def test_search_refuses_an_estimator_without_budget(estimator, data):
    with pytest.raises(TypeError, match="estimator must be a private"):
        DPRandomizedSearch(estimator, {}).fit(*data)


WRONG = {
    "epsilon": [0, -1.0, NAN, -INF, True, "1", 1e-9],
    "delta": [0, 1.0, -1.0, NAN, INF, True, "1", None, 1e-10],
    "mean_runs": [0, 1.0, 1001, NAN, INF, True, "1", None],
    "eta": [-1, -0.6, 11, NAN, INF, True, "1", None],
    "validation_fraction": [0, 1.0, -1, NAN, INF, True, "1", None],
    "random_state": [-1, 2**64, True, 1.5, NAN, "0"],
    "scoring": ["accuracy"],
    "param_distributions": [
        *(None, 1, "ab", [], [1], {"epsilon": [1.0]}, {"rho": [1.0]}),
        *({"random_state": [1]}, {"sampling_prob": [0.5]}, {"unknown": [1]}),
        *({"learning_rate": 1.0}, {"learning_rate": []}, {"classes": [[0, 1]]}),
    ],
}


@pytest.mark.validation
@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name in WRONG for value in WRONG[name]]
)
def test_search_refuses_a_wrong_parameter(name, value, make, data):
    search = make()
    search.set_params(**{name: value})
    with pytest.raises((TypeError, ValueError), match=f"{name}|Parameter|budget"):
        search.fit(*data)
    assert not hasattr(search, "privacy_")


@pytest.mark.validation
def test_search_refuses_half_of_the_validation_data(make, data):
    with pytest.raises(ValueError, match="y_val"):
        make().fit(*data, X_val=data[0])


@pytest.mark.validation
@pytest.mark.parametrize("part", [slice(None), slice(5, 9)])
def test_search_refuses_its_own_records_as_validation_data(make, data, part):
    X, y = data
    with pytest.raises(ValueError, match="X_val must not be the records of the fit"):
        make().fit(X, y, X_val=X[part], y_val=y[part])


@pytest.mark.validation
def test_search_refuses_validation_data_of_other_columns(make, data):
    X, y = data
    names = [f"c{place}" for place in range(X.shape[1])]
    other = pd.DataFrame(X + 1.0, columns=names[::-1])
    search = make()
    with pytest.raises(ValueError, match="feature names"):
        search.fit(pd.DataFrame(X, columns=names), y, X_val=other, y_val=y)
    assert not hasattr(search, "privacy_")


@pytest.mark.validation
def test_search_refuses_a_file_of_its_own_records(make, data, tmp_path):
    write_features(tmp_path / "a.h5", {"train": data})
    train = open_features(tmp_path / "a.h5")["train"]
    with pytest.raises(ValueError, match="X_val must not be the records of the fit"):
        make().fit(train.X, train.y, X_val=train.X, y_val=train.y)


@pytest.mark.validation
def test_search_refuses_a_score_that_is_no_number(make, data):
    with pytest.raises(TypeError, match="scoring"):
        make(scoring=lambda *_: "good").fit(*data, *map(np.copy, data))


def test_search_refuses_records_that_may_all_be_held_out(tmp_path):
    """It would be charged, and then have no record to fit to."""
    X, y = np.eye(11, 3) + 1.0, np.arange(11) % 2
    ledger = PrivacyLedger(tmp_path / "x", dataset="x", epsilon=9.0, delta=1e-5)
    search = DPRandomizedSearch(
        DPLeastSquares(classes=[0, 1]), {"ridge": [1.0]}, ledger=ledger, epsilon=1.0
    )
    with pytest.raises(ValueError, match="at least 12 records, so that not all are"):
        search.fit(X, y)
    assert not ledger.history
    search.set_params(random_state=0, ledger=None).fit(
        np.eye(12, 3) + 1.0, np.arange(12) % 2
    )
    assert "that there are at least 12 records" in search.privacy_.public
    search.fit(X, y, X + 5.0, y)  # none is held out
