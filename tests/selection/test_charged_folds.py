"""Fits in folds, and what a ledger charges or refuses of them."""

import math

import numpy as np
import pytest
from joblib import parallel_config
from scipy.sparse import csr_matrix
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import BaggingClassifier, StackingClassifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_selection import RFE, SequentialFeatureSelector
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    KFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
    TunedThresholdClassifierCV,
    cross_val_predict,
    cross_val_score,
    learning_curve,
    permutation_test_score,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler, scale

from privfeat import (
    DPLeastSquares,
    DPLeastSquaresRegressor,
    HashKFold,
    search_cost,
)
from privfeat.exceptions import PrivacyError, PrivacyWarning
from tests.selection.conftest import FOLDS, N

# of exact scores, by every search in folds of HashKFold: test_search_warnings.py
pytestmark = pytest.mark.filterwarnings("ignore:the scores of a search")
IDS = [f"image-{i}.png" for i in range(N)]
GRID = {"ridge": [1.0, 10.0]}


@pytest.mark.parametrize(
    ("n_jobs", "listed"),
    [(1, False), (1, True), pytest.param(2, False, marks=pytest.mark.slow)],
)
def test_ledger_charges_what_search_cost_says(fit, ledger, labelled, n_jobs, listed):
    cv = list(FOLDS.split(*labelled, groups=IDS)) if listed else FOLDS
    search = GridSearchCV(fit, GRID, cv=cv, n_jobs=n_jobs, error_score="raise")
    search.fit(*labelled, groups=IDS)
    with pytest.warns(PrivacyWarning, match="no privacy guarantee"):
        cost = search_cost(search)
    assert len(ledger.history) == cost.n_fits == 7
    assert ledger.spent.epsilon == pytest.approx(cost.epsilon, rel=1e-9)


@pytest.mark.parametrize(
    "cv", [3, StratifiedKFold(3), StratifiedShuffleSplit(3), KFold(3), "a list"]
)
def test_ledger_refuses_fits_in_folds_that_search_cost_calls_infinite(
    fit, ledger, labelled, cv
):
    cv = list(StratifiedKFold(3).split(*labelled)) if cv == "a list" else cv
    search = GridSearchCV(fit, GRID, cv=cv, error_score="raise")
    with pytest.warns(PrivacyWarning, match="no privacy guarantee"):
        assert search_cost(search).epsilon == math.inf
    with pytest.raises(PrivacyError, match=r"Pass cv=privfeat\.HashKFold"):
        search.fit(*labelled)
    assert ledger.history == []


def test_ledger_refuses_what_scikit_learn_does_with_parts_of_covered_folds(
    fit, ledger, labelled
):
    """Parts by place, and labels of other records."""
    X, y = labelled
    options = {"groups": IDS, "cv": FOLDS}
    for refused in (
        lambda: HalvingGridSearchCV(
            fit, GRID, cv=FOLDS, min_resources=8, error_score="raise"
        ).fit(X, y, groups=IDS),
        *(
            lambda part=part: learning_curve(
                fit, X, y, train_sizes=[part], error_score="raise", **options
            )
            for part in (0.5, 1.0)  # as many as the first fold has
        ),
        lambda: permutation_test_score(fit, X, y, n_permutations=1, **options),
        # which numbers the labels of all: a class that one record has moves others
        lambda: cross_val_predict(fit, X, y, method="predict_proba", **options),
    ):
        with pytest.raises(PrivacyError, match="one record more can move many") as no:
            refused()
        assert "not supported" in str(no.value)  # not: pass what was passed
    assert ledger.history == []


