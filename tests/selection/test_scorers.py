"""A scorer that cannot score is found before the folds of a search are charged."""

import numpy as np
import pytest
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.metrics import accuracy_score, make_scorer, recall_score
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from privfeat import (
    DPLeastSquares,
    DPLeastSquaresRegressor,
    DPSGDClassifier,
    HashKFold,
    PrivacyWarning,
)
from privfeat.selection.rehearsal import quick_copy

pytestmark = pytest.mark.filterwarnings("ignore:the scores of a search")
FOLDS = HashKFold(3)
X = np.random.default_rng(0).normal(size=(90, 3))
ILL = np.where(X[:, 0] > 0, "ill", "well")
THREE = np.arange(90) % 3
ILL_FOUND = make_scorer(recall_score, pos_label="ill")


def classifier(classes, ledger, **params):
    return DPLeastSquares(epsilon=0.1, classes=classes, ledger=ledger, **params)


@pytest.mark.parametrize(
    ("y", "scoring"),
    [(ILL, "f1"), (ILL, ["accuracy", "recall"]), (THREE, "roc_auc"), (THREE, "f1")],
)
def test_a_scorer_for_other_classes_is_refused_uncharged(ledger, y, scoring):
    """Five folds were charged, and each score was NaN."""
    clf = classifier(sorted({*y.tolist()}), ledger)
    searches = {
        "validation": lambda: cross_validate(clf, X, y, scoring=scoring, cv=FOLDS),
        "search": lambda: GridSearchCV(
            clf, {"ridge": [1.0]}, scoring=scoring, cv=FOLDS, refit=False
        ).fit(X, y),
    }
    for run in searches.values():
        with pytest.raises(ValueError, match="scoring must be for the classes") as told:
            run()
        assert told.value.__notes__ == ["No fold was fitted and nothing was charged."]
    assert ledger.history == []


def test_a_scorer_of_classes_is_warned_of_for_a_regressor(ledger):
    """Others want targets that are positive, which made-up ones may not be."""
    regressor = DPLeastSquaresRegressor(
        target_bounds=(0, 2), epsilon=0.1, ledger=ledger
    )
    with (
        pytest.warns(PrivacyWarning, match="scoring failed on made-up records"),
        pytest.warns(UserWarning, match="Scoring failed"),
    ):
        cross_val_score(regressor, X, THREE, scoring="roc_auc", cv=FOLDS)
    assert np.isfinite(cross_val_score(regressor, X, THREE, cv=FOLDS)).all()


@pytest.mark.parametrize("scoring", [None, "accuracy", ILL_FOUND, "roc_auc"])
def test_a_scorer_that_can_score_is_charged_for_the_folds_alone(ledger, scoring):
    clf = classifier(["ill", "well"], ledger)
    scores = cross_val_score(clf, X, ILL, scoring=scoring, cv=FOLDS)
    assert np.isfinite(scores).all()
    assert len(ledger.history) == 3


def test_a_function_of_the_user_that_fails_is_warned_of(ledger):
    def scoring(fitted, X, y):
        return float(X.shape[0] > 20) or 1 / 0  # it may want more records

    def score_func(true, predicted):
        return scoring(None, true, predicted)

    clf = classifier(["ill", "well"], ledger)
    for one in (scoring, make_scorer(score_func)):
        with pytest.warns(PrivacyWarning, match="failed on made-up records, got Z"):
            scores = cross_val_score(clf, X, ILL, scoring=one, cv=FOLDS)
        assert np.isfinite(scores).all()


def test_no_scorer_is_tried_without_a_ledger():
    clf = classifier(["ill", "well"], None)
    with pytest.warns(UserWarning, match="Scoring failed"):
        scores = cross_val_score(clf, X, ILL, scoring="f1", cv=FOLDS)
    assert np.isnan(scores).all()


@pytest.mark.parametrize("params", [{}, {"epochs": 30, "expected_batch_size": 64}])
def test_the_copy_of_a_network_is_fitted_in_one_step(ledger, params):
    clf = DPSGDClassifier(
        model="mlp", classes=[0, 1], epsilon=1.0, ledger=ledger, verbose=1, **params
    )
    quick = quick_copy(clf).get_params()
    assert quick["n_iter"] == 1
    assert quick["epochs"] is quick["expected_batch_size"] is quick["ledger"] is None
    assert quick["verbose"] == 0
    steps = quick_copy(make_pipeline(Normalizer(), clf)).get_params()
    assert steps["dpsgdclassifier__n_iter"] == 1


@pytest.mark.parametrize("form", ["array", "list", "table"])
def test_a_scorer_meets_no_record_before_a_charge(ledger, form):
    """It got a fit to the first record of a table, with noise from a known seed."""
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    rows = {"array": X, "list": X.tolist(), "table": table}[form]
    seen = []

    def scoring(fitted, rows, y):
        charged = len(ledger.history)
        seen.append((charged, np.unique(rows), fitted.privacy_.seeded))
        return 0.5

    clf = classifier(["ill", "well"], ledger)
    cross_val_score(clf, rows, ILL, scoring=scoring, cv=FOLDS)
    charged, values, seeded = seen[0]
    assert (charged, values.tolist(), seeded) == (0, [0.0, 1.0], False)
    assert [charged for charged, *_ in seen[1:]] == [1, 2, 3]


def test_a_scorer_of_a_pipeline_is_tried(ledger):
    """Its copy failed, unnoticed: ``verbose`` of scikit-learn's is no number."""
    pipe = make_pipeline(Normalizer(), classifier([0, 1, 2], ledger))
    with pytest.raises(ValueError, match="scoring must be for the classes"):
        cross_val_score(pipe, X, THREE, scoring="f1", cv=FOLDS)
    assert ledger.history == []


def test_texts_are_not_made_up(ledger):
    texts = [f"text {number}" for number in range(90)]
    pipe = make_pipeline(HashingVectorizer(n_features=8), classifier([0, 1], ledger))
    pipe.set_params(dpleastsquares__center=False)
    cross_val_score(pipe, texts, THREE % 2, cv=FOLDS)
    assert len(ledger.history) == 3


def own_accuracy(fitted, X, y):
    return float(np.mean(fitted.predict(X) == y))


def own_share(true, predicted):
    return float(np.mean(true == predicted))


@pytest.mark.parametrize("scoring", [own_accuracy, make_scorer(own_share)])
def test_a_search_warns_of_a_function_that_meets_every_run(make, data, scoring):
    search = make(scoring=scoring)
    with pytest.warns(PrivacyWarning, match="given the model of every run"):
        search.fit(*data, X_val=data[0] + 1.0, y_val=data[1])
    assert 0.0 <= search.best_score_ <= 1.0


@pytest.mark.parametrize("scoring", [None, "accuracy", make_scorer(accuracy_score)])
def test_a_search_warns_of_no_scorer_of_scikit_learn(make, data, scoring, recwarn):
    make(scoring=scoring).fit(*data, X_val=data[0] + 1.0, y_val=data[1])
    assert not [w for w in recwarn if "every run" in str(w.message)]
