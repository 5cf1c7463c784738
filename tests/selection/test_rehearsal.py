"""A search with a ledger charges nothing for records that a fit of all would refuse."""

import numpy as np
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import (
    GridSearchCV,
    cross_val_predict,
    cross_val_score,
    validation_curve,
)
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import Normalizer, StandardScaler

from privfeat import (
    DPLeastSquares,
    DPLeastSquaresRegressor,
    DPSGDClassifier,
    HashKFold,
    PrivatePipeline,
    PublicColumns,
)
from privfeat.core.accounting.calibration import DEFAULT_EPSILON
from privfeat.preprocessing import DPPCA, DPQuantiles, DPStandardScaler
from privfeat.selection import private_cross_val_score

pytestmark = pytest.mark.filterwarnings("ignore:the scores of a search")
FOLDS = HashKFold(3)
GRID = {"ridge": [1.0, 10.0]}
NOTHING = ["No fold was fitted and nothing was charged."]
COLUMNS = {
    "age": {"kind": "numeric", "bounds": [-9, 9]},
    "ward": {"kind": "category", "categories": ["a", "b"]},
}


@pytest.fixture
def gap(labelled):
    """Return the records, of which one has no value."""
    X, y = labelled
    X = np.array(X, dtype=float)
    X[7, 1] = np.nan
    return X, y


@pytest.fixture
def table(labelled):
    """Return a table in which one record has a category that is not declared."""
    pd = pytest.importorskip("pandas")
    X, y = labelled
    ward = np.where(np.arange(len(y)) % 2, "a", "b")
    ward[7] = "c"
    return pd.DataFrame({"age": X[:, 0], "ward": ward}), y


def check_refused(search, ledger, *data):
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - of several messages
        search(*data)
    assert caught.value.__notes__ == NOTHING
    assert ledger.history == []


def test_a_gap_in_one_record_is_found_before_any_charge(fit, ledger, gap):
    check_refused(GridSearchCV(fit, GRID, cv=FOLDS).fit, ledger, *gap)


@pytest.mark.parametrize("function", [cross_val_score, cross_val_predict])
def test_functions_of_folds_look_as_well(fit, ledger, gap, function):
    check_refused(lambda X, y: function(fit, X, y, cv=FOLDS), ledger, *gap)


def test_validation_curves_look_as_well(fit, ledger, gap):
    about = {"param_name": "ridge", "param_range": [1.0, 10.0], "cv": FOLDS}
    check_refused(lambda X, y: validation_curve(fit, X, y, **about), ledger, *gap)


def test_a_label_of_one_record_is_found_before_any_charge(fit, ledger, labelled):
    X, y = labelled
    check_refused(GridSearchCV(fit, GRID, cv=FOLDS).fit, ledger, X, [9, *y[1:]])


@pytest.mark.parametrize("private", [False, True])
def test_a_category_of_one_record_is_found_before_any_charge(ledger, table, private):
    if private:
        steps = [("columns", PublicColumns(COLUMNS)), ("scale", DPStandardScaler())]
        steps += [("fit", DPLeastSquares(classes=[0, 1]))]
        steps[1][1].set_params(bounds=(-1.0, 1.0))
        chain = PrivatePipeline(steps, epsilon=DEFAULT_EPSILON, ledger=ledger)
    else:
        last = DPLeastSquares(classes=[0, 1], epsilon=0.5, ledger=ledger)
        chain = make_pipeline(PublicColumns(COLUMNS), last)
    check_refused(GridSearchCV(chain, {}, cv=FOLDS).fit, ledger, *table)


def test_targets_behind_a_function_are_found_before_any_charge(ledger, labelled):
    reg = DPLeastSquaresRegressor(target_bounds=(0, 1), epsilon=0.5, ledger=ledger)
    search = GridSearchCV(TransformedTargetRegressor(reg), {}, cv=FOLDS)
    check_refused(search.fit, ledger, labelled[0], [np.inf, *labelled[1][1:]])


def test_a_candidate_that_is_refused_does_not_refuse_the_others(fit, ledger, labelled):
    search = GridSearchCV(fit, {"ridge": [-1.0, 1.0]}, cv=FOLDS, error_score=-1.0)
    with pytest.warns(RuntimeWarning, match="3 fits failed"):
        search.fit(*labelled)
    assert search.best_params_ == {"ridge": 1.0}
    assert len(ledger.history) == 4


ODD = {
    "a value": {"ridge": [1.0, -1.0]},
    "the first": {"ridge": [-1.0, 1.0]},
    "a shape": {"prior": [None, np.ones((3, 9))]},
    "users": {"max_group_size": [None, 2]},
}


