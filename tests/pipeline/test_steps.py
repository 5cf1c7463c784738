"""Which steps are taken, and what is said of those that are not."""

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
from sklearn.feature_selection import SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    StandardScaler,
)

from privfeat import (
    DPAdamLinear,
    DPLeastSquares,
    DPSGDClassifier,
    PrivacyLedger,
    PrivatePipeline,
    PublicColumns,
)
from privfeat.exceptions import UnsupportedEventError
from privfeat.pipeline.steps import read_steps
from privfeat.preprocessing import DPStandardScaler

CLF = ("clf", DPLeastSquares(classes=[0, 1]))


class OwnTransformer(StandardScaler):
    """A third party's: nothing is known of it."""


@pytest.mark.parametrize(
    ("step", "instead"),
    [
        (StandardScaler(), "DPStandardScaler"),
        (MinMaxScaler(), "PublicColumns"),
        (PCA(2), "DPPCA"),
        (OneHotEncoder(), "PublicColumns"),
        (OneHotEncoder(categories=[[0, 1]]), "PublicColumns"),
        (OrdinalEncoder(categories=[[0, 1]]), "PublicColumns"),
        (SimpleImputer(), "PublicColumns"),
        (SelectKBest(), "DPPCA"),
        (KBinsDiscretizer(), "DPQuantiles"),
        (TfidfVectorizer(), "HashingVectorizer"),
        (FunctionTransformer(lambda X: X - X.mean(axis=0)), "ufunc"),
        (FunctionTransformer(np.add), "ufunc"),
        (FunctionTransformer(np.frompyfunc(float, 1, 1)), "ufunc"),
        (HashingVectorizer(tokenizer=str.split), "Leave it out"),
        (HashingVectorizer(strip_accents=str.lower), "Leave it out"),
        (ColumnTransformer([("a", Normalizer(), [0])]), "PublicColumns"),
        (make_pipeline(Normalizer()), "as steps"),
        (OwnTransformer(), "Leave it out"),
        (LogisticRegression(), "Leave it out"),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "fit") else "",
)
def test_a_step_that_would_learn_from_the_records_is_refused_by_name(step, instead):
    with pytest.raises(TypeError) as caught:
        read_steps([("mine", step), CLF])
    said = str(caught.value)
    assert "step 'mine' must be private or public" in said
    assert type(step).__name__ in said
    assert instead in said
    assert "FrozenEstimator" in said


@pytest.mark.parametrize(
    "step",
    [
        Binarizer(),
        FunctionTransformer(np.log1p),
        FunctionTransformer(),
        Normalizer(),
        PolynomialFeatures(),
        HashingVectorizer(),
        PublicColumns({"a": {"kind": "boolean"}}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_step_that_learns_nothing_is_public(step):
    read, _ = read_steps([("mine", step), CLF])
    assert (read.private, read.declared, read.record_wise) == (False, False, True)
    assert read.estimator is not step


def test_a_frozen_step_is_declared_public():
    frozen = FrozenEstimator(OwnTransformer().fit(np.eye(3)))
    read, _ = read_steps([("mine", frozen), CLF])
    assert (read.private, read.declared, read.record_wise) == (False, True, False)


def test_a_frozen_scaler_of_scikit_learn_may_get_all_records_at_once():
    frozen = FrozenEstimator(StandardScaler().fit(np.eye(3)))
    read, _ = read_steps([("mine", frozen), CLF])
    assert (read.declared, read.record_wise) == (True, True)


@pytest.mark.parametrize(
    "step",
    [
        FunctionTransformer(lambda X: X - X.mean(axis=0)),
        HashingVectorizer(tokenizer=str.split),
        PCA(2),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_frozen_step_that_may_mix_records_gets_one_at_a_time(step):
    frozen = FrozenEstimator(step.fit(np.eye(3)) if hasattr(step, "func") else step)
    if isinstance(step, PCA):
        step.fit(np.eye(3))
    read, _ = read_steps([("mine", frozen), CLF])
    assert (read.declared, read.record_wise) == (True, False)


def test_a_frozen_step_must_be_fitted():
    with pytest.raises(ValueError, match="not fitted"):
        read_steps([("mine", FrozenEstimator(StandardScaler())), CLF])


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("epsilon", 1.0),
        ("rho", 0.1),
        ("noise_multiplier", 3.0),
        ("delta", 1e-6),
        ("adjacency", "replace_one"),
        ("accounting", "zcdp"),
        ("arithmetic", "exact"),
        ("max_group_size", 3),
        ("random_state", 0),
    ],
)
def test_a_step_has_no_budget_of_its_own(parameter, value):
    step = DPLeastSquares(**{parameter: value})
    with pytest.raises(ValueError, match=f"{parameter} must not be set in step 'clf'"):
        read_steps([("clf", step)])


def test_a_step_has_no_ledger_of_its_own(tmp_path):
    ledger = PrivacyLedger(tmp_path / "l", dataset="d", epsilon=1, delta=1e-5)
    with pytest.raises(ValueError, match="Pass ledger to the pipeline"):
        read_steps([("clf", DPLeastSquares(ledger=ledger))])


def test_a_network_is_refused_with_the_reason():
    with pytest.raises(UnsupportedEventError, match="sample none"):
        read_steps([("net", DPSGDClassifier())])


@pytest.mark.validation
@pytest.mark.parametrize(
    ("steps", "error"),
    [
        (None, TypeError),
        (DPLeastSquares(), TypeError),
        ([DPLeastSquares()], TypeError),
        ([("clf", DPLeastSquares)], TypeError),
        ([("clf", None)], TypeError),
        ([("clf", "passthrough")], TypeError),
        ([], ValueError),
        ([("norm", Normalizer())], ValueError),
        ([("a__b", DPLeastSquares())], ValueError),
        ([("a.b", DPLeastSquares())], ValueError),
        ([("epsilon", DPLeastSquares())], ValueError),
        ([("", DPLeastSquares())], ValueError),
        ([(3, DPLeastSquares())], ValueError),
        ([("a", Normalizer()), ("a", DPLeastSquares())], ValueError),
        ([("a", DPLeastSquares()), ("b", DPLeastSquares())], TypeError),
    ],
)
def test_steps_are_pairs_of_a_name_and_an_estimator(steps, error):
    with pytest.raises(error, match=r"steps? "):
        PrivatePipeline(steps).fit(np.eye(2), [0, 1])


@pytest.mark.parametrize(
    "step",
    [PublicColumns({"a": {"kind": "boolean"}}), HashingVectorizer(n_features=4)],
    ids=lambda value: type(value).__name__,
)
def test_a_step_of_tables_or_texts_comes_before_private_ones(step):
    with pytest.raises(TypeError, match="step 'late' must take numbers"):
        read_steps([("scale", DPStandardScaler(bounds=(-1, 1))), ("late", step), CLF])


def test_a_step_that_samples_records_is_refused_with_the_reason():
    step = DPAdamLinear(classes=[0, 1], sampling_prob=0.5, accounting="exact")
    with pytest.raises(UnsupportedEventError, match="sampling_prob must be 1 in step"):
        PrivatePipeline([("clf", step)]).planned(3)
