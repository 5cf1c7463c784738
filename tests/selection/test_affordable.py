"""A search that its ledger cannot pay for is refused before its first fold."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.compose import TransformedTargetRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    RandomizedSearchCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    validation_curve,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from privfeat import (
    BudgetExceededError,
    DPAdamLinear,
    DPLeastSquares,
    DPLeastSquaresRegressor,
    HashKFold,
    PrivacyError,
    PrivacyLedger,
    PrivatePipeline,
)
from privfeat.preprocessing import DPStandardScaler
from privfeat.selection.affordable import check_affordable
from tests.selection.conftest import N

pytestmark = pytest.mark.filterwarnings(
    "ignore::privfeat.exceptions.PrivacyWarning",
)
GRID = {"ridge": [1.0, 10.0]}
FOLDS = HashKFold(3)


@pytest.fixture
def ledger(tmp_path):
    return PrivacyLedger(tmp_path / "x.ledger", dataset="x", epsilon=3.0, delta=1e-5)


@pytest.fixture
def fit_of(ledger):
    """Return a function that makes an estimator of the ``part`` of what is left."""

    def fit_of(n_fits, **options):
        rho = ledger.remaining.rho / n_fits
        return DPLeastSquares(rho=rho, classes=[0, 1], ledger=ledger, **options)

    return fit_of


def grid(fit, **options):
    return GridSearchCV(fit, GRID, cv=FOLDS, **options).fit


def randomized(fit):
    return RandomizedSearchCV(fit, {"ridge": [1.0, 2.0, 3.0]}, n_iter=2, cv=FOLDS).fit


def scored(fit):
    return lambda X, y: cross_val_score(fit, X, y, cv=FOLDS)


def validated(fit):
    return lambda X, y: cross_validate(fit, X, y, cv=FOLDS)


def predicted(fit):
    return lambda X, y: cross_val_predict(fit, X, y, cv=FOLDS)


def curve(fit):
    ridges = {"param_name": "ridge", "param_range": [1.0, 10.0]}
    return lambda X, y: validation_curve(fit, X, y, cv=FOLDS, **ridges)


def nested(fit):
    return lambda X, y: cross_val_score(
        GridSearchCV(fit, GRID, cv=HashKFold(2)), X, y, cv=FOLDS
    )


def nested_draws(fit):
    drawn = RandomizedSearchCV(fit, GRID, n_iter=9, cv=HashKFold(2))  # of two there
    return lambda X, y: cross_val_score(drawn, X, y, cv=FOLDS)


def transformed(fit):
    """The only way to the logarithm of a target."""
    options = {"target_bounds": (0.0, 2.0), **budget_of(fit)}
    log = {"func": np.log1p, "inverse_func": np.expm1}
    around = TransformedTargetRegressor(DPLeastSquaresRegressor(**options), **log)
    search = GridSearchCV(around, {"regressor__ridge": [1.0, 10.0]}, cv=FOLDS)
    return lambda X, y: search.fit(X, y.astype(float))


def piped(fit):
    steps = make_pipeline(FunctionTransformer(np.abs), fit)
    grid = {"dpleastsquares__ridge": [1.0, 10.0]}
    return GridSearchCV(steps, grid, cv=FOLDS).fit


def whole(fit):
    """A pipeline that is charged itself: its steps have no budget."""
    last = DPLeastSquares(classes=[0, 1])
    steps = PrivatePipeline(
        [("scale", DPStandardScaler(bounds=(-1, 1))), ("fit", last)], **budget_of(fit)
    )
    return GridSearchCV(steps, {"fit__ridge": [1.0, 10.0]}, cv=FOLDS).fit


def first_step(fit):
    """A pipeline of which the first step is charged, not the last."""
    scaler = DPStandardScaler(bounds=(-1, 1), **budget_of(fit))
    steps = make_pipeline(scaler, LogisticRegression())
    return GridSearchCV(steps, {"logisticregression__C": [1.0, 2.0]}, cv=FOLDS).fit


def both_steps(fit):
    steps = make_pipeline(DPStandardScaler(bounds=(-1, 1), **budget_of(fit)), fit)
    return GridSearchCV(steps, {"dpleastsquares__ridge": [1.0, 10.0]}, cv=FOLDS).fit


def budget_of(fit):
    return {"rho": fit.rho, "ledger": fit.ledger}


def without_refit(fit):
    return grid(fit, refit=False)


def in_jobs(fit):
    return grid(fit, n_jobs=2)


SEARCHES = [
    *((grid, 7), (randomized, 7), (scored, 3), (validated, 3), (predicted, 3)),
    *((curve, 6), (nested, 15), (piped, 7), (without_refit, 6), (in_jobs, 7)),
    *((whole, 7), (first_step, 7), (both_steps, 14)),
    *((nested_draws, 15), (transformed, 7)),
]


@pytest.mark.parametrize(
    ("search", "n_fits"),
    [
        *((grid, 7), (whole, 7)),
        pytest.param(nested, 15, marks=pytest.mark.slow),
    ],
)
def test_search_that_fits_the_ledger_runs_to_its_end(
    fit_of, ledger, labelled, search, n_fits
):
    search(fit_of(n_fits))(*labelled)
    assert len(ledger.history) == n_fits
    assert ledger.spent.epsilon <= 3.0


@pytest.mark.parametrize(("search", "n_fits"), SEARCHES)
def test_search_that_would_overspend_at_its_last_fit_charges_nothing(
    fit_of, ledger, labelled, search, n_fits
):
    run = search(fit_of(n_fits - 0.5))
    with pytest.raises(BudgetExceededError, match=f"the {n_fits} fits of this search"):
        run(*labelled)
    assert ledger.history == []


def test_search_that_is_refused_says_what_each_fit_may_have(fit_of, ledger, labelled):
    with pytest.raises(BudgetExceededError) as caught:
        grid(fit_of(1))(*labelled)
    told = str(caught.value)
    fit = fit_of(7).set_params(
        rho=None, epsilon=float(told.partition("may have epsilon = ")[2].split()[0])
    )
    grid(fit)(*labelled)
    assert len(ledger.history) == 7
    assert ledger.spent.epsilon > 2.99


def test_search_counts_what_was_spent_before(fit_of, ledger, labelled):
    estimator = fit_of(7)
    fit_of(100).fit(*labelled)
    with pytest.raises(BudgetExceededError, match="and those before on 'x'"):
        grid(estimator)(*labelled)
    assert len(ledger.history) == 1


def test_search_pays_the_dearest_candidate_at_its_end(fit_of, ledger, labelled):
    """Which one is fitted to all records is not known before."""
    estimator = fit_of(1)
    whole = ledger.remaining.rho
    for parts, enough in (((0.1, 0.2), True), ((0.1, 0.25), False)):
        rhos = [whole * part for part in parts]  # 3 x 0.3 + 0.2 < 1 would be 1.1
        search = GridSearchCV(estimator, {"rho": [r / 1.1 for r in rhos]}, cv=FOLDS)
        if enough:
            search.fit(*labelled)
            assert len(ledger.history) == 7
        else:
            with pytest.raises(BudgetExceededError):
                search.fit(*labelled)


def test_search_where_nothing_is_left_says_so(fit_of, ledger, labelled):
    fit_of(1).set_params(rho=None, epsilon=3.0).fit(*labelled)
    fit = DPLeastSquares(epsilon=0.1, classes=[0, 1], ledger=ledger)
    with pytest.raises(BudgetExceededError, match="Fit fewer candidates"):
        grid(fit)(*labelled)


def test_search_with_users_is_asked_for_as_well(tmp_path, labelled):
    path = tmp_path / "u.ledger"
    ledger = PrivacyLedger(path, dataset="u", epsilon=1.0, delta=1e-5, unit="user")
    with config_context(enable_metadata_routing=True):
        fit = DPLeastSquares(
            epsilon=0.9, classes=[0, 1], ledger=ledger, max_group_size=2
        ).set_fit_request(groups=True)
        with pytest.raises(BudgetExceededError, match="the 7 fits"):
            grid(fit)(*labelled, groups=[f"user {i // 2}" for i in range(N)])
    assert ledger.history == []


@pytest.mark.parametrize("options", [{"random_state": 0}, {"adjacency": "replace_one"}])
def test_search_that_the_ledger_does_not_cover_fits_no_fold(
    fit_of, ledger, labelled, options
):
    with pytest.raises((PrivacyError, ValueError), match=r"ledger must|adjacency must"):
        grid(fit_of(7, **options))(*labelled)
    assert ledger.history == []


def test_folds_of_another_library_are_not_asked_for(labelled):
    """A variable of its own may bear the name that scikit-learn's has."""
    routed_params = "no budget"
    assert len(list(FOLDS.split(*labelled))) == 3
    assert routed_params == "no budget"


