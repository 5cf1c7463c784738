"""What of scikit-learn fits several times, a charge each, is refused by a ledger."""

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier, RegressorChain
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, Normalizer

from privfeat import (
    DPLeastSquares,
    HashKFold,
    PrivacyLedger,
    PublicColumns,
    TemperatureScaling,
)
from privfeat.exceptions import PrivacyError
from privfeat.preprocessing import DPStandardScaler


class Around(TransformerMixin, BaseEstimator):
    """Fits what it is around."""

    def __init__(self, estimator):
        self.estimator = estimator

    def fit(self, X, y=None):
        self.estimator_ = clone(self.estimator).fit(X)
        return self

    def transform(self, X):
        return self.estimator_.transform(X)


@pytest.mark.filterwarnings("ignore:OneVsRestClassifier and its like read")
@pytest.mark.parametrize("fold", [None, 3, HashKFold(2)])
@pytest.mark.parametrize(
    "around",
    [
        lambda fit, cv: OneVsRestClassifier(fit),
        lambda fit, cv: OneVsOneClassifier(make_pipeline(FunctionTransformer(), fit)),
        lambda fit, cv: MultiOutputClassifier(fit),
        lambda fit, cv: ClassifierChain(fit, cv=cv),
        lambda fit, cv: RegressorChain(fit, cv=cv),
        lambda fit, cv: make_pipeline(OneVsRestClassifier(fit)),
    ],
    ids=["rest", "one", "outputs", "chain", "numbers", "pipeline"],
)
def test_ledger_refuses_several_fits_before_the_first(
    fit, ledger, labelled, around, fold
):
    """A later one may be refused, and then those before it are lost."""
    X, y = labelled
    model = around(fit, fold)
    several = not hasattr(model, "steps") and "multiclass" not in type(model).__module__
    with pytest.raises(PrivacyError, match=r"charged for one fit.*fit it itself"):
        model.fit(X, np.column_stack([y, 1 - y]) if several else y)
    assert ledger.history == []


@pytest.mark.parametrize(
    "around",
    [
        make_union,
        lambda one, two: ColumnTransformer([("a", one, [0]), ("b", two, [1])]),
    ],
    ids=["union", "columns"],
)
def test_ledger_refuses_private_steps_side_by_side(ledger, labelled, around):
    given = {"bounds": (-1, 1), "rho": 0.005, "ledger": ledger}
    one, two = (DPStandardScaler(**given) for _ in range(2))
    with pytest.raises(PrivacyError, match=r"several private steps.*PrivatePipeline"):
        around(one, two).fit(labelled[0])
    assert ledger.history == []
    frozen = FrozenEstimator(one.fit(labelled[0][:, :1]))
    ColumnTransformer([("a", frozen, [0]), ("b", two, [1])]).fit(labelled[0])
    assert len(ledger.history) == 2


@pytest.mark.parametrize("first", [True, False])
def test_ledger_refuses_a_private_step_beside_it_whose_ledger_was_left_out(
    ledger, labelled, first
):
    """Two were released, and one charged."""
    given = {"bounds": (-1, 1), "rho": 0.005}
    ledgers = (ledger, None) if first else (None, ledger)
    steps = [DPStandardScaler(**given, ledger=each) for each in ledgers]
    with pytest.raises(PrivacyError, match=r"several private steps.*PrivatePipeline"):
        make_union(*steps).fit(labelled[0])
    assert ledger.history == []


def test_a_step_with_a_fitted_model_in_it_is_one_private_step(ledger, labelled):
    model = DPLeastSquares(rho=0.005, classes=[0, 1], ledger=ledger).fit(*labelled)
    scaled = TemperatureScaling(model, epsilon=0.1, ledger=ledger)
    make_pipeline(FunctionTransformer(), scaled).fit(*labelled)
    assert len(ledger.history) == 2


@pytest.mark.parametrize("method", ["fit", "fit_transform"])
@pytest.mark.parametrize("kind", ["columns", "remainder", "union"])
def test_a_part_beside_a_private_one_is_tried_before_the_charge(ledger, kind, method):
    """The private part was charged and lost when the part after it refused a record."""
    X = pd.DataFrame({"age": np.linspace(-1.0, 1.0, 60), "ward": [1.0, 2.0] * 30})
    bad = X.replace({"ward": {2.0: 3.0}})
    scale = DPStandardScaler(bounds=(-2, 2), rho=0.005, ledger=ledger)
    ward = PublicColumns({"ward": {"kind": "category", "categories": [1, 2]}})
    if kind == "union":
        age = FrozenEstimator(FunctionTransformer(lambda rows: rows[["age"]]))
        only = FunctionTransformer(lambda rows: rows[["ward"]])
        model = make_union(make_pipeline(age, scale), make_pipeline(only, ward))
    elif kind == "remainder":
        model = ColumnTransformer([("age", scale, ["age"])], remainder=ward)
    else:
        parts = [("age", make_pipeline(scale), ["age"]), ("ward", ward, ["ward"])]
        model = ColumnTransformer(parts)
    with pytest.raises(ValueError, match="column 'ward' must hold the categories"):
        getattr(model, method)(bad)
    assert ledger.history == []
    getattr(model, method)(X)
    assert len(ledger.history) == 1


@pytest.mark.parametrize("around", ["columns", "union"])
def test_a_part_beside_one_of_persons_is_not_given_them(tmp_path, around):
    """scikit-learn refuses what nobody asks for, so no such fit could be charged."""
    ledger = PrivacyLedger(
        tmp_path / "l", dataset="d", epsilon=9.0, delta=1e-5, unit="user"
    )
    X, persons = np.random.default_rng(0).uniform(-1, 1, (60, 4)), np.arange(60) // 2
    with config_context(enable_metadata_routing=True):
        scale = DPStandardScaler(
            bounds=(-1, 1), rho=0.005, max_group_size=2, ledger=ledger
        ).set_fit_request(groups=True)
        if around == "union":
            model = make_union(scale, Normalizer())
        else:
            model = ColumnTransformer([("a", scale, [0, 1]), ("b", Normalizer(), [2])])
        model.fit(X, groups=persons)
    assert len(ledger.history) == 1


def test_a_union_of_lists_whose_last_part_is_private_is_fitted(ledger):
    """Nothing is left to try, of which scikit-learn asks the shape of a list."""
    scale = DPStandardScaler(bounds=(-1, 1), rho=0.005, ledger=ledger)
    make_union(Normalizer(), scale).fit([[0.5, 0.1], [0.2, -0.3]] * 30)
    assert len(ledger.history) == 1


def test_a_part_that_has_a_ledger_somewhere_is_not_tried(ledger, labelled):
    """The trial would charge it."""
    X, y = labelled
    scale = DPStandardScaler(bounds=(-9, 9), rho=0.005, ledger=ledger)
    make_union(scale, Around(clone(scale))).fit(X, y)
    assert len(ledger.history) == 2
