"""One budget, one charge, one statement for all steps of a pipeline."""

import math

import h5py
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import (
    FunctionTransformer,
    Normalizer,
    PolynomialFeatures,
    StandardScaler,
)
from sklearn.utils.estimator_checks import parametrize_with_checks

from privfeat import (
    DPFC,
    BudgetExceededError,
    DPAdamLinear,
    DPLeastSquares,
    DPLeastSquaresRegressor,
    DPNearestMean,
    DPNewton,
    HashKFold,
    PrivacyLedger,
    PrivacyWarning,
    PrivatePipeline,
    PublicColumns,
)
from privfeat.data import LazyFeatures
from tests.linear.conftest import passes


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4))
    return X, (X[:, 0] > 0).astype(int)


def make(clf=None, **options):
    clf = DPLeastSquares(classes=[0, 1]) if clf is None else clf
    options = {"epsilon": 1.0} | options
    return PrivatePipeline([("norm", Normalizer()), ("clf", clf)], **options)


@pytest.mark.parametrize("kind", [DPFC, DPAdamLinear, DPNearestMean, DPNewton])
def test_a_pipeline_ends_in_any_linear_classifier(kind, data):
    model = make(kind(classes=[0, 1])).fit(*data)
    assert model.privacy_.epsilon == 1.0
    assert model.predict_proba(data[0]).shape == (600, 2)
    assert {r.name.split(".")[0] for r in model.privacy_.releases} == {"clf"}


def test_a_pipeline_ends_in_a_regressor(data):
    X, _ = data
    step = DPLeastSquaresRegressor(target_bounds=(-3, 3), clip_norm=2.0)
    model = PrivatePipeline([("model", step)], epsilon=8.0).fit(X, X[:, 0])
    assert is_regressor(model)
    assert model.score(X, X[:, 0]) > 0.5
    assert not hasattr(model, "predict_proba")


def test_a_fit_leaves_its_parameters_as_they_are(data):
    model = make()
    before = repr(model)
    model.fit(*data)
    assert repr(model) == before
    assert not hasattr(model.steps[-1][1], "coef_")
    assert model.steps[-1][1].rho is None
    assert model.steps_[-1][1].ledger is None


def test_the_ledger_is_charged_once_for_all(tmp_path, data):
    ledger = PrivacyLedger(tmp_path / "l", dataset="d", epsilon=1.2, delta=1e-5)
    model = make(ledger=ledger).fit(*data)
    (charge,) = ledger.history
    assert (charge.estimator, charge.status) == ("PrivatePipeline", "fitted")
    assert charge.statement.releases == model.privacy_.releases
    with pytest.raises(BudgetExceededError):
        make(ledger=ledger).fit(*data)


def test_all_steps_have_the_statement_of_the_whole(data):
    model = make().fit(*data)
    assert model.named_steps["clf"].privacy_ is model.privacy_


def test_a_statement_says_what_is_declared_public(data):
    scaler = FrozenEstimator(StandardScaler().fit(np.eye(4)))
    steps = [("scale", scaler), ("clf", DPLeastSquares(classes=[0, 1]))]
    said = str(PrivatePipeline(steps, epsilon=1.0).fit(*data).privacy_)
    assert "scale: that it was fitted without the records" in said
    assert "clf: the set of 2 classes (given)" in said


def test_planned_is_what_fit_releases(data):
    model = make()
    assert model.planned(4).records == model.fit(*data).privacy_.releases


def test_planned_sees_how_many_columns_public_steps_make(data):
    steps = [("more", PolynomialFeatures(2)), *make().steps]
    model = PrivatePipeline(steps, epsilon=1.0)
    assert model.planned(4).records == model.fit(*data).privacy_.releases


@pytest.mark.parametrize("budget", [{"epsilon": 0.3}, {"rho": 0.01, "epsilon": None}])
@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_a_budget_is_stated_as_it_was_given(budget, adjacency, data):
    said = make(**budget, adjacency=adjacency).fit(*data).privacy_
    assert said.adjacency == adjacency
    for name, value in budget.items():
        assert value is None or getattr(said, name) == pytest.approx(value, rel=1e-12)


def test_a_pipeline_without_privacy_says_so(data):
    with pytest.warns(PrivacyWarning, match="epsilon should be at most"):
        model = make(epsilon=math.inf).fit(*data)
    assert model.privacy_.epsilon == math.inf
    assert model.score(*data) > 0.9


def test_a_seed_makes_a_fit_again_and_warns_once(data):
    with pytest.warns(PrivacyWarning, match="random_state") as caught:
        one = make(random_state=3).fit(*data)
    assert len([w for w in caught if "random_state" in str(w.message)]) == 1
    with pytest.warns(PrivacyWarning):
        two = make(random_state=3).fit(*data)
    assert one.privacy_.seeded
    np.testing.assert_array_equal(
        one.decision_function(data[0]), two.decision_function(data[0])
    )


def test_two_fits_differ(data):
    one, two = (make().fit(*data).decision_function(data[0]) for _ in range(2))
    assert not np.array_equal(one, two)


def test_classes_that_are_read_are_said_once(data):
    with pytest.warns(PrivacyWarning, match="classes=None") as caught:
        model = make(DPLeastSquares()).fit(*data)
    assert len([w for w in caught if "classes=None" in str(w.message)]) == 1
    assert "2 classes (read from y)" in str(model.privacy_)


def test_users_are_protected_by_every_step(data):
    groups = np.arange(600) // 3
    model = make(max_group_size=3).fit(*data, groups=groups)
    assert model.privacy_.unit == "user"
    with pytest.raises(ValueError, match="max_group_size"):
        make().fit(*data, groups=groups)


