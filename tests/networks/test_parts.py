"""Optimizers, physical batches, augmentation and readers, one behaviour each."""

from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from sklearn.base import clone

from privfeat import DPSGDClassifier, load, save
from privfeat.networks import color_jitter
from privfeat.networks.augment import AUGMENTATIONS, Views, resized_crop, voted
from privfeat.networks.batches import flatten, physical_batches, unflatten
from privfeat.networks.images import as_records, pixel_scale, read_folder, to_inputs
from privfeat.networks.layers import max_pool
from privfeat.networks.optimizers import make_optimizer

SETTINGS = {"schedule": "constant", "warmup_steps": 0, "n_iter": 10} | {
    "weight_decay": 0.0,
    "learning_rate": 0.1,
    "n_records": 50,
    "draw_key": lambda: jax.random.key(5),
}


def first_step(optimizer, **settings):
    transform = make_optimizer(optimizer, **SETTINGS | settings)
    parameters = {"w": jnp.array([2.0])}
    state = transform.init(parameters)
    with jax.numpy_dtype_promotion("standard"):
        moves, _ = transform.update({"w": jnp.array([0.5])}, state, parameters)
    return float(moves["w"][0])


def test_optimizers_take_the_steps_of_their_names():
    assert first_step("sgd") == pytest.approx(-0.05)
    assert first_step("heavy_ball") == pytest.approx(-0.05)
    assert first_step("nesterov") == pytest.approx(-0.05 * 1.9)
    assert first_step("adam") == pytest.approx(-0.1, rel=1e-3)
    assert first_step("adamw", weight_decay=0.5) == pytest.approx(-0.2, rel=1e-3)
    assert first_step("sgd", weight_decay=0.5) == pytest.approx(-0.15)


def test_langevin_noise_has_the_variance_of_its_rate():
    transform = make_optimizer("sgld", **SETTINGS)
    parameters = {"w": jnp.zeros(20_000)}
    state = transform.init(parameters)
    steps = []
    for _ in range(2):
        with jax.numpy_dtype_promotion("standard"):
            moves, state = transform.update({"w": jnp.ones(20_000)}, state, parameters)
        steps.append(np.asarray(moves["w"]))
    assert steps[0].mean() == pytest.approx(-0.1, abs=5 * 0.0632 / 141)
    assert steps[0].std() == pytest.approx(np.sqrt(2 * 0.1 / 50), rel=0.03)
    assert abs(np.corrcoef(steps)[0, 1]) < 0.04


def test_warm_up_rises_and_cosine_falls_to_zero():
    settings = {"schedule": "cosine", "warmup_steps": 4, "n_iter": 12}
    transform = make_optimizer("sgd", **SETTINGS | settings)
    state, rates = transform.init({"w": jnp.zeros(1)}), []
    for _ in range(13):
        with jax.numpy_dtype_promotion("standard"):
            moves, state = transform.update({"w": jnp.ones(1)}, state)
        rates.append(-float(moves["w"][0]))
    np.testing.assert_allclose(rates[:5], [0.025, 0.05, 0.075, 0.1, 0.1], rtol=1e-5)
    assert np.all(np.diff(rates[4:]) < 0)
    assert rates[-1] == pytest.approx(0.0, abs=1e-8)


def test_an_optax_object_brings_its_own_rate():
    mine = optax.sgd(0.3)
    with pytest.raises(ValueError, match="must be None"):
        make_optimizer(mine, **SETTINGS)
    assert make_optimizer(mine, **SETTINGS | {"learning_rate": None}) is mine


@pytest.mark.parametrize("n", [0, 1, 4, 9])
def test_physical_batches_hold_every_record_once(n):
    drawn = np.arange(100, 100 + n)
    batches = list(physical_batches(drawn, 4))
    assert all(len(batch.records) == len(batch.valid) == 4 for batch in batches)
    held = [r for batch in batches for r in batch.records[batch.valid]]
    assert held == drawn.tolist()


def test_flatten_round_trip():
    arrays = {"a": jnp.arange(6.0).reshape(2, 3), "b": jnp.array([7.0])}
    back = unflatten(flatten(arrays, ("b", "a")), arrays, ("b", "a"))
    assert all(np.array_equal(back[name], arrays[name]) for name in arrays)


