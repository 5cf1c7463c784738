"""What scikit-learn's searches cost, and that they are never called private."""

import math

import numpy as np
import pytest
from sklearn import config_context
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    KFold,
    RandomizedSearchCV,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedKFold,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from privfeat import (
    DPFC,
    DPAdamLinear,
    HashKFold,
    PrivacyLedger,
    PrivacyWarning,
    compose,
    search_cost,
)
from privfeat.core.accounting.conversions import gaussian_epsilon
from privfeat.exceptions import UnsupportedEventError

pytestmark = pytest.mark.filterwarnings(
    "ignore::privfeat.exceptions.PrivacyWarning",
)
GRID = {"learning_rate": [1.0, 2.0, 4.0]}


def replace_one(**options):
    return DPFC(rho=0.01, adjacency="replace_one", n_iter=2, **options)


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
@pytest.mark.parametrize("refit", [True, False])
def test_search_cost_counts_all_fits_in_folds_that_are_covered(adjacency, refit):
    fit = DPFC(rho=0.01, adjacency=adjacency, n_iter=2)
    cost = search_cost(GridSearchCV(fit, GRID, cv=HashKFold(5), refit=refit))
    mu = math.sqrt(2 * 0.01 * (15 + refit))
    assert cost.mu == pytest.approx(mu)
    assert cost.epsilon == pytest.approx(gaussian_epsilon(mu, 1e-5))
    assert cost.n_fits == 15 + refit


@pytest.mark.parametrize(
    "cv",
    [
        *(None, 5, StratifiedKFold(5), KFold(5), KFold(5, shuffle=True)),
        *(ShuffleSplit(5), RepeatedKFold(), [(0, 1)]),
    ],
)
@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_search_cost_is_infinite_in_folds_that_a_ledger_refuses(cv, adjacency):
    cost = search_cost(GridSearchCV(DPFC(adjacency=adjacency), GRID, cv=cv))
    assert cost.epsilon == math.inf
    assert "cv=HashKFold(k)" in cost.method


def test_search_cost_is_never_called_private():
    search = GridSearchCV(replace_one(), GRID, cv=HashKFold(2))
    with pytest.warns(PrivacyWarning, match="no privacy guarantee") as caught:
        cost = search_cost(search)
    assert caught[0].filename == __file__
    assert not cost.private
    assert math.isfinite(cost.epsilon)
    text = str(cost)
    for part in ["NOT COVERED", "cv_results_", "best_params_"]:
        assert part in text


def test_search_cost_of_users_is_what_a_ledger_charges(tmp_path):
    """Folds may split a user: each fit protects all that it holds of one."""
    path = tmp_path / "u.ledger"
    ledger = PrivacyLedger(path, dataset="u", epsilon=9.0, delta=1e-5, unit="user")
    rng = np.random.default_rng(0)
    X, y, users = rng.normal(size=(60, 3)), np.arange(60) % 2, np.arange(60) // 2
    with config_context(enable_metadata_routing=True):
        fit = DPFC(rho=0.01, n_iter=2, classes=[0, 1], ledger=ledger, max_group_size=2)
        fit.set_fit_request(groups=True)
        search = GridSearchCV(fit, GRID, cv=HashKFold(2))
        cost = search_cost(search)
        search.fit(X, y, groups=users)
    assert cost.n_fits == len(ledger.history) == 7
    assert cost.epsilon == pytest.approx(ledger.spent.epsilon)
    mixed = GridSearchCV(DPFC(), {"max_group_size": [None, 2]}, cv=HashKFold(2))
    with pytest.raises(UnsupportedEventError, match="for all or none"):
        search_cost(mixed)


def test_search_cost_agrees_with_the_fits_composed():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 3)), np.arange(30) % 2
    estimator = replace_one(classes=[0, 1])
    fits = [estimator.set_params(learning_rate=r).fit(X, y).privacy_ for r in (1, 2)]
    cost = search_cost(
        GridSearchCV(estimator, {"learning_rate": [1, 2]}, cv=HashKFold(2))
    )
    assert cost.epsilon == pytest.approx(compose([*fits, *fits, fits[0]]).epsilon)