@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(),
        DPLeastSquares(epsilon=99.0, classes=[0, 1]),
    ],
)
def test_search_without_a_ledger_is_not_asked(labelled, estimator):
    scores = cross_val_score(estimator, *labelled, cv=FOLDS)
    assert len(scores) == 3


@pytest.mark.parametrize(
    "estimator",
    [
        DPLeastSquares(noise_multiplier=1e-3, classes=[0, 1]),
        make_pipeline(
            DPStandardScaler(bounds=(-1, 1), noise_multiplier=1e-3),
            DPLeastSquares(epsilon=99.0, classes=[0, 1]),
        ),
        DPAdamLinear(sampling_prob=0.5, epsilon=99.0, classes=[0, 1]),
        GridSearchCV(DPLeastSquares(epsilon=99.0, classes=[0, 1]), GRID, cv=[(0, 1)]),
        GridSearchCV(DPLeastSquares(noise_multiplier=1e-3), GRID, cv=FOLDS),
        RandomizedSearchCV(
            DPLeastSquares(epsilon=99.0), {"epsilon": [1.0, 9.0]}, cv=FOLDS
        ),
    ],
)
def test_of_fits_of_unknown_cost_nothing_is_said(ledger, estimator):
    """The ledger charges them one by one, and refuses the one that is too much."""
    ledgers = [name for name in estimator.get_params() if name.endswith("ledger")]
    asked = estimator.set_params(**dict.fromkeys(ledgers, ledger))
    check_affordable(asked, [{}], 3, refit=False)
