"""Audits of networks: the least one, on a few tiny images."""

import numpy as np
import pytest

from privfeat import DPSGDClassifier, PrivacyLedger
from privfeat.audit import (
    audit_one_run,
    check_noise,
    membership,
    pattern_test,
    random_label_test,
    replay,
    smallest_noise,
)
from tests.audit.faults import halve_noise

pytest.importorskip("flax")


@pytest.fixture
def images():
    """Return thirty images of 4 x 4 pixels, dark, grey and bright."""
    rng = np.random.default_rng(0)
    y = np.arange(30) % 3
    return (y[:, None, None, None] - 1) + 0.3 * rng.normal(size=(30, 4, 4, 1)), y


FULL = {"expected_batch_size": None}


def make(noise_multiplier=1.0, **options):
    settings = {
        "model": "mlp",
        "classes": range(3),
        "n_iter": 2,
        "expected_batch_size": 15,
        "microbatch_size": 32,
    }
    return DPSGDClassifier(noise_multiplier=noise_multiplier, **(settings | options))


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
@pytest.mark.parametrize("user", [0, pytest.param(7, marks=pytest.mark.slow)])
def test_replay_leaves_out_a_user_of_a_network(images, user, adjacency):
    """Of the first and of some other name; the sum moves, since that user took part."""
    users = np.arange(30) % 10
    clf = make(max_group_size=2, adjacency=adjacency, **FULL)
    result = replay(clf, *images, user=user, groups=users)
    assert result.ok, str(result)
    assert result.movements[0].observed > 0.0


def test_replay_refuses_a_record_of_a_user(images):
    clf = make(max_group_size=2, **FULL)
    with pytest.raises(ValueError, match="user must be given"):
        replay(clf, *images, record=3, groups=np.arange(30) % 10)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, marks=pytest.mark.slow),  # losses of samples take a while
        FULL,
        FULL | {"adjacency": "replace_one"},
        FULL | {"clip_style": "layerwise", "clip_factor": "automatic"},
    ],
)
def test_replay_finds_no_fault_in_a_network(images, options):
    result = replay(make(**options), *images, record=4)
    assert result.ok, str(result)
    (moved,) = result.movements
    assert moved.name == "gradient"
    declared = 2.0 if "adjacency" in options else 1.0
    assert moved.declared == pytest.approx(declared, rel=1e-5)
    if options:  # takes part in every step
        assert moved.ratio > 0.2


@pytest.mark.slow
def test_replay_finds_a_network_that_does_not_clip(images, plant):
    rules = plant.genuine("rules of the clip")
    plant("rules of the clip", rules | {"abadi": lambda norms, _: 0 * norms + 1})
    result = replay(make(**FULL), *images, record=4)
    assert not result.ok
    assert "TOO FAR" in str(result)


def test_noise_of_a_network_is_checked(images, plant):
    assert check_noise(make(**FULL), *images).ok
    halve_noise(plant)
    assert not check_noise(make(**FULL), *images).ok


@pytest.mark.statistical
def test_one_run_bounds_the_epsilon_of_a_network(images):
    """False-positive rate 1e-3, by the theorem; a seed fixes the canaries."""
    pytest.importorskip("jax_privacy")
    clf = make(2.0, optimizer="sgd", **FULL)
    result = audit_one_run(clf, *images, n_canaries=40, confidence=0.999, seed=0)
    assert result.ok
    assert result.gaussian


@pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")
def test_membership_takes_a_network(images):
    X, y = images
    clf = make(**FULL).fit(X[:15], y[:15])
    told = membership(clf, (X[:15], y[:15]), (X[15:], y[15:]))
    assert 0 <= told.auc <= 1
    assert told.auc_bound < 1


def test_audits_charge_no_ledger_and_keep_no_checkpoint(images, tmp_path):
    ledger = PrivacyLedger(tmp_path / "a.ledger", dataset="a", epsilon=99, delta=1e-5)
    clf = make(ledger=ledger, checkpoint_dir=tmp_path / "kept", **FULL)
    assert replay(clf, *images, record=4).ok
    assert check_noise(clf, *images).ok
    assert not ledger.history
    assert not (tmp_path / "kept").exists()
    assert clf.ledger is ledger


@pytest.mark.slow
@pytest.mark.statistical
def test_random_labels_are_memorized_without_noise_alone():
    """False-positive rate 1e-3; without noise the network knows all labels."""
    options = FULL | {"n_iter": 60, "learning_rate": 0.01}
    shape = {"n_samples": 60, "n_features": (4, 4, 1), "n_classes": 3, "seed": 0}
    shape |= {"n_fits": 1, "mu": 0.0}
    assert not random_label_test(make(0.01, **options), **shape).passed
    assert random_label_test(make(300.0, **options), **shape).passed


@pytest.mark.slow
@pytest.mark.statistical
def test_noise_is_calibrated_until_a_pattern_of_one_user_is_not_learned():
    """Without noise every fit learns it; the noise found is one that passed."""

    def test(estimator):
        return pattern_test(
            estimator,
            n_users=30,
            records_per_user=4,
            side=8,
            patch=4,
            channels=1,
            n_classes=3,
            n_fits=3,
            mu=0.0,
            rate=0.05,
            seed=0,
        )

    def made(noise_multiplier):
        options = FULL | {"n_iter": 40, "learning_rate": 0.01}
        return make(noise_multiplier, **options)

    found = smallest_noise(made, test, low=0.01, high=1000.0, tol=20.0)
    outcome = {noise: result.passed for noise, result in found.tried}
    assert not outcome[0.01]
    assert outcome[found.noise_multiplier]
    assert found.tried[0][1].plot()[1:4] == b"PNG"
