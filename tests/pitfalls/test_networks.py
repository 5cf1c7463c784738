"""Full networks: rows 15, 22, 23, 29 and 30."""

import dataclasses
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from privfeat import DPSGDClassifier, load, save
from privfeat.core.noise import draws
from privfeat.core.noise.keys import KeyStream
from privfeat.networks import layers, model
from privfeat.networks.engine import clipped_sums
from privfeat.networks.engine import network as models
from privfeat.networks.engine.clipped_sums import clipped_sum, record_parts
from privfeat.networks.engine.losses import cross_entropy
from privfeat.networks.engine.network import Network
from privfeat.networks.layers import Dense, Norm, contributions
from privfeat.networks.layers.basic import FastEngineError
from privfeat.networks.training import loop
from privfeat.persistence import ModelFileError
from tests.networks.engine.test_clipped_sums import EveryLayer, Twice
from tests.pitfalls.conftest import Trap, replace_arrays

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")
UNOPTIMIZED = {"xla_backend_optimization_level": 0}


@pytest.fixture
def records():
    rng = np.random.default_rng(3)
    return rng.normal(size=(30, 5)), rng.integers(0, 3, 30)


def one_layer(shape, n_outputs, *, rngs):
    return nnx.Sequential(Dense(*shape, n_outputs, rngs=rngs))


def made(**options):
    given = {"model": one_layer, "noise_multiplier": 1.0, "classes": range(3)}
    given |= {"n_iter": 3, "expected_batch_size": 8, "random_state": 1}
    return DPSGDClassifier(**(given | {"microbatch_size": 4} | options))


def total(module, inputs, labels, how="fast", clip_norm=0.1):
    """Return the clipped sum of all parameters, as one vector."""
    network, n = Network(module), len(inputs)
    names = tuple(network.initial)
    parts = record_parts(network, cross_entropy, "flat", how, names)
    function = clipped_sum(parts)
    arguments = (network.initial, inputs, labels, jnp.ones(n, bool))
    lowered = function.lower(*arguments, jnp.float32(clip_norm))
    compiled = lowered.compile(compiler_options=UNOPTIMIZED)
    parts = compiled(*arguments, jnp.float32(clip_norm))
    return np.concatenate([np.ravel(parts[name]) for name in sorted(parts)])


def batch(shape=(4, 4, 1), n=3):
    rng = np.random.default_rng(7)
    inputs = jnp.asarray(rng.normal(size=(n, 1, *shape)), jnp.float32)
    return inputs, jnp.asarray(rng.integers(0, 4, n))


def made_of(cls):
    return cls(nnx.Rngs(params=jax.random.key(0)))


# 15 -- accumulation over smaller batches changed the gradient, or what was accounted


def check_15(spy, records):
    """The second size holds more records than there are."""
    found = []
    for size in (2, 32):
        spy.start()
        clf = made(microbatch_size=size).fit(*records)
        found.append((clf.privacy_, spy.calls[0].exact))
    (statement, exact), (other, of_one_batch) = found
    assert statement == other
    np.testing.assert_allclose(exact, of_one_batch, atol=1e-5)


def test_15_the_size_of_physical_batches_changes_nothing(spy, records):
    check_15(spy, records)


def test_15_notices_a_mean_over_each_physical_batch(spy, records, monkeypatch):
    sizes, batches, flatten = [], loop.physical_batches, loop.flatten

    def counted(drawn, microbatch_size):
        sizes.append(microbatch_size)
        return batches(drawn, microbatch_size)

    monkeypatch.setattr(loop, "physical_batches", counted)
    monkeypatch.setattr(
        loop, "flatten", lambda part, names: flatten(part, names) / sizes[-1]
    )
    with pytest.raises(AssertionError):
        check_15(spy, records)


