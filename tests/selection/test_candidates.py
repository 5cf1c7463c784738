"""A search charges the fits of all its candidates, or none is fitted."""

import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, validation_curve
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import Normalizer

from privfeat import HashKFold
from privfeat.preprocessing import DPStandardScaler

pytestmark = pytest.mark.filterwarnings("ignore:the scores of a search")
FOLDS = HashKFold(3)


@pytest.mark.parametrize("turned", [False, True])
def test_a_candidate_whose_ledger_was_left_out_is_refused_uncharged(
    fit, labelled, ledger, turned
):
    """Its fits were not charged, and search_cost counted them."""
    forgot = fit.__class__(rho=0.005, classes=[0, 1])
    steps = [fit, forgot][:: -1 if turned else 1]
    pipeline = make_pipeline(Normalizer(), fit)
    search = GridSearchCV(pipeline, {"dpleastsquares": steps}, cv=FOLDS)
    with pytest.raises(ValueError, match="all candidates of a search must have"):
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
    with pytest.raises(ValueError, match="all candidates of a search must have"):
        search.fit(*labelled)
    assert not hasattr(search, "best_estimator_")
    assert not ledger.history


@pytest.mark.parametrize("drawn", [False, True])
def test_values_that_are_tried_are_asked_for_their_ledgers(
    fit, labelled, ledger, drawn
):
    folds = list(FOLDS.split(labelled[0])) if drawn else FOLDS
    tried = {"param_name": "ledger", "param_range": [ledger, None], "cv": folds}
    with pytest.raises(ValueError, match="all candidates of a search must have"):
        validation_curve(fit, *labelled, **tried, error_score="raise")
    assert not ledger.history


def test_whole_lists_of_steps_are_asked_for_their_ledgers(fit, labelled, ledger):
    forgot = fit.__class__(rho=0.005, classes=[0, 1])
    steps = [[("unit", Normalizer()), ("model", each)] for each in (forgot, fit)]
    search = GridSearchCV(Pipeline(steps[0]), {"steps": steps}, cv=FOLDS)
    with pytest.raises(ValueError, match="all candidates of a search must have"):
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
