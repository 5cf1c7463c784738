"""Training that stops and goes on: rows 29 and 30."""

import dataclasses
import math
from functools import partial

import jax
import numpy as np
import pytest

from privfeat import load, save
from privfeat.persistence import ModelFileError
from tests.pitfalls.conftest import Trap, replace_arrays
from tests.pitfalls.killed import KilledError, noise_before_a_kill
from tests.pitfalls.tiny import made

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")


# 29 -- training that went on reused noise, or lost its state


def check_29(records, plant):
    """Stopped after every step and continued from what is carried: bit for bit."""
    drawn, draw, step = [], plant.genuine("next key"), plant.genuine("step of training")
    draw_words = plant.genuine("next words of a key")

    def counted(self):
        key = draw(self)
        drawn.append(jax.random.key_data(key).tobytes())
        return key

    def counted_words(self, n_words):
        words = draw_words(self, n_words)
        drawn.append(words.tobytes())
        return words

    def interrupted(self, mechanism, state, *rest):
        return step(self, mechanism, resumed(state), *rest)

    options = {"optimizer": "adam", "ema_decay": 0.5}
    whole = made(**options).fit(*records)
    with plant.context() as patch:
        patch("next key", counted)
        patch("next words of a key", counted_words)
        patch("step of training", interrupted)
        parts = made(**options).fit(*records)
    assert len(set(drawn)) == len(drawn) >= 1 + 3 * 3  # batch, views and noise
    for name, leaf in whole.parameters_.items():
        np.testing.assert_array_equal(parts.parameters_[name], leaf, err_msg=name)


def resumed(state):
    """Return the state in new arrays: nothing of the old ones lives on."""
    return jax.tree.map(lambda leaf: np.array(leaf)[()], state)


@pytest.mark.slow
def test_29_training_that_was_interrupted_ends_as_if_it_was_not(records, plant):
    check_29(records, plant)


def test_29_notices_an_optimizer_that_forgets(records, plant, monkeypatch):
    genuine = resumed

    def forgetful(state):
        fresh = jax.tree.map(np.zeros_like, state.optimizer)
        return genuine(dataclasses.replace(state, optimizer=fresh))

    monkeypatch.setitem(globals(), "resumed", forgetful)
    with pytest.raises(AssertionError):
        check_29(records, plant)


def test_29_notices_draws_that_are_repeated(records, plant):
    genuine = plant.genuine("step of training")

    def rewound(self, *rest):
        self.keys._drawn = 1  # after the draw for the initial parameters
        return genuine(self, *rest)

    plant("step of training", rewound)
    with pytest.raises(AssertionError):
        check_29(records, plant)


def check_29_saved(records, folder):
    clf = made(model="mlp", random_state=5, n_iter=1).fit(*records)
    save(clf, folder, overwrite=True)
    again = load(folder)
    assert again.random_state is None
    refit = again.fit(*records)
    assert any(np.any(refit.parameters_[n] != p) for n, p in clf.parameters_.items())
    replace_arrays(folder, parameters_=np.array([Trap()], dtype=object))
    Trap.sprung = False
    with pytest.raises(ModelFileError):
        load(folder)
    assert not Trap.sprung


@pytest.mark.slow
def test_29_a_saved_network_brings_no_seed_back_and_runs_no_code(records, tmp_path):
    check_29_saved(records, tmp_path)


def test_29_notices_a_network_that_is_unpickled(records, tmp_path, monkeypatch):
    genuine = np.load
    monkeypatch.setattr(np, "load", lambda file, **_: genuine(file, allow_pickle=True))
    with pytest.raises(AssertionError):
        check_29_saved(records, tmp_path)


# 30 -- what was spent was written down after training, so a crash under-reported


def check_30(records, plant):
    clf = made(expected_batch_size=None).fit(*records)
    clf.set_params(noise_multiplier=0.5)
    for n_before in (0, 2):
        drawn = noise_before_a_kill(plant, n_before, partial(clf.fit, *records))
        assert not hasattr(clf, "parameters_")
        bounds = {r.noise_stddev: r.l2_sensitivity for r in clf.privacy_.releases}
        spent = math.fsum((bounds.get(s, np.inf) / s) ** 2 / 2 for s in drawn)
        assert spent <= clf.privacy_.rho == pytest.approx(3 * 2.0)


def test_30_a_crash_at_any_step_leaves_the_whole_cost_stated(records, plant):
    check_30(records, plant)


def test_30_notices_a_statement_made_at_the_end(records, plant):
    genuine = plant.genuine("fit of a network")

    def late(self, *data):
        before = getattr(self, "privacy_", None)
        try:
            return genuine(self, *data)
        except KilledError:
            self.privacy_ = before
            raise

    plant("fit of a network", late)
    with pytest.raises(AssertionError):
        check_30(records, plant)
