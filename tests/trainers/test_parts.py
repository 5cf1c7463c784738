"""Optimizers, physical batches, augmentation and readers, one behaviour each."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from privfeat.trainers.augment import augmented
from privfeat.trainers.batches import flatten, physical_batches, unflatten
from privfeat.trainers.images import as_records, read_folder, to_inputs
from privfeat.trainers.optimizers import make_optimizer

SETTINGS = {"schedule": "constant", "warmup_steps": 0, "n_iter": 10} | {
    "weight_decay": 0.0,
    "learning_rate": 0.1,
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


def test_views_depend_on_the_record_and_the_key_alone():
    draw = np.random.default_rng(0)
    images = jnp.asarray(draw.normal(size=(3, 8, 8, 1)), jnp.float32)
    numbers, key = jnp.array([4, 9, 2]), jax.random.key(1)
    options = {"augmentation": "crop_flip", "n_copies": 3}
    views = augmented(images, numbers, key, **options)
    alone = augmented(images[1:2], numbers[1:2], key, **options)
    assert views.shape == (3, 3, 8, 8, 1)
    assert np.array_equal(views[1:2], alone)
    assert not np.array_equal(views[0, 0], views[0, 1])
    other = augmented(images, numbers, jax.random.key(2), **options)
    assert not np.array_equal(views, other)


def test_without_augmentation_views_are_the_record():
    images = jnp.ones((2, 4, 4, 1)) * jnp.arange(2.0).reshape(2, 1, 1, 1)
    views = augmented(
        images, jnp.arange(2), jax.random.key(0), augmentation="none", n_copies=2
    )
    assert np.array_equal(views[:, 0], images)
    assert np.array_equal(views[:, 1], images)


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
    images, labels, names = read_folder(tmp_path, size=4, mode="L")
    assert names == ["a", "b"]
    assert labels.tolist() == [0, 1]
    assert images.shape == (2, 4, 4, 1)
    assert images[:, 0, 0, 0].tolist() == [10, 200]
