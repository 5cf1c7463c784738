"""What a search of scikit-learn in folds of HashKFold warns of, once."""

import pytest
from sklearn import config_context
from sklearn.model_selection import (
    GridSearchCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
)

from privfeat import DPLeastSquares, PrivacyLedger
from privfeat.exceptions import PrivacyWarning
from tests.selection.conftest import FOLDS, N

GRID = {"ridge": [1.0, 10.0]}
SCORES = r"scores of a search .* HashKFold\(3\) neither"
USERS = [f"user {i // 2}" for i in range(N)]


@pytest.fixture
def fit():
    return DPLeastSquares(rho=0.005, classes=[0, 1])


def grid_search(fit, X, y, cv=FOLDS, **ids):
    return GridSearchCV(fit, GRID, cv=cv).fit(X, y, **ids)


def scores(fit, X, y, cv=FOLDS, **ids):
    return cross_val_score(fit, X, y, cv=cv, **ids)


def predictions(fit, X, y, cv=FOLDS, **ids):
    return cross_val_predict(fit, X, y, cv=cv, **ids)


@pytest.mark.parametrize("charged", [False, True])
@pytest.mark.parametrize("search", [grid_search, scores, predictions])
def test_search_warns_once_that_scores_in_our_folds_are_exact(
    fit, labelled, search, charged, tmp_path
):
    if charged:
        path = tmp_path / "x.ledger"
        ledger = PrivacyLedger(path, dataset="x", epsilon=5.0, delta=1e-5)
        fit.set_params(ledger=ledger)
    ids = [f"image-{i}.png" for i in range(N)]
    counted = ": the ledger counts the fits alone, 3 of each candidate" * charged
    with pytest.warns(PrivacyWarning, match=f"{SCORES}{counted}\\.") as caught:
        search(fit, *labelled, groups=ids)
    assert len(caught) == 1


@pytest.mark.parametrize("search", [grid_search, scores, predictions])
def test_fits_warn_that_scores_in_folds_of_before_are_exact(fit, labelled, search):
    """Nobody could warn as the folds were asked for."""
    X, y = labelled
    ids = [f"image-{i}.png" for i in range(N)]
    drawn = list(FOLDS.split(X, y, groups=ids))
    told = "scores of a search .* at any epsilon"
    with pytest.warns(PrivacyWarning, match=told) as caught:
        search(fit, X, y, cv=drawn)
    n_fits = 3 * (2 if search is grid_search else 1)
    assert len(caught) == n_fits  # Python shows one line once


@pytest.mark.filterwarnings("ignore:.*at any epsilon")
def test_folds_that_a_validation_returns_are_folds_of_before(fit, labelled):
    X, y = labelled
    ids = [f"image-{i}.png" for i in range(N)]
    found = cross_validate(fit, X, y, cv=FOLDS, groups=ids, return_indices=True)
    drawn = [*zip(*found["indices"].values(), strict=True)]
    with pytest.warns(PrivacyWarning, match="scores of a search .* at any epsilon"):
        grid_search(fit, X, y, cv=drawn)


@pytest.mark.parametrize("search", [grid_search, scores])
def test_search_warns_if_users_reach_its_folds_alone(fit, labelled, search):
    with pytest.warns(PrivacyWarning) as caught:
        search(fit, *labelled, groups=USERS)
    _, told = (str(one.message) for one in caught)
    assert "groups that repeat" in told
    assert "set_fit_request(groups=True)" in told


def test_search_that_hands_users_to_its_fits_protects_them(fit, labelled):
    with config_context(enable_metadata_routing=True):
        fit = fit.set_params(max_group_size=2).set_fit_request(groups=True)
        with pytest.warns(PrivacyWarning, match=SCORES) as caught:
            found = grid_search(fit, *labelled, groups=USERS)
    assert len(caught) == 1
    assert found.best_estimator_.privacy_.unit == "user"


def test_folds_of_a_loop_of_ones_own_do_not_warn(labelled):
    X, y = labelled
    assert len(list(FOLDS.split(X, y, groups=USERS))) == 3  # warnings are errors here