@pytest.mark.filterwarnings("ignore:random_state makes the noise")  # of bagging
@pytest.mark.parametrize(
    ("around", "remedy"),
    [
        (lambda fit: BaggingClassifier(fit, n_estimators=2), "not supported"),
        (
            lambda fit: CalibratedClassifierCV(fit, cv=HashKFold(2)),
            r"TemperatureScaling",
        ),
        (lambda fit: TunedThresholdClassifierCV(fit, cv=HashKFold(2)), "not supported"),
        (lambda fit: RFE(fit, n_features_to_select=1), "not supported"),
        (
            lambda fit: StackingClassifier([("a", fit)], cv=HashKFold(2)),
            "not supported",
        ),
    ],
)
def test_ledger_refuses_what_else_chooses_records(
    fit, ledger, labelled, around, remedy
):
    """And no remedy is to pass the folds that it has, or has no place for."""
    with pytest.raises(PrivacyError, match=f"one record more can move many.*{remedy}"):
        around(fit).fit(*labelled)
    assert ledger.history == []


def test_ledger_looks_at_the_outer_folds_as_well(fit, ledger, labelled):
    inner = GridSearchCV(fit, GRID, cv=HashKFold(2), error_score="raise")
    with pytest.raises(PrivacyError, match="one record more can move many"):
        cross_val_score(inner, *labelled, cv=2, error_score="raise")
    assert ledger.history == []


@pytest.mark.filterwarnings("ignore:OneVsRestClassifier and its like read")
@pytest.mark.parametrize(
    "inner",
    [
        lambda fit: OneVsRestClassifier(fit, n_jobs=2),
        lambda fit: GridSearchCV(
            fit, GRID, cv=HashKFold(2), n_jobs=2, error_score="raise"
        ),
    ],
)
def test_ledger_refuses_jobs_sent_from_folds_that_they_do_not_show(
    fit, ledger, labelled, inner
):
    """A thread of joblib has another stack than the folds that it belongs to."""
    with (
        parallel_config("threading"),
        pytest.raises(PrivacyError, match="one record more can move many"),
    ):
        cross_val_score(
            inner(fit),
            *labelled,
            cv=StratifiedKFold(2),
            scoring=lambda *_: 0.0,
            error_score="raise",
        )
    assert ledger.history == []


AROUND = {
    "a scaler": lambda search, *_: make_pipeline(StandardScaler(), search),
    "a choice of columns": lambda _, fit, folds: SequentialFeatureSelector(
        fit, n_features_to_select=1, cv=folds, n_jobs=2
    ),
    "a search": lambda search, *_: search,
}


@pytest.mark.parametrize("around", AROUND.values(), ids=AROUND)
def test_ledger_refuses_jobs_on_folds_that_were_drawn_before(
    fit, ledger, labelled, around
):
    """What drew them did not see what is around those who fit on them."""
    folds = list(HashKFold(2).split(*labelled))
    search = GridSearchCV(
        fit, GRID, cv=folds, n_jobs=2, refit=False, error_score="raise"
    )
    with (
        parallel_config("threading"),
        pytest.raises((PrivacyError, ValueError), match="one record more"),
    ):
        around(search, fit, folds).fit(*labelled)
    with (
        parallel_config("threading"),
        pytest.raises(PrivacyError, match="itself in the place of its folds"),
    ):
        cross_val_predict(fit, *labelled, cv=folds, n_jobs=2, method="predict_proba")
    assert ledger.history == []


def test_ledger_charges_jobs_in_folds_that_are_marked(fit, ledger, labelled):
    nested = GridSearchCV(fit, GRID, cv=HashKFold(2), n_jobs=2, refit=False)
    with parallel_config("threading"):
        cross_val_score(
            nested,
            *labelled,
            cv=HashKFold(2),
            scoring=lambda *_: 0.0,
            error_score="raise",
        )
    assert len(ledger.history) == 2 * 2 * len(GRID["ridge"])


