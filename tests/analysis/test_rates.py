"""Rates that are moved after a fit."""

import math
from dataclasses import replace

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from privfeat import (
    DPFC,
    DPLeastSquares,
    PrivatePipeline,
    TemperatureScaling,
    load,
    save,
)
from privfeat.analysis.rates import shifted_rates
from privfeat.preprocessing import DPStandardScaler

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.PrivacyWarning")


@pytest.fixture
def rare():
    rng = np.random.default_rng(0)
    y = (np.arange(3000) < 60).astype(int)
    return rng.normal(size=(3000, 3)) + 2.0 * np.eye(1, 3) * y[:, None], y


def test_rates_are_moved_in_the_loss_of_the_fit(rare):
    """A loss that was set later refused the model, or took it for another."""
    clf = DPFC(epsilon=math.inf, classes=[0, 1]).fit(*rare)
    rates = {"before": [0.98, 0.02], "after": [0.5, 0.5]}
    moved = shifted_rates(clf, **rates)
    again = shifted_rates(clf.set_params(loss="squared"), **rates)
    np.testing.assert_array_equal(again.intercept_, moved.intercept_)


@pytest.mark.parametrize("loss", ["softmax", "sigmoid"])
def test_probabilities_follow_bayes_rule(rare, loss, tmp_path):
    clf = DPFC(epsilon=math.inf, classes=[0, 1], loss=loss).fit(*rare)
    moved = shifted_rates(clf, before=[0.98, 0.02], after=[0.5, 0.5])
    p = clf.predict_proba(rare[0]) / [0.98, 0.02]
    expected = p / p.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(moved.predict_proba(rare[0]), expected, rtol=1e-9)
    assert clf.predict(rare[0]).mean() < moved.predict(rare[0]).mean()
    fact = (
        "the rates that probabilities were shifted to: 0.5, 0.5 for 0.98, 0.02, which "
        "predicts the second class where its probability was 0.02 or more"
    )
    assert moved.privacy_ == replace(clf.privacy_, public=(*clf.privacy_.public, fact))
    save(moved, tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(rare[0]), moved.predict(rare[0]))
    assert again.privacy_ == moved.privacy_


def test_several_classes_follow_bayes_rule(rare):
    X = rare[0]
    clf = DPFC(epsilon=math.inf, classes=range(3)).fit(X, np.arange(len(X)) % 3)
    rates = np.array([0.2, 0.3, 0.5])
    moved = shifted_rates(clf, before=[1, 1, 1], after=rates)
    assert moved.privacy_.public[-1].endswith("shifted to: 0.2, 0.3, 0.5 for 1, 1, 1")
    p = clf.predict_proba(X) * rates
    expected = p / p.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(moved.predict_proba(X), expected, rtol=1e-9)


def test_a_factor_of_the_rate_is_a_threshold(rare):
    clf = DPFC(epsilon=8, classes=[0, 1], random_state=0).fit(*rare)
    moved = shifted_rates(clf, before=[1, 1], after=[1, 9])
    expected = clf.predict_proba(rare[0])[:, 1] > 0.1
    np.testing.assert_array_equal(moved.predict(rare[0]), expected)


def test_a_pipeline_is_shifted_in_its_last_step(rare, tmp_path):
    private = PrivatePipeline(
        [("scaler", DPStandardScaler(bounds=(-9, 9))), ("clf", DPFC())],
        epsilon=8,
        random_state=0,
    )
    private.set_params(clf__classes=[0, 1])
    public = make_pipeline(Normalizer(), DPFC(epsilon=8, classes=[0, 1]))
    public.set_params(dpfc__random_state=0)
    for number, pipeline in enumerate((private, public)):
        pipeline.fit(*rare)
        scores = pipeline.predict_proba(rare[0])[:, 1]
        least = np.quantile(scores, 0.9)
        moved = shifted_rates(pipeline, before=[1, 1], after=[1, 1 / least - 1])
        expected = scores > least
        np.testing.assert_array_equal(moved.predict(rare[0]), expected)
        assert not np.array_equal(pipeline.predict(rare[0]), expected)
        save(moved, tmp_path / str(number))
        again = load(tmp_path / str(number))
        np.testing.assert_array_equal(again.predict(rare[0]), expected)
        for model in (moved, again):
            stated = getattr(model, "privacy_", model[-1].privacy_)
            assert stated.public[-1].startswith("the rates that probabilities were")


@pytest.mark.parametrize("wrong", [[1, 1, 1], [1, 0], [1, math.nan], 1.0, ["a", "b"]])
@pytest.mark.parametrize("name", ["before", "after"])
def test_wrong_rates_are_refused(rare, name, wrong):
    clf = DPFC(epsilon=8, classes=[0, 1], random_state=0).fit(*rare)
    with pytest.raises(ValueError, match=f"{name} must"):
        shifted_rates(clf, **{"before": [1, 1], "after": [1, 1], name: wrong})


def test_a_classifier_without_logits_is_refused(rare):
    clf = DPLeastSquares(epsilon=8, classes=[0, 1], random_state=0).fit(*rare)
    with pytest.raises(ValueError, match="classifier must be fitted"):
        shifted_rates(clf, before=[1, 1], after=[1, 9])
    with pytest.raises(TypeError, match="classifier must be a linear"):
        shifted_rates(TemperatureScaling(clf), before=[1, 1], after=[1, 9])
