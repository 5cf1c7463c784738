"""Networks on disk: what was saved is what is loaded, and nothing is unpickled."""

import json

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from privfeat import DPSGDClassifier, DPSGDRegressor, load, save
from privfeat.networks.images.augment import to_inputs
from privfeat.networks.weights import build
from privfeat.persistence import ModelFileError

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")


@pytest.fixture
def images():
    draw = np.random.default_rng(0)
    return draw.integers(0, 256, (12, 8, 8, 1), np.uint8), draw.integers(0, 2, 12)


@pytest.fixture
def params():
    return {"model": "mlp", "noise_multiplier": 1.0, "n_iter": 2, "random_state": 5} | {
        "expected_batch_size": 4
    }


@pytest.mark.slow
def test_a_saved_classifier_predicts_alike(tmp_path, images, params):
    clf = DPSGDClassifier(**params, classes=[0, 1]).fit(*images)
    save(clf, tmp_path / "model", class_names=["a", "b"])
    loaded = load(tmp_path / "model")
    assert np.array_equal(loaded.predict_proba(images[0]), clf.predict_proba(images[0]))
    assert loaded.privacy_ == clf.privacy_
    assert loaded.random_state is None
    assert loaded.input_shape_ == clf.input_shape_
    assert "5" not in json.dumps(
        json.loads((tmp_path / "model" / "model.json").read_text())["params"]
    ).replace("1e-05", "")


@pytest.mark.slow
def test_a_saved_regressor_predicts_alike(tmp_path, images, params):
    model = DPSGDRegressor(**params).fit(images[0], images[1] - 0.5)
    save(model, tmp_path)
    assert np.array_equal(load(tmp_path).predict(images[0]), model.predict(images[0]))


def test_damage_is_noticed(tmp_path, images, params):
    save(DPSGDClassifier(**params, classes=[0, 1]).fit(*images), tmp_path)
    (file,) = tmp_path.glob("arrays-*.npz")
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    with pytest.raises(ModelFileError, match="checksum"):
        load(tmp_path)


def test_a_fit_that_was_broken_off_is_not_saved(tmp_path, images, params):
    """It replaced the model of the fit before by a folder that nobody could load."""

    def stop(step, model):
        raise KeyboardInterrupt

    clf = DPSGDClassifier(**params, classes=[0, 1]).fit(*images)
    save(clf, tmp_path)
    with pytest.raises(KeyboardInterrupt):
        clf.set_params(on_step=stop).fit(*images)
    with pytest.raises(NotFittedError):
        save(clf.set_params(on_step=None), tmp_path, overwrite=True)
    load(tmp_path)


@pytest.mark.slow
def test_a_network_without_a_name_is_not_saved(tmp_path, images, params):
    def make(shape, n_outputs, *, rngs):
        return build("mlp", shape, n_outputs, rngs=rngs)

    clf = DPSGDClassifier(**params | {"model": make}, classes=[0, 1]).fit(*images)
    with pytest.raises(TypeError, match="model must be made of"):
        save(clf, tmp_path)


@pytest.mark.slow
def test_a_fit_trains_predicts_and_is_saved_with_its_scale(tmp_path, plant):
    images = np.random.default_rng(0).integers(0, 256, (20, 4, 4, 3), dtype=np.uint8)
    scale = np.array([[10.0, 20.0, 30.0], [40.0, 50.0, 60.0]], np.float32)
    labels = np.arange(20) % 2
    clf = DPSGDClassifier(
        model="mlp",
        noise_multiplier=1.0,
        n_iter=2,
        expected_batch_size=10,
        classes=range(2),
        random_state=0,
    )
    expected = clf.fit(to_inputs(images, scale), labels)
    scores = expected.decision_function(to_inputs(images, scale))
    plant("scale of pixels", lambda model, weights: scale)
    found = clone(clf).fit(images, labels)
    np.testing.assert_array_equal(found.decision_function(images), scores)
    save(found, tmp_path / "model")
    loaded = load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.decision_function(images), scores)