@pytest.mark.parametrize("augmentation", AUGMENTATIONS[1:])
def test_views_depend_on_the_record_and_the_key_alone(augmentation):
    draw = np.random.default_rng(0)
    images = jnp.asarray(draw.uniform(-1, 1, size=(3, 8, 8, 3)), jnp.float32)
    numbers, key = jnp.array([4, 9, 2]), jax.random.key(1)
    draw_views = Views(augmentation, 3)
    views = draw_views(images, numbers, key)
    alone = draw_views(images[1:2], numbers[1:2], key)
    assert views.shape == (3, 3, 8, 8, 3)
    np.testing.assert_allclose(views[1:2], alone, atol=1e-6)
    assert abs(views).max() <= 1.0 + 1e-6
    assert not np.array_equal(views[0, 0], views[0, 1])
    other = draw_views(images, numbers, jax.random.key(2))
    assert not np.array_equal(views, other)


def test_without_augmentation_views_are_the_record():
    images = jnp.ones((2, 4, 4, 1)) * jnp.arange(2.0).reshape(2, 1, 1, 1)
    views = Views("none", 2)(images, jnp.arange(2), jax.random.key(0))
    assert np.array_equal(views[:, 0], images)
    assert np.array_equal(views[:, 1], images)


def test_a_resized_crop_is_a_stretched_rectangle():
    """A ramp stays a ramp, within its range and less steep."""
    ramp = jnp.linspace(-1.0, 1.0, 16)[:, None, None] * jnp.ones((1, 16, 1))
    cut_out = jax.jit(resized_crop)
    for seed in range(5):
        cut = np.asarray(cut_out(jax.random.key(seed), ramp))[:, :, 0]
        steps = np.diff(cut[1:-1], axis=0)
        assert 0.0 < steps.min() <= steps.max() <= 2.0 / 15 + 1e-5
        np.testing.assert_allclose(steps, steps[0, 0], atol=1e-5)


def test_colours_change_as_told():
    draw = np.random.default_rng(0)
    image = jnp.asarray(draw.uniform(-0.2, 0.2, (6, 6, 3)), jnp.float32)
    key = jax.random.key(0)
    np.testing.assert_allclose(color_jitter.jittered(key, image, 0.0), image, atol=1e-5)
    greys = color_jitter.grey(image)
    assert np.array_equal(greys[..., 0], greys[..., 2])
    turned = color_jitter.jittered(key, image, 0.0, hue=0.5)
    assert abs(turned - image).max() > 0.05
    # brightness stays when colours turn
    np.testing.assert_allclose(color_jitter.grey(turned), greys, atol=1e-3)


def test_votes_are_means_over_views_and_depend_on_the_image_alone():
    images = jnp.arange(2 * 36.0).reshape(2, 6, 6, 1) / 36.0

    def score(views):
        return views[:, 0, :2, 0]

    options = {"augmentation": "crop_flip", "n_votes": 5}
    vote = jax.jit(partial(voted, score, **options))
    both = vote(images)
    np.testing.assert_allclose(both[1:], vote(images[1:]), atol=1e-6)
    views = Views("crop_flip", 5)(images, jnp.zeros(2, int), jax.random.key(0))
    np.testing.assert_allclose(both, views[:, :, 0, :2, 0].mean(axis=1), atol=1e-6)
    assert np.array_equal(
        voted(score, images, augmentation="crop_flip", n_votes=1), score(images)
    )


def test_bytes_become_numbers_from_minus_one_to_one():
    records = as_records([np.zeros((4, 4), np.uint8), np.full((4, 4), 255, np.uint8)])
    assert records.shape == (2, 4, 4, 1)
    inputs = to_inputs(records)
    assert inputs.dtype == np.float32
    assert (inputs.min(), inputs.max()) == (-1.0, 1.0)


@pytest.mark.parametrize(
    ("X", "error"),
    [
        ([np.zeros((4, 4)), np.zeros((4, 5))], ValueError),
        (np.zeros((0, 4)), ValueError),
        (np.zeros(4), ValueError),
        (np.zeros((2, 4, 4, 3), np.int64), TypeError),
        (np.array([["a"]]), TypeError),
        (np.array([[1j]]), TypeError),
        (np.array([[np.nan]]), ValueError),
    ],
)
def test_bad_records_are_refused(X, error):
    with pytest.raises(error):
        as_records(X)


