"""Fits: what is learned, what is released, and what neighbours can tell apart."""

import copy

import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from sklearn.base import clone
from sklearn.datasets import load_digits

from privfeat import DPSGDClassifier, DPSGDRegressor
from privfeat.core.accounting.pld import rdp_epsilon
from privfeat.core.sums.processes import Team
from privfeat.exceptions import PrivacyError, PrivacyWarning, UnsupportedEventError
from privfeat.networks.layers import Dense
from tests.networks.tiny import TINY

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")


def same_parameters(left, right):
    assert left.parameters_.keys() == right.parameters_.keys()
    return all(
        np.array_equal(left.parameters_[n], right.parameters_[n])
        for n in left.parameters_
    )


@pytest.mark.slow
def test_classifier_learns_digits():
    X, y = load_digits(return_X_y=True)
    clf = DPSGDClassifier(
        model="mlp", epsilon=8, classes=range(10), n_iter=60, learning_rate=5e-3
    ).fit(X / 16.0, y)
    assert clf.score(X / 16.0, y) > 0.8
    assert clf.privacy_.epsilon <= 8
    assert clf.privacy_.accounting == "pld"
    assert clf.privacy_.private


def test_regressor_learns_a_line():
    draw = np.random.default_rng(0)
    X = draw.uniform(-1, 1, (2000, 3))
    y = X @ [0.5, -0.3, 0.1]
    model = DPSGDRegressor(noise_multiplier=1.0, n_iter=60, learning_rate=3e-3).fit(
        X, y
    )
    assert model.score(X, y) > 0.7
    assert model.predict(X[:2]).shape == (2,)


@pytest.mark.parametrize("y", [["secret"] * 4, [1, 2, 3, "secret"], [1, {}, 2, 3]])
def test_targets_that_are_no_numbers_are_not_shown(y):
    with pytest.raises((TypeError, ValueError), match="y must hold numbers") as caught:
        DPSGDRegressor(epsilon=1.0).fit(np.zeros((4, 3)), y)
    assert "secret" not in str(caught.value)


@pytest.mark.slow
def test_images_as_bytes_are_learned():
    X, y = load_digits(return_X_y=True)
    kept = y < 2
    images = (X[kept] * 15).astype(np.uint8).reshape(-1, 8, 8)
    clf = DPSGDClassifier(
        model="simpleVGG-4(1)-8", noise_multiplier=1.0, classes=[0, 1], n_iter=20,
        expected_batch_size=64, microbatch_size=8, learning_rate=0.01,
        augmentation="crop_flip", n_copies=2, n_votes=3, ema_decay=0.9,
        random_state=1,
    ).fit(list(images), y[kept])  # fmt: skip
    assert clf.input_shape_ == (8, 8, 1)
    probabilities = clf.predict_proba(images)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert clf.score(images, y[kept]) > 0.8  # of most seeds: 0.9


def test_statement_is_that_of_the_mechanism(records, released):
    clf = DPSGDClassifier(**TINY).fit(*records)
    (release,) = clf.privacy_.releases
    assert len(released) == release.count == clf.n_iter_ == 4
    assert release.sampling_prob == pytest.approx(8 / 30)
    assert release.noise_stddev == pytest.approx(1.0, rel=1e-6)
    assert clf.privacy_.seeded


def test_pld_is_below_rdp(records):
    clf = DPSGDClassifier(**TINY | {"optimizer": "sgld"}).fit(*records)
    by_rdp = rdp_epsilon(clf.privacy_.event(), 1e-5)
    assert 0 < clf.privacy_.epsilon <= by_rdp < 2 * clf.privacy_.epsilon


@pytest.mark.parametrize("clip_factor", ["abadi", "automatic", "normalize", "global"])
@pytest.mark.parametrize("clip_norm", [0.5, ((0.0, 0.1), (0.5, 3.0))])
def test_first_exact_sum_moves_by_at_most_its_sensitivity(
    records, released, clip_factor, clip_norm
):
    """Neighbours with the same randomness; the record is large, and always drawn."""
    X, y = records
    params = TINY | {"expected_batch_size": None, "n_iter": 1}
    params |= {"clip_factor": clip_factor, "clip_norm": clip_norm}
    DPSGDClassifier(**params).fit(X, y)
    X = np.concatenate([X, np.full((1, 5), 1e3)])
    for label in range(2):  # one of which the network does not predict
        DPSGDClassifier(**params).fit(X, np.append(y, label))
    moved = [np.linalg.norm(exact - released[0]) for exact in released[1:]]
    assert max(moved) <= 1.0 + 1e-6
    assert max(moved) > 0.9 or clip_factor == "global"


