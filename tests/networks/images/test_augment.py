"""Views of images, and votes over them."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from privfeat.networks.images import augment
from privfeat.networks.images.augment import (
    AUGMENTATIONS,
    Views,
    augmented,
    blurred,
    counted,
    resized_crop,
    voted,
)
from tests.combinations import few


@pytest.mark.parametrize("augmentation", few(1, AUGMENTATIONS[1:]))
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


@pytest.mark.parametrize("augmentation", AUGMENTATIONS)
def test_views_are_of_float32_where_the_process_has_64_bits(augmentation):
    def views():
        images, numbers = jnp.zeros((2, 8, 8, 3), "float32"), jnp.arange(2)
        return augmented(images, numbers, jax.random.key(0), augmentation, 2)

    with jax.enable_x64(True):
        assert jax.eval_shape(views).dtype == "float32"


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


@pytest.mark.slow
def test_blur_is_the_gaussian_of_its_width():
    """A point becomes the product of two normalized Gaussians, a ramp stays itself."""
    point = jnp.zeros((45, 41, 1)).at[20, 20, 0].set(1.0)
    spread = np.asarray(blurred(point, jnp.float32(1.5)))[:, :, 0]
    line = np.exp(-0.5 * (np.arange(-2, 3) / 1.5) ** 2)
    line /= line.sum()
    np.testing.assert_allclose(spread[18:23, 18:23], np.outer(line, line), atol=1e-6)
    assert spread.sum() == pytest.approx(1.0, abs=1e-5)
    ramp = jnp.arange(9.0)[:, None, None] * jnp.ones((1, 9, 1))
    still = np.asarray(blurred(ramp, jnp.float32(0.7)))
    np.testing.assert_allclose(still[1:-1], ramp[1:-1], atol=1e-5)


@pytest.mark.slow
def test_colours_change_as_told():
    draw = np.random.default_rng(0)
    image = jnp.asarray(draw.uniform(-0.2, 0.2, (6, 6, 3)), jnp.float32)
    key = jax.random.key(0)
    np.testing.assert_allclose(augment.jittered(key, image, 0.0), image, atol=1e-5)
    greys = augment.grey(image)
    assert np.array_equal(greys[..., 0], greys[..., 2])
    turned = augment.jittered(key, image, 0.0, hue=0.5)
    assert abs(turned - image).max() > 0.05
    # brightness stays when colours turn
    np.testing.assert_allclose(augment.grey(turned), greys, atol=1e-3)


@pytest.mark.parametrize("n_channels", [1, 2])
def test_images_without_colours_change_in_brightness_and_contrast_alone(n_channels):
    draw = np.random.default_rng(0)
    image = jnp.asarray(draw.uniform(-0.2, 0.2, (4, 4, n_channels)), jnp.float32)
    key = jax.random.key(0)
    turned = augment.jittered(key, image, 0.0, hue=0.5)
    np.testing.assert_allclose(turned, image, atol=1e-6)
    changed = np.asarray(augment.jittered(key, image, 0.3))
    slope, shift = np.polyfit(np.ravel(image), changed.ravel(), 1)
    np.testing.assert_allclose(changed, slope * image + shift, atol=1e-5)
    assert abs(slope - 1.0) > 0.01
    assert abs(shift) > 0.01


@pytest.mark.slow
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


@pytest.mark.parametrize("generator", ["rbg", "unsafe_rbg"])
def test_votes_depend_on_the_image_alone_whatever_generator_the_process_has(generator):
    """Under ``vmap`` these deal out the bits of one key by place."""
    images = jnp.repeat(jnp.arange(36.0).reshape(1, 6, 6, 1) / 36.0, 8, axis=0)

    def votes():
        options = {"augmentation": "crop_flip", "n_votes": 3}
        return np.asarray(voted(lambda views: views[:, 0, :2, 0], images, **options))

    usual = votes()
    with jax.default_prng_impl(generator):
        found = votes()
    assert len(np.unique(usual, axis=0)) == 1
    np.testing.assert_array_equal(found, usual)


def test_a_majority_is_that_of_the_views():
    """Counted in a loop: 5 views of 3 images, 4 classes; two views tie in the last."""
    scores = np.random.default_rng(0).normal(size=(3, 5, 4)).astype(np.float32)
    scores[2] = np.log([[0.7, 0.1, 0.1, 0.1]] * 2 + [[0.1, 0.1, 0.4, 0.4]] * 3)
    scores[2, 2:4, 2] += 1e-3  # two votes for class 2
    scores[2, 4, 3] += 1e-3
    shares = np.exp(np.asarray(counted(jnp.asarray(scores)), float))
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, atol=1e-6)
    for own, share in zip(scores, shares, strict=True):
        votes = np.bincount([view.argmax() for view in own], minlength=4)
        assert share.argmax() in np.flatnonzero(votes == votes.max())
        np.testing.assert_allclose(share, votes / 5.5, atol=0.5 / 5.5 + 1e-6)
    assert shares[2].argmax() == 0  # as many views, but surer ones


def test_a_majority_of_certain_views_is_finite():
    certain = jnp.asarray([[[1e4, 0.0, 0.0]] * 3 + [[0.0, 1e4, 0.0]] * 2])
    scores = np.asarray(counted(certain))
    assert np.all(np.isfinite(scores))
    assert scores[0].argmax() == 0


@pytest.mark.slow
def test_a_majority_may_differ_from_the_mean():
    """Two views that lean to one class against one that is sure of the other."""

    def score(views):
        sure = jnp.arange(len(views)) % 3 == 0
        return jnp.where(sure[:, None], jnp.array([9.0, 0.0]), jnp.array([0.0, 1.0]))

    images = jnp.zeros((2, 6, 6, 1))
    options = {"augmentation": "crop_flip", "n_votes": 3}
    assert voted(score, images, **options).argmax(axis=1).tolist() == [0, 0]
    most = voted(score, images, **options, majority=True)
    assert most.argmax(axis=1).tolist() == [1, 1]