def test_15_notices_steps_that_are_counted_in_physical_batches(
    spy, records, monkeypatch
):
    genuine = model.DPSGDModel._schedule

    def schedule(self, n_records):
        n_iter, batch_size = genuine(self, n_records)
        return n_iter, min(batch_size, float(self.microbatch_size))

    monkeypatch.setattr(model.DPSGDModel, "_schedule", schedule)
    with pytest.raises(AssertionError):
        check_15(spy, records)


# 22 -- fast clipping differed from the clipping of each record's own gradient


def check_22():
    """Rows, tables of bytes, convolutions, norms, many positions; shared: refused."""
    fast, slow = (
        total(made_of(EveryLayer), *batch(), how) for how in ("fast", "reference")
    )
    np.testing.assert_allclose(fast, slow, atol=1e-5 * np.abs(slow).max())
    with pytest.raises(FastEngineError):
        total(made_of(Twice), *batch((4,)))


@pytest.fixture
def gram_norms(monkeypatch):
    """Take every norm from Gram matrices, without slack for cancellation."""
    monkeypatch.setattr(contributions, "GRAM_SLACK", 0.0)
    monkeypatch.setattr(contributions, "_COST_OF_KEEPING", 10**9)


@pytest.mark.usefixtures("gram_norms")
def test_22_the_fast_engine_clips_the_gradient_of_each_record():
    check_22()


@pytest.mark.usefixtures("gram_norms")
def test_22_notices_a_norm_that_adds_up_positions_as_if_apart(monkeypatch):
    """As of layers whose inputs are sequences: no products of two positions."""

    def apart(a, e, weighted_sum):
        norms = jnp.sum(a**2, axis=2) * jnp.sum(e**2, axis=2)
        return contributions.Contribution(jnp.sum(norms, axis=1), weighted_sum)

    monkeypatch.setattr(contributions, "gram", apart)
    with pytest.raises(AssertionError):
        check_22()


def test_22_notices_a_shared_layer_of_which_one_use_counts(monkeypatch):
    monkeypatch.setattr(clipped_sums.Tape, "check_knows", lambda self, parameters: None)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        check_22()


# 23 -- layers that mix records (batch norm, routing) made one move the others' outputs


class Normed(nnx.Module):
    def __init__(self, rngs):
        self.norm = Norm(4, groups=2)
        self.head = Dense(4, 4, rngs=rngs)

    def __call__(self, x):
        return self.head(self.norm(x))


def check_23():
    inputs, labels = batch((4,), n=5)
    whole = total(made_of(Normed), inputs, labels)
    rest = total(made_of(Normed), inputs[1:], labels[1:])
    own = total(made_of(Normed), inputs[:1], labels[:1])
    np.testing.assert_allclose(whole - rest, own, atol=1e-5)
    with pytest.raises(ValueError, match="batch norm"):
        Network(nnx.Sequential(nnx.BatchNorm(4, rngs=nnx.Rngs(0))))


def test_23_records_do_not_touch_and_batch_norm_is_refused():
    check_23()


def test_23_notices_a_normalization_over_the_batch(monkeypatch):
    def normalized(self, x):
        centred = x - jnp.mean(x, axis=0, keepdims=True)
        normal = centred / (jnp.std(x, axis=0, keepdims=True) + self.epsilon)
        outputs = normal * self.scale[...][None] + self.bias[...][None]
        return layers.record(self, normal, outputs)

    monkeypatch.setattr(Norm, "__call__", normalized)
    with pytest.raises(AssertionError):
        check_23()


def test_23_notices_batch_norm_that_is_accepted(monkeypatch):
    monkeypatch.setattr(models, "refuse_shared_state", lambda module: None)
    with pytest.raises(pytest.fail.Exception):
        check_23()


# 29 -- training that went on reused noise, or lost its state


