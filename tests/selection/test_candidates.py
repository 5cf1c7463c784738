"""A search charges the fits of all its candidates, or none is fitted."""

import warnings

import joblib
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import (
    GridSearchCV,
    RandomizedSearchCV,
    validation_curve,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import Normalizer

from privfeat import HashKFold, PrivacyWarning
from privfeat.preprocessing import DPStandardScaler

pytestmark = pytest.mark.filterwarnings("ignore:the scores of a search")
FOLDS = HashKFold(3)
REFUSED = "all candidates of a search must have"


@pytest.mark.parametrize("turned", [False, True])
def test_a_candidate_whose_ledger_was_left_out_is_refused_uncharged(
    fit, labelled, ledger, turned
):
    """Its fits were not charged, and search_cost counted them."""
    forgot = fit.__class__(rho=0.005, classes=[0, 1])
    steps = [fit, forgot][:: -1 if turned else 1]
    pipeline = make_pipeline(Normalizer(), fit)
    search = GridSearchCV(pipeline, {"dpleastsquares": steps}, cv=FOLDS)
    with pytest.raises(ValueError, match=REFUSED):
        search.fit(*labelled)
    assert not ledger.history


@pytest.mark.parametrize("base", ["without", "passthrough", "with"])
@pytest.mark.parametrize("drawn", [False, True])
def test_candidates_that_are_estimators_are_asked_for_their_ledgers(
    fit, labelled, ledger, base, drawn
):
    """The estimator that they replace was asked, and folds in a list asked nobody."""
    forgot = fit.__class__(rho=0.005, classes=[0, 1])
    replaced = {"without": forgot, "passthrough": "passthrough", "with": fit}[base]
    pipeline = Pipeline([("unit", Normalizer()), ("model", replaced)])
    folds = list(FOLDS.split(labelled[0])) if drawn else FOLDS
    grid = {"model": [fit, forgot]}
    search = GridSearchCV(pipeline, grid, cv=folds, scoring="accuracy")
    with pytest.raises(ValueError, match=REFUSED):
        search.fit(*labelled)
    assert not hasattr(search, "best_estimator_")
    assert not ledger.history


@pytest.mark.parametrize("drawn", [False, True])
@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("others", [0, 1])
def test_candidates_that_replace_the_one_with_the_ledger_need_it(
    fit, labelled, ledger, drawn, n_jobs, others
):
    """The estimator had it, no candidate that took its place did: all was free."""
    forgot = fit.__class__(rho=0.005, classes=[0, 1])
    folds = list(FOLDS.split(labelled[0])) if drawn else FOLDS
    grid = {"dpleastsquares": [forgot, *[fit] * others]}
    pipeline = make_pipeline(Normalizer(), fit)
    search = GridSearchCV(pipeline, grid, cv=folds, n_jobs=n_jobs)
    with joblib.parallel_config(backend="threading"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of fits that failed in their jobs
        with pytest.raises(ValueError, match=REFUSED):
            search.fit(*labelled)
    assert not ledger.history


@pytest.mark.parametrize("drawn", [False, True])
def test_candidates_that_were_not_drawn_are_asked_for_their_ledgers(
    fit, labelled, ledger, drawn
):
    forgot = fit.__class__(rho=0.005, classes=[0, 1])
    folds = list(FOLDS.split(labelled[0])) if drawn else FOLDS
    pipeline, found = make_pipeline(Normalizer(), forgot), set()
    for seed in range(4):
        tried = {"dpleastsquares": [fit, forgot]}
        search = RandomizedSearchCV(
            pipeline, tried, n_iter=1, cv=folds, random_state=seed
        )
        charged = len(ledger.history)
        try:
            search.fit(*labelled)
        except ValueError:
            assert len(ledger.history) == charged
            found.add("refused")
        else:
            assert search.best_params_["dpleastsquares"].ledger is ledger
            assert len(ledger.history) == charged + 4
            found.add("charged")
    assert found == {"refused", "charged"}


def test_a_search_without_a_ledger_is_told_of_none(fit, labelled):
    free = fit.__class__(rho=0.005, classes=[0, 1])
    with pytest.warns(PrivacyWarning, match="scores of a search") as warned:
        GridSearchCV(free, {"ridge": [1.0]}, cv=FOLDS).fit(*labelled)
    assert not any("ledger" in str(each.message) for each in warned)


@pytest.mark.parametrize("drawn", [False, True])
def test_values_that_are_tried_are_asked_for_their_ledgers(
    fit, labelled, ledger, drawn
):
    folds = list(FOLDS.split(labelled[0])) if drawn else FOLDS
    tried = {"param_name": "ledger", "param_range": [ledger, None], "cv": folds}
    with pytest.raises(ValueError, match=REFUSED):
        validation_curve(fit, *labelled, **tried, error_score="raise")
    assert not ledger.history


@pytest.mark.parametrize("drawn", [False, True])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("turned", [False, True])
def test_candidates_of_a_search_around_a_search_are_asked_for_their_ledgers(
    fit, labelled, ledger, drawn, last, turned
):
    """The inner one was asked alone, which has the ledger in all of its own."""
    forgot = fit.__class__(rho=0.005, classes=[0, 1])
    outer = HashKFold(2)
    folds = list(outer.split(labelled[0])) if drawn else outer
    inner = GridSearchCV(fit, {"ridge": [1.0]}, cv=FOLDS, refit=last)
    grid = {"estimator": [fit, forgot][:: -1 if turned else 1]}
    search = GridSearchCV(inner, grid, cv=folds, scoring=lambda *_: 0.0, refit=last)
    with pytest.raises(ValueError, match=REFUSED):
        search.fit(*labelled)
    assert not ledger.history


def test_whole_lists_of_steps_are_asked_for_their_ledgers(fit, labelled, ledger):
    forgot = fit.__class__(rho=0.005, classes=[0, 1])
    steps = [[("unit", Normalizer()), ("model", each)] for each in (forgot, fit)]
    search = GridSearchCV(Pipeline(steps[0]), {"steps": steps}, cv=FOLDS)
    with pytest.raises(ValueError, match=REFUSED):
        search.fit(*labelled)
    assert not ledger.history


def test_a_frozen_step_needs_no_ledger(fit, labelled, ledger):
    """It is not fitted: what it was charged before counts for no candidate."""
    scaler = DPStandardScaler(bounds=(-1, 1), rho=0.005, ledger=ledger)
    frozen = FrozenEstimator(scaler.fit(labelled[0]))
    model = fit.__class__(rho=0.005, classes=[0, 1])
    pipeline = Pipeline([("unit", Normalizer()), ("model", model)])
    grid = {"unit": [Normalizer(), frozen]}
    GridSearchCV(pipeline, grid, cv=FOLDS).fit(*labelled)
    assert len(ledger.history) == 1


def test_candidates_that_take_no_ledger_may_stand_beside_those_that_do(
    fit, labelled, ledger
):
    grid = {"normalizer": [Normalizer(), Normalizer("l1")]}
    search = GridSearchCV(make_pipeline(Normalizer(), fit), grid, cv=FOLDS)
    search.fit(*labelled)
    assert len(ledger.history) == 7
