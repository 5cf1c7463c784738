"""What is known is refused before the charge, and nothing of a record after it."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.preprocessing import (
    FunctionTransformer,
    Normalizer,
    OrdinalEncoder,
    PowerTransformer,
    StandardScaler,
)

from privfeat import (
    DPLeastSquares,
    DPLeastSquaresRegressor,
    PrivacyLedger,
    PrivacyWarning,
    PrivatePipeline,
    PublicColumns,
)
from privfeat.pipeline.records import by_record
from privfeat.pipeline.steps import Step
from privfeat.preprocessing import (
    DPPCA,
    DPClassCounts,
    DPQuantiles,
    DPStandardScaler,
)
from privfeat.selection import private_cross_val_score

CLF = DPLeastSquares(classes=[0, 1])


@pytest.fixture
def ledger(tmp_path):
    return PrivacyLedger(tmp_path / "l", dataset="d", epsilon=2.0, delta=1e-5)


@pytest.fixture
def data():
    X = np.random.default_rng(0).uniform(-1, 1, (300, 3))
    return X, (X[:, 0] > 0).astype(int)


def pipeline(*steps, **options):
    named = [(f"s{place}", step) for place, step in enumerate(steps)]
    return PrivatePipeline(named, epsilon=1.0, **options)


@pytest.mark.parametrize(
    "steps",
    [
        (HashingVectorizer(n_features=8), DPPCA(n_components=2), CLF),
        (HashingVectorizer(n_features=8), DPStandardScaler(bounds=(-1, 1)), CLF),
        (HashingVectorizer(n_features=8), CLF),
    ],
    ids=["pca", "scaler", "centred"],
)
def test_sparse_rows_of_a_step_that_takes_dense_ones_charge_nothing(steps, ledger):
    with pytest.raises(TypeError, match=r"step 's1': .*sparse"):
        pipeline(*steps, ledger=ledger).fit(["a b", "c"] * 50, [0, 1] * 50)
    assert ledger.history == []


def test_sparse_rows_after_a_private_step_charge_nothing(ledger, data):
    late = FrozenEstimator(FunctionTransformer(sparse.csr_array).fit(data[0]))
    with pytest.raises(TypeError, match=r"step 's2': .*sparse"):
        pipeline(DPStandardScaler(bounds=(-1, 1)), late, CLF, ledger=ledger).fit(*data)
    assert ledger.history == []


REGRESSOR = DPLeastSquaresRegressor(target_bounds=(-1, 1))
WRONG = {
    "nan": (REGRESSOR, np.where(np.arange(300) == 3, np.nan, 0.5)),
    "none": (REGRESSOR, np.array([None] + [0.5] * 299, object)),
    "text": (REGRESSOR, np.array(["a"] * 300)),
    "two columns": (REGRESSOR, np.zeros((300, 2))),
    "no labels": (DPClassCounts(), None),
    "another label": (DPClassCounts(classes=[0, 2]), np.arange(300) % 2),
    "label of a classifier": (DPLeastSquares(classes=[0, 2]), np.arange(300) % 2),
}


@pytest.mark.parametrize(("last", "y"), WRONG.values(), ids=WRONG)
def test_targets_that_the_last_step_refuses_charge_nothing(last, y, ledger, data):
    with pytest.raises((TypeError, ValueError)):
        pipeline(DPStandardScaler(bounds=(-1, 1)), last, ledger=ledger).fit(data[0], y)
    assert ledger.history == []


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "late",
    [
        FunctionTransformer(np.sqrt),
        FunctionTransformer(np.log),
        FunctionTransformer(np.reciprocal),
        FrozenEstimator(
            OrdinalEncoder(
                categories=[[0.0, 5.0]] * 3,
            ).fit(np.zeros((1, 3)))
        ),
    ],
    ids=["sqrt", "log", "reciprocal", "encoder"],
)
def test_no_record_fails_a_step_after_the_charge(late, ledger, data):
    X, y = data
    model = pipeline(DPStandardScaler(bounds=(-1, 1)), late, CLF, ledger=ledger).fit(
        X, y
    )
    (charge,) = ledger.history
    assert charge.status == "fitted"
    assert np.isfinite(model.decision_function(X)).all()


def test_quantiles_before_a_logarithm_fit(ledger, data):
    late = FunctionTransformer(np.log)
    pipeline(DPQuantiles(), late, CLF, ledger=ledger).fit(*data)


def test_huge_numbers_fail_no_step_after_the_charge(ledger, data):
    X = np.where(data[0] > 0, 1.7e308, -1.7e308)
    model = pipeline(DPPCA(n_components=2), CLF, ledger=ledger).fit(X, data[1])
    assert np.isfinite(model.decision_function(X)).all()


def by_rows(function):
    step = FrozenEstimator(FunctionTransformer(function).fit(np.zeros((1, 2))))
    return Step("late", step, private=False, record_wise=False)


def fails_below(X):
    if X[0, 0] < 0:
        raise KeyError(X[0, 0])
    return X + 1.0


@pytest.mark.parametrize(
    "function",
    [
        fails_below,
        lambda X: np.where(X[:, :1] < 0, np.nan, X + 1.0),
        lambda X: np.where(X[:, :1] < 0, np.inf, X + 1.0),
        lambda X: X[:, :1] if X[0, 0] < 0 else X + 1.0,
        lambda X: X[:0] if X[0, 0] < 0 else X + 1.0,
        lambda X: np.array([["a", "b"]]) if X[0, 0] < 0 else X + 1.0,
        lambda X: sparse.csr_array(X * 0.0) if X[0, 0] < 0 else X + 1.0,
    ],
    ids=["error", "nan", "inf", "narrow", "dropped", "text", "sparse"],
)
def test_a_record_of_which_nothing_is_made_gets_zeros(function):
    step, rows = by_rows(function), np.array([[1.0, 2.0], [-1.0, 2.0], [0.0, 3.0]])
    found = by_record(step, rows, charged=True)
    np.testing.assert_array_equal(found, [[2, 3], [0, 0], [1, 4]])
    for place in range(3):
        alone = by_record(step, rows[place : place + 1], charged=True)
        np.testing.assert_array_equal(alone, found[place : place + 1])


def test_a_sparse_row_that_is_not_finite_becomes_zeros():
    step = by_rows(lambda X: sparse.csr_array(np.where(X < 0, np.inf, X)))
    found = by_record(step, np.array([[1.0, 2.0], [5.0, -1.0]]), charged=True)
    np.testing.assert_array_equal(found.toarray(), [[1.0, 2.0], [0.0, 0.0]])


def test_a_step_that_changes_its_format_before_the_charge_is_refused():
    step = by_rows(lambda X: sparse.csr_array(X) if X[0, 0] < 0 else X)
    with pytest.raises(ValueError, match="sparse rows for all records or for none"):
        by_record(step, np.array([[1.0, 2.0], [-1.0, 2.0]]))


def test_scores_of_a_pipeline_of_texts_are_found(ledger):
    clf = DPLeastSquares(classes=[0, 1], center=False)
    model = PrivatePipeline([("words", HashingVectorizer(n_features=16)), ("clf", clf)])
    found = private_cross_val_score(
        model,
        ["a b", "c d"] * 200,
        [0, 1] * 200,
        n_splits=2,
        epsilon=2.0,
        ledger=ledger,
    )
    assert "which columns the first step reads" in found.privacy.public
    assert found.accuracy.value > 0.5


def test_a_plan_of_hashed_texts_needs_no_record():
    clf = DPLeastSquares(classes=[0, 1], center=False)
    model = pipeline(HashingVectorizer(n_features=16), clf)
    assert model.planned(1).epsilon == 1.0
    assert pipeline(Normalizer(), clf).planned(3).epsilon == 1.0


def test_classes_that_are_read_from_labels_are_warned_of_and_stated():
    model = PrivatePipeline([("counts", DPClassCounts())], epsilon=1.0)
    with pytest.warns(PrivacyWarning, match="reads the set of labels"):
        model.fit(np.eye(4), [0, 1, 1, 0])
    assert "counts: the set of classes (read from y)" in model.privacy_.public


def test_a_table_with_dates_is_read_by_its_declaration():
    import pandas as pd

    days = pd.date_range("2020-01-01", periods=40)
    bounds = [pd.Timestamp("2020-01-01").date(), pd.Timestamp("2021-01-01").date()]
    columns = PublicColumns({"day": {"kind": "date", "bounds": bounds}})
    model = PrivatePipeline([("columns", columns), ("clf", CLF)], epsilon=1.0)
    model.fit(pd.DataFrame({"day": days}), np.arange(40) % 2)
    assert model.predict(pd.DataFrame({"day": days[:3]})).shape == (3,)


def test_verbose_tells_the_cost_of_all_steps_before_the_charge(ledger, data, capsys):
    steps = DPStandardScaler(bounds=(-1, 1)), CLF
    pipeline(*steps, ledger=ledger, verbose=1).fit(*data)
    (told,) = [x for x in capsys.readouterr().err.splitlines() if "charged to" in x]
    assert told.startswith("PrivatePipeline: epsilon = 1 at delta = 1e-05 for 1 x s0.")
    left = float(told.split("which then has epsilon = ")[1].split()[0])
    assert left == pytest.approx(ledger.remaining.epsilon, abs=1e-5)
    pipeline(*steps).fit(*data)
    assert "PrivatePipeline: " not in capsys.readouterr().err
    with pytest.raises(ValueError, match="verbose must be"):
        pipeline(*steps, ledger=ledger, verbose=-1).fit(*data)
    assert len(ledger.history) == 1


def test_bounds_taken_from_the_records_warn_before_the_charge(data, ledger):
    """The warning came from the step, when the budget was spent."""
    X, y = data
    scale = ("scale", DPStandardScaler(bounds=(X.min(axis=0), X.max(axis=0))))
    steps = [scale, ("clf", DPLeastSquares(classes=[0, 1]))]
    with pytest.raises(PrivacyWarning, match="the least and the greatest"):
        PrivatePipeline(steps, ledger=ledger).fit(X, y)
    assert not ledger.history
    with pytest.warns(PrivacyWarning, match="the least and the greatest") as caught:
        PrivatePipeline(steps, ledger=ledger).fit(X, y)
    assert sum("the greatest" in str(each.message) for each in caught) == 1


@pytest.mark.parametrize(
    "late",
    [
        StandardScaler().fit(np.arange(20.0).reshape(10, 2)),
        PowerTransformer("box-cox").fit(np.arange(1.0, 31.0).reshape(10, 3)),
    ],
    ids=["of other columns", "no zeros"],
)
def test_a_declared_step_is_tried_before_the_charge(ledger, data, late):
    step = FrozenEstimator(late)
    model = pipeline(DPStandardScaler(bounds=(-4, 4)), step, CLF, ledger=ledger)
    for call in (lambda: model.planned(data[0].shape[1]), lambda: model.fit(*data)):
        with pytest.raises(ValueError, match=r"expecting 2 features|strictly positive"):
            call()
    assert not ledger.history
