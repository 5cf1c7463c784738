"""Networks that keep records apart, and show their layers rows in another order."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from privfeat import DPSGDClassifier
from privfeat.audit import replay
from privfeat.networks.engine.choice import check_rows, choose_engine
from privfeat.networks.engine.clipped_sums import dry_run
from privfeat.networks.engine.losses import cross_entropy
from privfeat.networks.engine.network import Network, check_separate
from privfeat.networks.layers import Dense, Embed
from privfeat.networks.layers.basic import FastEngineError
from tests.combinations import few

WIDTH = 6


class Ordered(nnx.Module):
    """Two dense layers on pairs of features, in an order of rows."""

    def __init__(self, n_outputs, *, rngs):
        self.hidden = Dense(2, 5, rngs=rngs)
        self.head = Dense(5, n_outputs, rngs=rngs)

    def pairs(self, x):
        return jax.nn.relu(self.hidden(x))


class RecordsFirst(Ordered):
    """Rows of a record side by side: what the fast engine takes all networks for."""

    def __call__(self, x):
        rows = self.pairs(x.reshape(-1, 2))
        return self.head(jnp.mean(rows.reshape(len(x), -1, 5), axis=1))


class ViewsFirst(Ordered):
    def __call__(self, x):
        rows = self.pairs(jnp.concatenate([x[:, :2], x[:, 2:4], x[:, 4:]]))
        return self.head(jnp.mean(rows.reshape(-1, len(x), 5), axis=0))


class PositionsFirst(Ordered):
    def __call__(self, x):
        rows = self.pairs(jnp.swapaxes(x.reshape(len(x), -1, 2), 0, 1))
        return self.head(jnp.mean(rows, axis=0))


class OtherWayRound(Ordered):
    def __call__(self, x):
        rows = self.pairs(x[::-1].reshape(len(x), -1, 2))
        return self.head(jnp.mean(rows, axis=1))[::-1]


class Table(Ordered):
    """A table that is read once for all records, before a layer that starts at zero."""

    def __init__(self, n_outputs, *, n_rows=4, rngs):
        super().__init__(n_outputs, rngs=rngs)
        self.table = Embed(n_rows, 5, rngs=rngs)
        self.head.kernel[...] *= 0.0

    def __call__(self, x):
        rows = self.pairs(x.reshape(len(x), -1, 2))
        shared = self.table(jnp.arange(self.table.table.shape[0]))
        shared = jnp.sum(jax.nn.relu(shared), axis=0, keepdims=True)
        return self.head(jnp.mean(rows, axis=1) + shared)


def odd_table(n_outputs, *, rngs):
    return Table(n_outputs, n_rows=3, rngs=rngs)


class Tied(nnx.Module):
    """A parameter of two layers, or of a layer and the network."""

    def __init__(self, layers, *, rngs):
        self.first = Dense(WIDTH, WIDTH, rngs=rngs)
        self.second = Dense(WIDTH, WIDTH, rngs=rngs) if layers else nnx.data(None)
        if layers:
            self.second.kernel = self.first.kernel

    def __call__(self, x):
        x = jnp.tanh(self.first(x))
        return self.second(x) if self.second else x @ self.first.kernel[...].T


class Half(nnx.Module):
    """Inputs of half precision for a layer of full, or parameters of half."""

    def __init__(self, n_inputs, n_outputs, dtype, *, rngs):
        self.layer = Dense(n_inputs, n_outputs, use_bias=False, rngs=rngs)
        self.layer.kernel[...] = self.layer.kernel[...].astype(dtype)

    def __call__(self, x):
        with jax.numpy_dtype_promotion("standard"):
            return self.layer(x.astype(jnp.float16)).astype(jnp.float32)


UNORDERED = [PositionsFirst, OtherWayRound, Table, ViewsFirst, odd_table]
RECORD = np.zeros((1, WIDTH), np.float32)


@pytest.mark.parametrize("make", few(3, UNORDERED))
def test_fast_engine_refuses_rows_in_another_order(make, rngs):
    network = Network(make(3, rngs=rngs))
    check_separate(network, (WIDTH,))
    with pytest.raises(FastEngineError, match="side by side"):
        check_rows(network, cross_entropy, RECORD, np.zeros(1, np.int32))


def test_fast_engine_takes_rows_of_a_record_side_by_side(rngs):
    network = Network(RecordsFirst(3, rngs=rngs))
    check_rows(network, cross_entropy, RECORD, np.zeros(1, np.int32))


@pytest.mark.parametrize("layers", [True, False])
def test_fast_engine_refuses_parameters_that_are_used_elsewhere(layers, rngs):
    network = Network(Tied(layers, rngs=rngs))
    with pytest.raises(FastEngineError, match="one layer alone"):
        check_rows(network, cross_entropy, RECORD, np.zeros(1, np.int32))


class Understated(Dense):
    """A layer of a user, who forgot a factor of the norm."""

    def contributions(self, a, e):
        found = super().contributions(a, e)
        kernel = found["kernel"]
        small = kernel._replace(squared_norms=0.1 * kernel.squared_norms)
        return found | {"kernel": small}


def test_fast_engine_refuses_a_layer_that_understates_a_norm(rngs):
    network = Network(Understated(WIDTH, 3, use_bias=False, rngs=rngs))
    with pytest.raises(FastEngineError, match="norm of a record's gradient in full"):
        check_rows(network, cross_entropy, RECORD, np.zeros(1, np.int32))


def test_engine_is_chosen_by_the_trial(rngs):
    network = Network(ViewsFirst(3, rngs=rngs))
    tape = dry_run(network, RECORD)

    def trial():
        check_rows(network, cross_entropy, RECORD, np.zeros(1, np.int32))

    assert choose_engine("auto", network, tape, trial) == "reference"
    assert choose_engine("reference", network, tape, trial) == "reference"
    with pytest.raises(FastEngineError):
        choose_engine("fast", network, tape, trial)


@pytest.mark.parametrize("make", few(1, [PositionsFirst, ViewsFirst]))
def test_sum_of_a_network_with_rows_in_another_order_moves_by_its_sensitivity(make):
    """With the fast engine, which was chosen once, it moves up to five times as far."""

    def model(shape, n_outputs, *, rngs):
        return make(n_outputs, rngs=rngs)

    draw = np.random.default_rng(3)
    X = draw.normal(size=(8, WIDTH)) * np.repeat([1.0, 100.0], 4)[:, None]
    clf = DPSGDClassifier(
        model=model,
        noise_multiplier=1.0,
        classes=range(3),
        n_iter=2,
        expected_batch_size=None,
        microbatch_size=8,
        clip_norm=0.01,
    )
    assert replay(clf, X, draw.integers(0, 3, 8), record=2).ok
    with pytest.raises(FastEngineError, match="side by side"):
        clf.set_params(engine="fast", trust_model=True).fit(X, draw.integers(0, 3, 8))


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["fast", "reference"])
@pytest.mark.parametrize("dtype", [jnp.float16, jnp.float32])
def test_sum_of_a_network_of_half_precision_moves_by_its_sensitivity(dtype, engine):
    """Squares of these numbers are zero in half precision, their norm is not."""

    def model(shape, n_outputs, *, rngs):
        return Half(shape[0], n_outputs, dtype, rngs=rngs)

    clf = DPSGDClassifier(
        model=model,
        engine=engine,
        trust_model=True,
        noise_multiplier=1.0,
        classes=range(2),
        n_iter=1,
        expected_batch_size=None,
        microbatch_size=4,
        clip_norm=1e-4,
    )
    assert replay(clf, np.full((4, 2**14), 1e-4), np.arange(4) % 2, record=2).ok