@pytest.mark.parametrize("grid", ODD.values(), ids=ODD)
def test_a_candidate_that_ends_a_search_is_found_before_any_charge(
    fit, ledger, labelled, grid
):
    search = GridSearchCV(fit, grid, cv=FOLDS, error_score="raise")
    check_refused(search.fit, ledger, *labelled)


def test_a_value_that_ends_a_curve_is_found_before_any_charge(fit, ledger, labelled):
    about = {"param_name": "ridge", "param_range": [1.0, -1.0], "cv": FOLDS}
    about["error_score"] = "raise"
    check_refused(lambda X, y: validation_curve(fit, X, y, **about), ledger, *labelled)


def test_looking_changes_no_record(ledger, labelled):
    """A step that writes into its rows had scaled them once more for the folds."""
    X, y = np.array(labelled[0], float), labelled[1]
    clf = DPLeastSquares(classes=[0, 1], epsilon=0.1, ledger=ledger)
    scaler = FrozenEstimator(StandardScaler(copy=False).fit(X + 1.0))
    given = X.copy()
    search = GridSearchCV(make_pipeline(scaler, clf), {}, cv=FOLDS, refit=False)
    search.fit(given, y)
    np.testing.assert_array_equal(given, X)
    union = make_union(DPStandardScaler(bounds=(-9, 9), ledger=ledger), scaler)
    made = union.fit_transform(X.copy())
    np.testing.assert_array_equal(made[:, X.shape[1] :], scaler.transform(X.copy()))


def test_looking_makes_no_checkpoints(ledger, labelled, tmp_path):
    """One that was interrupted would go on, in folds that have other records."""
    clf = DPSGDClassifier(
        model="mlp",
        noise_multiplier=9.0,
        classes=[0, 1],
        n_iter=1,
        ledger=ledger,
        checkpoint_dir=tmp_path / "kept",
    )
    X, y = labelled
    check_refused(GridSearchCV(clf, {}, cv=FOLDS).fit, ledger, X, [9, *y[1:]])
    assert not (tmp_path / "kept").exists()


def test_an_empty_fold_is_found_before_any_charge(fit, ledger, labelled):
    """With few persons: the scores were NaN, or a charged function ended."""
    X, y = labelled
    persons = np.arange(len(y)) % 2 + 50
    search = GridSearchCV(fit, GRID, cv=HashKFold(3, key=0))
    with pytest.raises(ValueError, match="every fold must have a record"):
        search.fit(X, y, groups=persons)
    with pytest.raises(ValueError, match="every fold must have a record"):
        cross_val_predict(fit, X, y, cv=HashKFold(3, key=0), groups=persons)
    assert ledger.history == []
    assert len([*HashKFold(3, key=0).split(X, y, persons)]) == 3


def test_users_in_another_order_are_found_before_any_charge(fit, ledger, labelled):
    """Rows were cut or made arrays before users were compared with them."""
    pd = pytest.importorskip("pandas")
    X, y = pd.DataFrame(labelled[0]), labelled[1]
    persons = pd.Series(np.arange(len(y)) // 2)[::-1]
    users = fit.set_params(max_group_size=2)
    fits = {
        "alone": lambda: users.fit(X, y, groups=persons),
        "in a pipeline": lambda: make_pipeline(Normalizer(), users).fit(
            X, y, dpleastsquares__groups=persons
        ),
        "in folds": lambda: GridSearchCV(fit, GRID, cv=FOLDS).fit(X, y, groups=persons),
    }
    for run in fits.values():
        with pytest.raises(ValueError, match="must have the index of X and y"):
            run()
    assert ledger.history == []


def test_cross_validation_refuses_what_is_hidden_and_dates(labelled):
    X, y = labelled
    hidden = np.ma.array(X, mask=np.arange(X.size).reshape(X.shape) < 5)
    for rows in (hidden, np.full(X.shape, "2020-01-01", "datetime64[D]")):
        with pytest.raises(TypeError, match=r"masked|dates"):
            private_cross_val_score(DPLeastSquares(classes=[0, 1]), rows, y)


@pytest.mark.parametrize("step", [DPStandardScaler, DPPCA, DPQuantiles])
def test_private_steps_refuse_what_is_hidden(labelled, step):
    hidden = np.ma.array(labelled[0], mask=labelled[0] > 1.0)
    with pytest.raises(TypeError, match="masked"):
        step().fit(hidden)