@pytest.mark.parametrize(
    "step",
    [
        StandardScaler(),
        make_pipeline(Normalizer(), StandardScaler()),
        make_union(Normalizer(), StandardScaler()),
        ColumnTransformer([("scaled", StandardScaler(), [0])]),
        ColumnTransformer([("all", "passthrough", [0])], remainder=StandardScaler()),
        ColumnTransformer(
            [("some", "passthrough", lambda X: [X.var(axis=0).argmax()])]
        ),
        FunctionTransformer(scale),
    ],
)
def test_ledger_refuses_fits_after_steps_that_learn(fit, ledger, labelled, step):
    """Each row that comes out of them depends on every record."""
    pipeline = make_pipeline(step, Normalizer(), fit)
    with pytest.raises(
        PrivacyError, match=r"learned from all.*charge of their own.*FrozenEstimator"
    ):
        pipeline.fit(*labelled)
    assert ledger.history == []
    search = GridSearchCV(pipeline, {"dpleastsquares__ridge": [1.0]}, cv=FOLDS)
    with pytest.warns(PrivacyWarning, match="no privacy guarantee"):
        cost = search_cost(search)
    assert cost.epsilon == math.inf
    assert "earlier steps" in cost.method
    with pytest.warns(PrivacyWarning, match="one record more can move or change"):
        pipeline.set_params(dpleastsquares__ledger=None).fit(*labelled)


def test_ledger_charges_fits_after_steps_that_learn_nothing(fit, ledger, labelled):
    scaler = FrozenEstimator(make_pipeline(StandardScaler()).fit(np.eye(3)))
    step = make_union(make_pipeline(scaler, Normalizer()), "passthrough")
    all_columns = [("all", FunctionTransformer(np.tanh), [0, 1, 2])]
    columns = ColumnTransformer(all_columns, sparse_threshold=0)
    vouched = FrozenEstimator(FunctionTransformer(lambda X: X / 255))
    make_pipeline(step, columns, None, vouched, fit).fit(*labelled)
    assert len(ledger.history) == 1


def test_ledger_refuses_targets_that_were_scaled_by_all(ledger, labelled):
    target = labelled[0][:, 0]
    fit = DPLeastSquaresRegressor(rho=0.005, target_bounds=(-9, 9), ledger=ledger)
    with pytest.raises(PrivacyError, match="StandardScaler learned"):
        TransformedTargetRegressor(fit, transformer=StandardScaler()).fit(
            labelled[0], target
        )
    assert ledger.history == []
    centred = {"func": lambda y: y - y.mean(), "inverse_func": lambda y: y}
    with pytest.raises(PrivacyError, match="FunctionTransformer learned"):
        TransformedTargetRegressor(fit, check_inverse=False, **centred).fit(
            labelled[0], target
        )
    assert ledger.history == []
    functions = {"func": np.arcsinh, "inverse_func": np.sinh}
    TransformedTargetRegressor(fit, **functions).fit(labelled[0], target)
    assert len(ledger.history) == 1


def test_fit_without_a_ledger_warns_in_other_folds_alone(labelled):
    fit = DPLeastSquares(rho=0.005, classes=[0, 1])
    with pytest.warns(PrivacyWarning, match="does not compose"):
        cross_val_score(fit, *labelled, cv=2)
    for ours in (cross_val_score, cross_val_predict):  # warnings are errors here
        ours(fit, *labelled, groups=IDS, cv=FOLDS)
    with pytest.warns(PrivacyWarning, match="to promise anything") as caught:
        cross_val_score(fit.set_params(rho=None, epsilon=math.inf), *labelled, cv=2)
    assert not any("compose" in str(one.message) for one in caught)


def test_sparse_rows_in_no_order_are_dealt_to_no_fold(fit, ledger, labelled):
    """One of them alone would have its fold refused, after others were charged."""
    whole = csr_matrix(labelled[0])
    swapped = np.arange(whole.nnz)
    swapped[:2] = 1, 0
    X = csr_matrix((whole.data[swapped], whole.indices[swapped], whole.indptr))
    with pytest.raises(ValueError, match=r"Call X\.sum_duplicates"):
        cross_val_score(
            make_pipeline(Normalizer(), fit), X, labelled[1], cv=HashKFold(3)
        )
    assert ledger.history == []