def check_29(records, monkeypatch):
    """Stopped after every step and continued from what is carried: bit for bit."""
    drawn, draw, step = [], KeyStream.draw, loop.Trainer.step
    draw_words = KeyStream.draw_words

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
    with monkeypatch.context() as patch:
        patch.setattr(KeyStream, "draw", counted)
        patch.setattr(KeyStream, "draw_words", counted_words)
        patch.setattr(loop.Trainer, "step", interrupted)
        parts = made(**options).fit(*records)
    assert len(set(drawn)) == len(drawn) >= 1 + 3 * 3  # batch, views and noise
    for name, leaf in whole.parameters_.items():
        np.testing.assert_array_equal(parts.parameters_[name], leaf, err_msg=name)


def resumed(state):
    """Return the state in new arrays: nothing of the old ones lives on."""
    return jax.tree.map(lambda leaf: np.array(leaf)[()], state)


def test_29_training_that_was_interrupted_ends_as_if_it_was_not(records, monkeypatch):
    check_29(records, monkeypatch)


def test_29_notices_an_optimizer_that_forgets(records, monkeypatch):
    genuine = resumed

    def forgetful(state):
        fresh = jax.tree.map(np.zeros_like, state.optimizer)
        return genuine(dataclasses.replace(state, optimizer=fresh))

    monkeypatch.setitem(globals(), "resumed", forgetful)
    with pytest.raises(AssertionError):
        check_29(records, monkeypatch)


def test_29_notices_draws_that_are_repeated(records, monkeypatch):
    genuine = loop.Trainer.step

    def rewound(self, *rest):
        self.keys._drawn = 1  # after the draw for the initial parameters
        return genuine(self, *rest)

    monkeypatch.setattr(loop.Trainer, "step", rewound)
    with pytest.raises(AssertionError):
        check_29(records, monkeypatch)


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


def test_29_a_saved_network_brings_no_seed_back_and_runs_no_code(records, tmp_path):
    check_29_saved(records, tmp_path)


def test_29_notices_a_network_that_is_unpickled(records, tmp_path, monkeypatch):
    genuine = np.load
    monkeypatch.setattr(np, "load", lambda file, **_: genuine(file, allow_pickle=True))
    with pytest.raises(AssertionError):
        check_29_saved(records, tmp_path)


# 30 -- what was spent was written down after training, so a crash under-reported


class KilledError(Exception):
    """Stands for a crash."""


def check_30(records, monkeypatch):
    clf, genuine = made(expected_batch_size=None).fit(*records), draws.gaussian
    clf.set_params(noise_multiplier=0.5)
    for n_before in (0, 2):
        left, drawn = itertools.count(n_before, -1), []

        def dying(key, shape, stddev, left=left, drawn=drawn):
            if next(left) == 0:
                raise KilledError
            drawn.append(stddev)
            return genuine(key, shape, stddev)

        with monkeypatch.context() as patch:
            patch.setattr(draws, "gaussian", dying)
            with pytest.raises(KilledError):
                clf.fit(*records)
        assert not hasattr(clf, "parameters_")
        bounds = {r.noise_stddev: r.l2_sensitivity for r in clf.privacy_.releases}
        spent = math.fsum((bounds.get(s, np.inf) / s) ** 2 / 2 for s in drawn)
        assert spent <= clf.privacy_.rho == pytest.approx(3 * 2.0)


def test_30_a_crash_at_any_step_leaves_the_whole_cost_stated(records, monkeypatch):
    check_30(records, monkeypatch)


def test_30_notices_a_statement_made_at_the_end(records, monkeypatch):
    genuine = loop.Trainer.run

    def late(self, *arguments):
        try:
            yield from genuine(self, *arguments)
        except KilledError:
            fitted[-1].privacy_ = before[-1]
            raise

    fitted, before, fit = [], [], DPSGDClassifier.fit

    def noted(self, *data):
        fitted.append(self)
        before.append(getattr(self, "privacy_", None))
        return fit(self, *data)

    monkeypatch.setattr(DPSGDClassifier, "fit", noted)
    monkeypatch.setattr(loop.Trainer, "run", late)
    with pytest.raises(AssertionError):
        check_30(records, monkeypatch)