def test_images_are_read_by_class(tmp_path):
    Image = pytest.importorskip("PIL.Image")
    for name, grey in (("b", 200), ("a", 10)):
        (tmp_path / name).mkdir()
        Image.new("RGB", (12, 8), (grey,) * 3).save(tmp_path / name / "1.png")
        (tmp_path / name / "notes.txt").write_text("no image")
    images, labels, names, files = read_folder(tmp_path, size=4, mode="L")
    assert names == ["a", "b"]
    assert files == ["a/1.png", "b/1.png"]
    assert labels.tolist() == [0, 1]
    assert images.shape == (2, 4, 4, 1)
    assert images[:, 0, 0, 0].tolist() == [10, 200]


@pytest.mark.parametrize(("size", "stride"), [(2, None), (2, 1), (3, 2), (3, 4)])
def test_max_pool_is_that_of_jax_there_and_back(size, stride):
    x = jax.random.normal(jax.random.key(0), (2, 8, 7, 3))

    def windows(x):
        steps = (1, stride or size, stride or size, 1)
        return jax.lax.reduce_window(
            x, -jnp.inf, jax.lax.max, (1, size, size, 1), steps, "VALID"
        )

    found, back = jax.vjp(partial(max_pool, size=size, stride=stride), x)
    expected, expected_back = jax.vjp(windows, x)
    np.testing.assert_array_equal(found, expected)
    cotangent = jax.random.normal(jax.random.key(1), found.shape)
    np.testing.assert_allclose(
        back(cotangent)[0], expected_back(cotangent)[0], rtol=1e-6
    )


@pytest.mark.parametrize("path", ["images/train", Path("images")])
def test_records_refuse_a_path_and_name_who_reads_it(path):
    with pytest.raises(TypeError, match="read_folder"):
        as_records(path)


def test_images_are_read_upright_and_sixteen_bits_in_full(tmp_path):
    Image = pytest.importorskip("PIL.Image")
    (tmp_path / "b").mkdir()
    (tmp_path / "a").mkdir()
    ramp = np.tile(np.arange(4, dtype=np.uint16) * 21845, (4, 1))
    exif = Image.Exif()
    exif[0x0112] = 6  # turn clockwise
    Image.fromarray(ramp).save(tmp_path / "a" / "1.png")
    Image.fromarray(ramp).save(tmp_path / "a" / "2.png", exif=exif)
    images = read_folder(tmp_path, size=4, mode="L").images[..., 0]
    np.testing.assert_array_equal(images[0, 0], [0, 85, 170, 255])
    np.testing.assert_array_equal(images[1], images[0].T)


def test_a_bad_image_is_named_and_can_be_skipped(tmp_path):
    Image = pytest.importorskip("PIL.Image")
    for name in "ab":
        (tmp_path / name).mkdir()
        Image.new("RGB", (8, 8)).save(tmp_path / name / "1.png")
    (tmp_path / "a" / "2.png").write_text("no image")
    with pytest.raises(ValueError, match=r"a/2\.png must be an image, but cannot be"):
        read_folder(tmp_path, size=4)
    with pytest.warns(UserWarning, match=r"skipped .*a/2\.png"):
        found = read_folder(tmp_path, size=4, skip_bad=True)
    assert found.files == ["a/1.png", "b/1.png"]


def test_records_refuse_images_whose_numbers_are_no_colours():
    Image = pytest.importorskip("PIL.Image")
    with pytest.raises(ValueError, match="mode L or RGB, got another"):
        as_records([Image.new("P", (4, 4)), Image.new("P", (4, 4))])
    assert as_records([Image.new("L", (4, 4))]).shape == (1, 4, 4, 1)


def test_bytes_are_scaled_as_the_weights_of_a_name_want_them():
    images = np.full((1, 2, 2, 3), 255, np.uint8)
    for model, weights, white in (
        ("mobilenetv2_100", "w", [(1 - 0.485) / 0.229, (1 - 0.456) / 0.224, 2.64]),
        ("mobilenetv2_100_same", "w", [1.0, 1.0, 1.0]),
        ("mobilenetv2_100", None, [1.0, 1.0, 1.0]),
        ("wrn_16_4", "w", [1.0, 1.0, 1.0]),
    ):
        found = to_inputs(images, pixel_scale(model, weights))
        np.testing.assert_allclose(found[0, 0, 0], white, rtol=1e-4)
        assert found.dtype == np.float32


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")
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