def test_every_entry_of_every_step_gets_its_own_noise(records, plant):
    draws = []
    original = plant.genuine("Gaussian noise")

    def gaussian(key, shape, stddev):
        draws.append(original(key, shape, stddev))
        return draws[-1]

    plant("Gaussian noise", gaussian)
    clf = DPSGDClassifier(**TINY).fit(*records)
    size = sum(leaf.size for leaf in clf.parameters_.values())
    assert [len(draw) for draw in draws] == [size] * 4
    assert abs(np.corrcoef(draws)[np.triu_indices(4, 1)]).max() < 6 / np.sqrt(size)


def test_empty_batches_take_noisy_steps(records, released):
    params = TINY | {"expected_batch_size": 1e-3, "n_iter": 5}
    clf = DPSGDClassifier(**params).fit(*records)
    assert len(released) == 5
    assert not any(np.any(exact) for exact in released)
    before = DPSGDClassifier(**params | {"n_iter": 1}).fit(*records)
    assert not same_parameters(before, clf)


def test_sums_are_divided_by_the_expected_batch_size(records):
    """With sgd at rate 1 the step is the released sum over 8, whatever was drawn."""
    params = TINY | {"n_iter": 1, "optimizer": "sgd", "learning_rate": 1.0}
    moves = []
    for divisor in (8, 8.0000001):
        clf = DPSGDClassifier(**params | {"expected_batch_size": divisor})
        moves.append(clf.fit(*records).parameters_["layers/3/kernel"])
    np.testing.assert_allclose(*moves, atol=1e-5)
    clf = DPSGDClassifier(**params | {"noise_multiplier": None, "epsilon": np.inf})
    start = clf.fit(*records).parameters_["layers/3/bias"]
    # each record's gradient of the last bias has norm at most sqrt(2)
    assert np.linalg.norm(start) <= np.sqrt(2) * 30 / 8


@pytest.mark.slow
def test_microbatches_change_nothing_but_rounding(records):
    fits = [
        DPSGDClassifier(**TINY | {"microbatch_size": size}).fit(*records)
        for size in (1, 7)
    ]
    for name, leaf in fits[0].parameters_.items():
        np.testing.assert_allclose(fits[1].parameters_[name], leaf, atol=1e-4)


def test_fits_without_a_seed_differ(records):
    params = TINY | {"random_state": None}
    assert not same_parameters(
        DPSGDClassifier(**params).fit(*records), DPSGDClassifier(**params).fit(*records)
    )
    assert same_parameters(
        DPSGDClassifier(**TINY).fit(*records), DPSGDClassifier(**TINY).fit(*records)
    )


def test_neighbours_have_the_same_fitted_shapes(records):
    X, y = records
    few = y != 2
    fits = [
        DPSGDClassifier(**TINY).fit(X, y),
        DPSGDClassifier(**TINY).fit(X[few], y[few]),
    ]
    states = [
        {name: np.shape(value) for name, value in vars(fit).items()} for fit in fits
    ]
    assert states[0] == states[1]


@pytest.mark.slow
def test_frozen_parameters_stay(records):
    params = TINY | {"n_iter": 1}
    first = DPSGDClassifier(**params | {"frozen": ("layers/0", "layers/1")})
    second = DPSGDClassifier(
        **params | {"frozen": ("layers/0", "layers/1"), "n_iter": 3}
    )
    left, right = first.fit(*records).parameters_, second.fit(*records).parameters_
    moved = {name for name in left if not np.array_equal(left[name], right[name])}
    assert moved == {
        f"layers/{i}/{leaf}" for i in (2, 3) for leaf in ("kernel", "bias")
    }


def test_replace_one_needs_full_batches_and_doubles_the_sensitivity(records):
    params = TINY | {"adjacency": "replace_one"}
    with pytest.raises(UnsupportedEventError, match="add_remove"):
        DPSGDClassifier(**params).fit(*records)
    clf = DPSGDClassifier(**params | {"expected_batch_size": None}).fit(*records)
    assert clf.privacy_.releases[0].l2_sensitivity == pytest.approx(2.0, rel=1e-6)
    assert clf.privacy_.accounting == "exact"