def test_search_cost_takes_the_budget_of_each_candidate():
    search = GridSearchCV(
        DPFC(adjacency="replace_one"), {"epsilon": [1.0, 2.0]}, cv=HashKFold(2)
    )
    small, large = (DPFC(epsilon=e, adjacency="replace_one") for e in (1.0, 2.0))
    costs = [
        search_cost(GridSearchCV(one, {}, cv=HashKFold(2), refit=False)).mu
        for one in (small, large)
    ]
    mu = math.hypot(costs[0], costs[1], costs[1] / math.sqrt(2))
    assert search_cost(search).mu == pytest.approx(mu)
    search.set_params(param_grid={"epsilon": [1.0, math.inf]})
    assert search_cost(search).epsilon == math.inf


def test_search_cost_of_a_randomized_search_counts_its_draws():
    search = RandomizedSearchCV(
        replace_one(), {"learning_rate": [1, 2, 3]}, n_iter=2, cv=HashKFold(3)
    )
    assert search_cost(search).mu == pytest.approx(math.sqrt(2 * 0.01 * 7))
    search.set_params(n_iter=20)  # of three, each is drawn once
    assert search_cost(search).n_fits == 10
    search.set_params(param_distributions={"epsilon": [1.0, 2.0]})
    with pytest.raises(UnsupportedEventError, match="budgets"):
        search_cost(search)


def test_search_cost_of_a_pipeline_excludes_its_steps():
    pipeline = make_pipeline(FunctionTransformer(), replace_one())
    grid = {"dpfc__learning_rate": [1, 2]}
    cost = search_cost(GridSearchCV(pipeline, grid, cv=HashKFold(2)))
    assert cost.mu == pytest.approx(math.sqrt(2 * 0.01 * 5))
    assert "pipeline" in cost.not_covered[-1]


def test_search_cost_looks_at_the_steps_of_every_candidate():
    """A ledger refuses fits after a step that learns, whoever put it there."""
    pipeline = Pipeline([("scale", "passthrough"), ("fit", replace_one())])
    search = GridSearchCV(pipeline, {"scale": ["passthrough"]}, cv=HashKFold(2))
    assert math.isfinite(search_cost(search).epsilon)
    search.param_grid = {"scale": ["passthrough", StandardScaler()]}
    cost = search_cost(search)
    assert cost.epsilon == math.inf
    assert "earlier steps" in cost.method


@pytest.mark.validation
@pytest.mark.parametrize(
    "search",
    [
        None,
        DPFC(),
        GridSearchCV(LogisticRegression(), {}),
        HalvingGridSearchCV(DPFC(), {}),
    ],
)
def test_search_cost_refuses_another_search(search):
    with pytest.raises(TypeError, match=r"search|estimator"):
        search_cost(search)


@pytest.mark.validation
@pytest.mark.parametrize(
    "estimator",
    [DPFC(noise_multiplier=3.0), DPAdamLinear(sampling_prob=0.5, accounting="pld")],
)
def test_search_cost_refuses_what_it_cannot_know(estimator):
    with pytest.raises(UnsupportedEventError, match="compose"):
        search_cost(GridSearchCV(estimator, {}, cv=HashKFold(2)))
    search = GridSearchCV(DPFC(), {"adjacency": ["add_remove", "replace_one"]})
    with pytest.raises(UnsupportedEventError, match="adjacency"):
        search_cost(search)


def test_search_cost_refuses_what_it_cannot_know_before():
    """Estimators that are drawn bring budgets of their own, and seeds repeat noise."""
    pipeline = Pipeline([("clf", DPFC(epsilon=1))])
    for drawn in (
        {"clf": [DPFC(epsilon=1), DPFC(epsilon=100)]},
        {"steps": [[("clf", DPFC(epsilon=100))]]},
        {"clf__random_state": [0]},
    ):
        search = RandomizedSearchCV(pipeline, drawn, n_iter=2, cv=HashKFold(2))
        with pytest.raises(UnsupportedEventError, match="must not draw"):
            search_cost(search)
    seeded = GridSearchCV(
        DPFC(epsilon=1, random_state=0), {"ridge": [1.0]}, cv=HashKFold(2)
    )
    with pytest.raises(UnsupportedEventError, match="share their noise"):
        search_cost(seeded)