def test_exact_arithmetic_goes_to_every_step(data):
    model = make(arithmetic="exact").fit(*data)
    assert model.privacy_.arithmetic == "exact"


def test_a_table_goes_through_its_columns():
    columns = {
        "age": {"kind": "integer", "bounds": [0, 100]},
        "clinic": {"kind": "category", "categories": ["Bonn", "Kiel"]},
    }
    table = pd.DataFrame({"age": [10, 90] * 300, "clinic": ["Bonn", "Kiel"] * 300})
    steps = [("columns", PublicColumns(columns)), make().steps[1]]
    model = PrivatePipeline(steps, epsilon=8.0).fit(table, [0, 1] * 300)
    assert model.predict(table.iloc[:2]).tolist() == [0, 1]
    assert model.predict(table[["clinic", "age"]].iloc[:2]).tolist() == [0, 1]
    names = model.get_feature_names_out().tolist()
    assert names == ["age", "clinic_Bonn", "clinic_Kiel"]


def test_columns_in_another_order_are_refused_where_they_are_numbers(data):
    X, y = data
    table = pd.DataFrame(X, columns=list("abcd"))
    model = PrivatePipeline([make().steps[1]], epsilon=1.0).fit(table, y)
    assert model.feature_names_in_.tolist() == list("abcd")
    with pytest.raises(ValueError, match="feature names"):
        model.predict(table[list("dcba")])


def test_a_refusal_of_the_data_charges_nothing(tmp_path, data):
    ledger = PrivacyLedger(tmp_path / "l", dataset="d", epsilon=1.0, delta=1e-5)
    X, y = data
    for bad in (np.where(X > 2, np.nan, X), X[:, 0], X[:-1]):
        with pytest.raises(ValueError, match=r"X|steps?|one row"):
            make(ledger=ledger).fit(bad, y)
    with pytest.raises(ValueError, match="classes"):
        make(ledger=ledger).fit(X, y + 5)
    assert ledger.history == []


@pytest.mark.parametrize("shares", [{}, {"norm": 1}, {"clf": 1, "x": 1}, [1], 1])
def test_shares_name_the_private_steps(shares, data):
    with pytest.raises(ValueError, match=r"each private step, \['clf'\]"):
        make(shares=shares).fit(*data)


def test_a_pipeline_is_cloned_with_its_steps(data):
    model = make().fit(*data)
    copied = clone(model)
    assert not hasattr(copied, "steps_")
    assert copied.steps[1][1] is not model.steps[1][1]
    assert is_classifier(copied)


def test_parameters_of_steps_are_set_by_name():
    model = make().set_params(clf__ridge=3.0, epsilon=2.0)
    assert model.get_params()["clf__ridge"] == 3.0
    assert model.epsilon == 2.0
    model.set_params(norm=Normalizer("l1"))
    assert model.get_params()["norm__norm"] == "l1"
    assert "norm" not in model.get_params(deep=False)
    with pytest.raises(ValueError, match="Invalid parameter"):
        model.set_params(other__ridge=1)


def test_a_grid_search_in_our_folds_fits_it(tmp_path, data):
    ledger = PrivacyLedger(tmp_path / "l", dataset="d", epsilon=50.0, delta=1e-5)
    grid = {"clf__ridge": [1.0, 10.0]}
    with pytest.warns(PrivacyWarning, match="the scores of a search"):
        GridSearchCV(make(ledger=ledger), grid, cv=HashKFold(2)).fit(*data)
    assert len(ledger.history) == 5


def test_a_grid_search_in_other_folds_is_refused_with_a_ledger(tmp_path, data):
    ledger = PrivacyLedger(tmp_path / "l", dataset="d", epsilon=50.0, delta=1e-5)
    grid = {"clf__ridge": [1.0, 10.0]}
    search = GridSearchCV(make(ledger=ledger), grid, cv=3, error_score="raise")
    with pytest.raises(Exception, match="HashKFold"):
        search.fit(*data)
    assert ledger.history == []


def test_texts_are_hashed_and_stay_sparse():
    texts = ["good fine good", "bad awful bad"] * 300
    steps = [
        ("words", HashingVectorizer(n_features=2**6)),
        ("clf", DPLeastSquares(classes=[0, 1], center=False)),
    ]
    model = PrivatePipeline(steps, epsilon=8.0).fit(texts, [1, 0] * 300)
    assert model.predict(texts[:2]).tolist() == [1, 0]
    assert "which columns the first step reads" in model.privacy_.public


def test_a_declared_step_of_unknown_functions_is_said_to_get_one_record(data):
    frozen = FrozenEstimator(FunctionTransformer(lambda X: X * 2.0).fit(data[0]))
    steps = [("mine", frozen), ("clf", DPLeastSquares(classes=[0, 1]))]
    model = PrivatePipeline(steps, epsilon=8.0).fit(data[0][:50], data[1][:50])
    assert any("got one record at a time" in fact for fact in model.privacy_.public)


def test_records_and_labels_are_as_many(data):
    with pytest.raises(ValueError, match="inconsistent"):
        make().fit(data[0], data[1][:-1])


def test_a_feature_file_is_read_to_memory(tmp_path, data):
    with h5py.File(tmp_path / "f.h5", "w") as file:
        file["features"] = data[0]
    lazy = LazyFeatures(str(tmp_path / "f.h5"), "features", (600, 4), np.float64)
    model = make().fit(lazy, data[1])
    np.testing.assert_array_equal(model.predict(lazy), model.predict(data[0]))


@pytest.mark.slow
@parametrize_with_checks([PrivatePipeline([("clf", DPFC())])])
@pytest.mark.filterwarnings("ignore")
def test_a_pipeline_passes_every_check_of_sklearn(estimator, check):
    passes(estimator, check)