def test_reading_classes_and_seeding_warn(records):
    with pytest.warns(PrivacyWarning) as caught:
        DPSGDClassifier(**TINY | {"classes": None}).fit(*records)
    text = " ".join(str(warning.message) for warning in caught)
    assert "classes=None" in text
    assert "random_state" in text


@pytest.mark.parametrize(
    "params",
    [
        {name: value}
        for name in (
            "n_iter", "epochs", "expected_batch_size", "microbatch_size", "clip_norm",
            "learning_rate", "ema_decay", "n_copies", "n_votes", "delta",
            "noise_multiplier",
        )
        for value in (np.nan, -1, True, "x")
    ]
    + [
        {"clip_factor": "no"}, {"clip_style": "no"}, {"engine": "no"},
        {"optimizer": "no"}, {"schedule": "no"}, {"model": "no"}, {"frozen": "layers"},
        {"frozen": ("",)}, {"augmentation": "no"},
        {"augmentation": "crop_flip"}, {"expected_batch_size": 31},
        {"weight_decay": np.nan}, {"warmup_steps": 5}, {"model": "wrn_16_4"},
    ],
)  # fmt: skip
def test_bad_parameters_are_refused_before_anything_is_released(
    records, released, params
):
    with pytest.raises((TypeError, ValueError)):
        DPSGDClassifier(**TINY | params).fit(*records)
    assert not released


class Mixing(nnx.Module):
    """Layers of this library, with something computed over records between them."""

    def __init__(self, n_inputs, n_outputs, over_records, *, rngs):
        self.head = Dense(n_inputs, n_outputs, rngs=rngs)
        self.over_records = over_records

    def __call__(self, x):
        return self.head(x - self.over_records(x))


@pytest.mark.parametrize("engine", ["fast", "reference"])
@pytest.mark.parametrize(
    "over_records",
    [
        lambda x: x.mean(axis=0, keepdims=True),
        lambda x: x.max(axis=0, keepdims=True),
        lambda x: jnp.sort(x, axis=0),
        lambda x: x[::-1],
    ],
)
def test_networks_that_mix_records_are_refused(records, released, engine, over_records):
    def mixing(shape, n_outputs, *, rngs):
        return Mixing(shape[0], n_outputs, over_records, rngs=rngs)

    with pytest.raises(ValueError, match="every record by itself"):
        DPSGDClassifier(**TINY | {"model": mixing, "engine": engine}).fit(*records)
    assert not released


@pytest.mark.parametrize("engine", ["fast", "reference"])
def test_networks_of_a_user_that_do_not_mix_are_trained(records, engine):
    def centred(shape, n_outputs, *, rngs):
        return Mixing(
            shape[0], n_outputs, lambda x: x.mean(axis=1, keepdims=True), rngs=rngs
        )

    params = {"model": centred, "engine": engine, "trust_model": True}
    clf = DPSGDClassifier(**TINY | params).fit(*records)
    assert clf.n_iter_ == 4
    vouched = "that the network treats every record by itself (trust_model=True)"
    assert (vouched in clf.privacy_.public) == (engine == "fast")


def test_a_network_may_be_a_single_layer(records):
    def layer(shape, n_outputs, *, rngs):
        return Dense(shape[0], n_outputs, rngs=rngs)

    fits = [
        DPSGDClassifier(
            **TINY | {"model": layer, "engine": engine, "trust_model": True}
        ).fit(*records)
        for engine in ("fast", "reference")
    ]
    assert set(fits[0].parameters_) == {"bias", "kernel"}
    for name, leaf in fits[0].parameters_.items():
        np.testing.assert_allclose(fits[1].parameters_[name], leaf, atol=1e-5)


def test_several_processes_are_refused(records, released, plant):
    plant("team of this process", lambda: Team(index=0, size=2))
    with pytest.raises(PrivacyError, match="must run in one process"):
        DPSGDClassifier(**TINY).fit(*records)
    assert not released


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
def test_records_that_are_not_finite_are_refused(records, value, released):
    X, y = records
    X = X.copy()
    X[4, 2] = value
    with pytest.raises(ValueError, match="finite") as caught:
        DPSGDClassifier(**TINY).fit(X, y)
    assert "4" not in str(caught.value)
    assert not released


def test_estimators_clone_and_copy(records):
    clf = DPSGDClassifier(**TINY)
    fitted = clone(clf).fit(*records)
    assert same_parameters(copy.deepcopy(fitted), fitted)
    assert not hasattr(clf, "parameters_")
    assert clf.get_params() == fitted.get_params()
