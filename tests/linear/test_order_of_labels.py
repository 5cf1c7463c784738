"""Labels of pandas in another order than the rows, which were taken by place."""

import numpy as np
import pytest
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from privfeat import (
    DPFC,
    ConformalClassifier,
    DPLeastSquares,
    DPLeastSquaresRegressor,
    DPRandomizedSearch,
    HashKFold,
    PrivatePipeline,
    PublicColumns,
    TemperatureScaling,
)
from privfeat.analysis.rates import shifted_rates
from privfeat.metrics import evaluation_of_predictions, private_evaluation
from privfeat.selection import private_cross_val_score

pd = pytest.importorskip("pandas")
pytestmark = pytest.mark.filterwarnings("ignore::privfeat.PrivacyWarning")
CLASSES = ["ill", "well"]
N = 240


@pytest.fixture
def table():
    draw = np.random.default_rng(0).normal(size=(N, 3))
    rows = pd.DataFrame(draw, columns=list("abc"))
    return rows, (rows.a > 0).map({True: "ill", False: "well"})


def linear(random_state=0):
    return DPLeastSquares(classes=CLASSES, random_state=random_state)


def columns():
    return PublicColumns(
        {name: {"kind": "numeric", "bounds": [-9, 9]} for name in "abc"}
    )


FITS = {
    "linear": lambda X, y: linear().fit(X, y),
    "regressor": lambda X, y: DPLeastSquaresRegressor(
        target_bounds=(0, 1), random_state=0
    ).fit(X, (y == "ill").astype(float)),
    "behind a step": lambda X, y: make_pipeline(Normalizer(), linear()).fit(X, y),
    "pipeline": lambda X, y: PrivatePipeline(
        [("columns", columns()), ("model", linear(random_state=None))], random_state=0
    ).fit(X, y),
    "search": lambda X, y: DPRandomizedSearch(
        linear(random_state=None), {"ridge": [1.0]}, random_state=0
    ).fit(X, y),
    "folds": lambda X, y: cross_val_score(linear(), X, y, cv=KFold(2)),
    "hashed folds": lambda X, y: [*HashKFold(2).split(X, y)],
    "private folds": lambda X, y: private_cross_val_score(
        linear(random_state=None), X, y, n_splits=2, random_state=0
    ),
}


@pytest.mark.parametrize("kind", FITS)
def test_labels_in_another_order_are_refused(table, kind):
    X, y = table
    moved = X.sample(frac=1, random_state=0)
    with pytest.raises(ValueError, match="y must have the index of X"):
        FITS[kind](moved, y)
    FITS[kind](moved, y.loc[moved.index])


@pytest.mark.parametrize(
    "kind", ["evaluation", "predictions", "temperature", "conformal"]
)
def test_labels_of_a_test_in_another_order_are_refused(table, kind):
    X, y = table
    clf, moved = linear().fit(X, y), X.sample(frac=1, random_state=0)
    after = {
        "evaluation": lambda X, y: private_evaluation(clf, X, y, random_state=0),
        "predictions": lambda X, y: evaluation_of_predictions(
            pd.Series(clf.predict(X), X.index), y, classes=CLASSES, random_state=0
        ),
        "temperature": lambda X, y: TemperatureScaling(clf).fit(X, y),
        "conformal": lambda X, y: ConformalClassifier(clf, random_state=0).fit(X, y),
    }[kind]
    with pytest.raises(ValueError, match="y must have the index of X"):
        after(moved, y)
    after(moved, y.loc[moved.index])


def test_rates_and_probabilities_by_name_are_in_the_order_of_the_classes(table):
    """What `value_counts` gives has the most common class first."""
    X, y = table
    clf = DPFC(classes=CLASSES, random_state=0).fit(X, y)
    rates = pd.Series(["well"] * 9 + ["ill"]).value_counts(normalize=True)
    with pytest.raises(ValueError, match="after must have the classes in their order"):
        shifted_rates(clf, before=[0.5, 0.5], after=rates)
    shifted_rates(clf, before=[0.5, 0.5], after=rates.loc[CLASSES])
    found = pd.DataFrame(clf.predict_proba(X), columns=CLASSES)
    with pytest.raises(ValueError, match="predictions must have the classes in their"):
        evaluation_of_predictions(found[["well", "ill"]], y, classes=CLASSES)
    evaluation_of_predictions(found, y, classes=CLASSES, random_state=0)
