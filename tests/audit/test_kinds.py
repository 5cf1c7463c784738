"""Audits of pipelines and regressors, which have no classes or no sums of their own."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from privfeat import (
    DPLeastSquares,
    DPLeastSquaresRegressor,
    DPSGDRegressor,
    PrivacyLedger,
)
from privfeat import PrivatePipeline as Pipeline
from privfeat.audit import (
    audit_one_run,
    check_noise,
    membership,
    pattern_test,
    random_label_test,
    recording,
    replay,
)
from privfeat.audit.scores import NearestLevel, margins, target_levels
from privfeat.exceptions import PrivacyWarning
from privfeat.preprocessing import DPPCA, DPStandardScaler
from tests.audit.faults import drop_clip, halve_noise

pytestmark = pytest.mark.slow


@pytest.fixture
def numbers(clusters):
    """Two hundred features, and targets in (0, 10)."""
    X, y = clusters
    return X, 10.0 * (y % 2)


@pytest.fixture
def regressor():
    return DPLeastSquaresRegressor(
        epsilon=1.0, target_bounds=(0, 10), clip_norm=20.0, random_state=1
    )


@pytest.fixture
def pipeline():
    """Two steps that release a feature mean each, under one name."""
    clf = DPLeastSquares(classes=range(4), row_scaling="clip", clip_norm=2.0)
    scaler = DPStandardScaler(bounds=(-5.0, 5.0))
    steps = [("scale", scaler), ("pca", DPPCA(n_components=6)), ("clf", clf)]
    return Pipeline(steps, epsilon=2.0, random_state=1)


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_replay_of_a_pipeline_compares_the_sums_of_each_step(
    adjacency, pipeline, clusters
):
    pipeline.set_params(adjacency=adjacency)
    result = replay(pipeline, *clusters, record=4)
    assert result.ok, str(result)
    assert {move.name.partition(".")[0] for move in result.movements} == {
        *("scale", "pca", "clf")
    }
    assert all(0.0 <= move.ratio <= 1.0 for move in result.movements)
    assert not hasattr(pipeline, "steps_")


def test_replay_of_a_pipeline_finds_a_step_that_does_not_clip(clusters, plant):
    drop_clip(plant)
    own = {"center": False, "fit_intercept": False, "row_scaling": "clip"}
    clf = DPLeastSquares(classes=range(4), **own)
    steps = [("scale", DPStandardScaler(bounds=(-5.0, 5.0))), ("clf", clf)]
    result = replay(Pipeline(steps, epsilon=2.0), *clusters, record=4)
    far = {move.name for move in result.movements if not move.ok}
    assert {"clf.gram", "clf.class_sums"} <= far


def test_replay_of_a_pipeline_names_the_step_that_stores_a_record(
    pipeline, clusters, plant
):
    genuine = plant.genuine("fit of a linear model", of=DPLeastSquares)

    def storing(self, X, y, groups=None):
        genuine(self, X, y, groups)
        self.stored_ = float(np.sum(X))
        return self

    plant("fit of a linear model", storing, of=DPLeastSquares)
    result = replay(pipeline, *clusters, record=4)
    assert result.changed == ("clf.stored_",)


def test_check_noise_of_a_pipeline_tests_each_step(pipeline, clusters):
    result = check_noise(pipeline, *clusters)
    assert result.ok
    names = {check.name.partition(".")[0] for check in result.checks}
    assert names == {"scale", "pca", "clf"}


def test_check_noise_of_a_pipeline_finds_half_the_noise(pipeline, clusters, plant):
    halve_noise(plant)
    assert not check_noise(pipeline, *clusters).ok


def test_recorded_names_are_those_of_the_statement(pipeline, clusters):
    with recording() as recorder, pytest.warns(PrivacyWarning, match="random_state"):
        fitted = pipeline.fit(*clusters)
    names = list(dict.fromkeys(call.name for call in recorder.calls))
    assert names == [record.name for record in fitted.privacy_.releases]


def test_one_run_of_a_pipeline_keeps_its_claim(pipeline, clusters):
    pytest.importorskip("jax_privacy")
    found = audit_one_run(pipeline, *clusters, n_canaries=100, seed=0)
    assert found.ok


def test_one_run_of_a_regressor_finds_missing_privacy(regressor, numbers):
    """Canaries of a fit without noise are told from others by what it predicts."""
    pytest.importorskip("jax_privacy")
    regressor.set_params(epsilon=float("inf"))
    given = {"n_canaries": 100, "seed": 0, "delta": 1e-5, "gaussian": True}
    X, y = numbers[0][:10], numbers[1][:10]
    found = audit_one_run(regressor, X, y, epsilon=0.1, **given)
    assert found.epsilon_lower > 1.0
    assert not found.ok
    regressor.set_params(epsilon=1.0)
    assert audit_one_run(regressor, *numbers, n_canaries=100, seed=0).ok


def test_membership_of_a_regressor_compares_errors(regressor, numbers):
    X, y = numbers
    with pytest.warns(PrivacyWarning, match="to promise anything"):
        model = regressor.set_params(epsilon=float("inf")).fit(X[:50], y[:50])
    found = membership(model, (X[:50], y[:50]), (X[50:], 10.0 - y[50:]))
    assert found.auc > 0.9
    np.testing.assert_array_equal(margins(model, X, y), -abs(model.predict(X) - y))


def test_replay_of_a_regressor_of_images_finds_no_fault():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12, 5)), rng.normal(size=12)
    model = DPSGDRegressor(
        model="mlp", epsilon=8.0, expected_batch_size=6, n_iter=2, random_state=1
    )
    assert replay(model, X, y, record=3).ok


def test_random_labels_of_a_regressor_are_levels_of_its_target(regressor):
    found = random_label_test(regressor, n_fits=10, seed=0)
    assert found.passed
    remembers = regressor.set_params(epsilon=float("inf"), ridge=1e-9)
    assert random_label_test(remembers, n_fits=3, mu=0.0, seed=0).mean > 0.3


def test_random_labels_of_a_pipeline_pass(pipeline):
    assert random_label_test(pipeline, n_fits=10, n_features=200, seed=0).passed


def test_pattern_of_one_user_fills_rows_of_a_given_width(pipeline):
    given = {"n_users": 100, "side": 3, "patch": 1, "n_fits": 10, "seed": 0}
    assert pattern_test(pipeline, n_features=11, **given).passed
    with pytest.raises(ValueError, match=r"n_features must be in \[9, "):
        pattern_test(pipeline, n_features=8, **given)


def test_target_levels_are_those_of_the_last_step(regressor):
    piped = Pipeline(
        [("scale", DPStandardScaler(bounds=(-1, 1))), ("model", regressor)]
    )
    assert target_levels(piped, 3).tolist() == [0.0, 5.0, 10.0]
    assert target_levels(DPSGDRegressor(), 2).tolist() == [-1.0, 1.0]


def test_nearest_level_of_a_prediction():
    class Model:
        def predict(self, X):
            return X

    found = NearestLevel(Model(), np.array([0.0, 5.0, 10.0]))
    assert found.predict([-3.0, 2.4, 2.6, 99.0]).tolist() == [0, 0, 1, 2]


def test_audits_charge_no_ledger_of_what_is_inside(clusters, tmp_path):
    ledger = PrivacyLedger(tmp_path / "l", dataset="d", epsilon=99, delta=1e-5)
    clf = DPLeastSquares(classes=range(4), ledger=ledger)
    chain = make_pipeline(Normalizer(), clf)
    audit_one_run(chain, *clusters, epsilon=1.0, delta=1e-5, n_canaries=50, seed=0)
    with pytest.raises(TypeError, match="estimator must state what it costs"):
        check_noise(chain, *clusters)
    assert ledger.history == []
    assert clf.ledger is ledger
