"""What networks and their parts are refused for."""

import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image

from privfeat import DPSGDClassifier, DPSGDRegressor
from privfeat.networks.engine.clipping import check_phases
from privfeat.networks.engine.network import Network
from privfeat.networks.images.augment import grey
from privfeat.networks.images.records import read_folder
from privfeat.networks.layers.basic import Norm
from privfeat.networks.models import MLP


@pytest.mark.parametrize(
    ("clip_norm", "error", "message"),
    [
        ((1.0, 2.0), TypeError, "a tuple of pairs"),
        (((0.0, 1.0, 2.0),), TypeError, "a tuple of pairs"),
        (((0.5, 1.0),), ValueError, "increase from 0"),
        (((0.0, 1.0), (0.0, 2.0)), ValueError, "increase from 0"),
        ((), ValueError, "at least one phase"),
    ],
)
def test_phases_of_clip_norm_that_are_none_are_refused(clip_norm, error, message):
    with pytest.raises(error, match=message):
        check_phases(clip_norm)


def test_groups_of_channels_must_be_equal():
    with pytest.raises(ValueError, match="must divide the 6 channels, got 4"):
        Norm(6, groups=4)


def test_a_model_must_be_a_module():
    with pytest.raises(TypeError, match=r"must be a flax.nnx.Module, got dict"):
        Network({})


@pytest.mark.parametrize(
    "y", [np.zeros((4, 2, 1)), [1.0, 2.0, np.nan, 3.0], [[np.inf], [0.0], [0.0], [0.0]]]
)
def test_targets_that_are_no_numbers_of_records_are_refused(y):
    with pytest.raises(ValueError, match=r"or .n_samples, n_outputs. and be finite"):
        DPSGDRegressor(noise_multiplier=1.0).fit(np.zeros((4, 3)), y)


@pytest.mark.parametrize(
    ("kind", "message"),
    [("M8[D]", "got dates"), ("m8[s]", "got dates"), ("complex64", "must be real")],
)
def test_targets_that_would_become_other_numbers_are_refused(kind, message):
    """Dates became nanoseconds, and complex numbers lost their imaginary part."""
    y = np.arange(4).astype(kind)
    for targets in (y, list(y)):
        with pytest.raises(TypeError, match=message):
            DPSGDRegressor(noise_multiplier=1.0).fit(np.zeros((4, 3)), targets)


def test_rows_of_bytes_are_refused():
    """One 256 would make other numbers of the bytes of all rows."""
    clf = DPSGDClassifier(noise_multiplier=1.0, classes=range(2))
    with pytest.raises(TypeError, match="X must hold rows of floats, got bytes"):
        clf.fit(np.zeros((4, 3), np.uint8), [0, 1, 0, 1])


def test_labels_in_several_columns_are_refused():
    clf = DPSGDClassifier(noise_multiplier=1.0, classes=range(2))
    with pytest.raises(ValueError, match="y must be a 1d array"):
        clf.fit(np.zeros((4, 3)), np.zeros((4, 1), int))


def test_a_module_has_its_weights_already(rngs):
    """They would be read for nothing."""
    module = MLP((3,), 2, widths=(2,), rngs=rngs)
    clf = DPSGDClassifier(model=module, noise_multiplier=1.0, weights="w.safetensors")
    with pytest.raises(TypeError, match="weights must be None for a model that is a"):
        clf.fit(np.zeros((4, 3)), [0, 1, 0, 1])


def test_grey_leaves_an_image_of_one_channel_as_it_is():
    image = jnp.arange(4.0).reshape(2, 2, 1)
    np.testing.assert_array_equal(grey(image), image)


def test_folders_of_images_need_two_classes_and_an_image(tmp_path):
    (tmp_path / "cat").mkdir()
    with pytest.raises(ValueError, match="each of at least 2 classes, got 1"):
        read_folder(tmp_path)
    (tmp_path / "dog").mkdir()
    Image.new("RGB", (8, 8)).save(tmp_path / "beside.png")
    with pytest.raises(ValueError, match="must hold images, got none"):
        read_folder(tmp_path)


def test_new_images_need_one_folder_alone(tmp_path):
    (tmp_path / "new").mkdir()
    Image.new("RGB", (8, 8)).save(tmp_path / "new" / "1.png")
    found = read_folder(tmp_path, size=8, labelled=False)
    assert (found.images.shape, found.files) == ((1, 8, 8, 3), ["new/1.png"])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")
def test_predictions_are_of_records_of_the_shape_that_was_fitted():
    X = np.linspace(-1, 1, 40).reshape(20, 2)
    model = DPSGDRegressor(noise_multiplier=1.0, n_iter=1, expected_batch_size=None)
    model.fit(X, X[:, 0])
    with pytest.raises(ValueError, match=r"records of shape \(2,\), got \(3,\)"):
        model.predict(np.zeros((1, 3)))


def test_a_plan_is_that_of_a_fit_of_so_many_records():
    model = DPSGDRegressor(noise_multiplier=1.0, n_iter=1, expected_batch_size=5)
    (release,) = model.planned(20).releases
    assert release.query.sampling_prob == 0.25
