"""Fits: what is learned, what is released, and what neighbours can tell apart."""

import copy

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits

from privfeat import DPSGDClassifier, DPSGDRegressor
from privfeat.core.accounting.rdp import rdp_epsilon
from privfeat.exceptions import UnsupportedEventError
from tests.combinations import few
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_statement_is_that_of_the_mechanism(records, released):
    clf = DPSGDClassifier(**TINY).fit(*records)
    (release,) = clf.privacy_.releases
    assert len(released) == release.count == clf.n_iter_ == 4
    assert release.sampling_prob == pytest.approx(8 / 30)
    assert release.noise_stddev == pytest.approx(1.0, rel=1e-6)
    assert clf.privacy_.seeded


@pytest.mark.slow
def test_pld_is_below_rdp(records):
    clf = DPSGDClassifier(**TINY | {"optimizer": "sgld"}).fit(*records)
    by_rdp = rdp_epsilon(clf.privacy_.event(), 1e-5)
    assert 0 < clf.privacy_.epsilon <= by_rdp < 2 * clf.privacy_.epsilon


@pytest.mark.parametrize(
    "clip_factor", few(2, ["abadi", "global", "automatic", "normalize"])
)
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


def test_every_entry_of_every_step_gets_its_own_noise(records, drawn):
    clf = DPSGDClassifier(**TINY).fit(*records)
    size = sum(leaf.size for leaf in clf.parameters_.values())
    assert [len(draw) for draw in drawn] == [size] * 4
    assert abs(np.corrcoef(drawn)[np.triu_indices(4, 1)]).max() < 6 / np.sqrt(size)


def test_empty_batches_take_noisy_steps(records, released):
    params = TINY | {"expected_batch_size": 1e-3, "n_iter": 5}
    clf = DPSGDClassifier(**params).fit(*records)
    assert len(released) == 5
    assert not any(np.any(exact) for exact in released)
    before = DPSGDClassifier(**params | {"n_iter": 1}).fit(*records)
    assert not same_parameters(before, clf)


@pytest.mark.slow
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


@pytest.mark.slow
def test_fits_without_a_seed_differ(records):
    params = TINY | {"random_state": None}
    assert not same_parameters(
        DPSGDClassifier(**params).fit(*records), DPSGDClassifier(**params).fit(*records)
    )
    assert same_parameters(
        DPSGDClassifier(**TINY).fit(*records), DPSGDClassifier(**TINY).fit(*records)
    )


@pytest.mark.slow
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


def test_estimators_clone_and_copy(records):
    clf = DPSGDClassifier(**TINY)
    fitted = clone(clf).fit(*records)
    assert same_parameters(copy.deepcopy(fitted), fitted)
    assert not hasattr(clf, "parameters_")
    assert clf.get_params() == fitted.get_params()


def test_accounting_is_that_of_the_plan(records):
    clf = DPSGDClassifier(**TINY, accounting="rdp").fit(*records)
    assert clf.privacy_.accounting == "rdp"
    assert clf.privacy_.epsilon == rdp_epsilon(clf.privacy_.event(), 1e-5)
    with pytest.raises(UnsupportedEventError, match="accounting='exact'"):
        clf.set_params(accounting="exact").fit(*records)
    with pytest.raises(ValueError, match="accounting must be"):
        clf.set_params(accounting="renyi").fit(*records)
