"""How a network sums gradients: rows 15, 22 and 23."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from privfeat.core.sums.batches import UNIT
from privfeat.networks.engine.clipped_sums import clipped_sum, record_parts
from privfeat.networks.engine.losses import cross_entropy
from privfeat.networks.engine.network import Network
from privfeat.networks.layers import Dense, Norm, contributions
from privfeat.networks.layers.basic import FastEngineError, record
from tests.networks.engine.modules import EveryLayer, Twice
from tests.pitfalls.tiny import made

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")
UNOPTIMIZED = {"xla_backend_optimization_level": 0}


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
    whole = np.concatenate([np.ravel(parts[name]) for name in sorted(parts)])
    return whole * (clip_norm * UNIT)


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


def test_15_notices_a_mean_over_each_physical_batch(spy, records, plant):
    sizes, batches = [], plant.genuine("batches that fit into memory")
    flatten = plant.genuine("sum of a batch as one vector")

    def counted(drawn, microbatch_size):
        sizes.append(microbatch_size)
        return batches(drawn, microbatch_size)

    plant("batches that fit into memory", counted)
    plant(
        "sum of a batch as one vector",
        lambda part, names: flatten(part, names) // sizes[-1],
    )
    with pytest.raises(AssertionError):
        check_15(spy, records)


def test_15_notices_steps_that_are_counted_in_physical_batches(spy, records, plant):
    genuine = plant.genuine("schedule of training")

    def schedule(self, n_records):
        n_iter, batch_size = genuine(self, n_records)
        return n_iter, min(batch_size, float(self.microbatch_size))

    plant("schedule of training", schedule)
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
def gram_norms(plant):
    """Take every norm from Gram matrices, without slack for cancellation."""
    plant("slack for cancellation", 0.0)
    plant("cost of keeping gradients", 10**9)


@pytest.mark.usefixtures("gram_norms")
def test_22_the_fast_engine_clips_the_gradient_of_each_record():
    check_22()


@pytest.mark.usefixtures("gram_norms")
def test_22_notices_a_norm_that_adds_up_positions_as_if_apart(plant):
    """As of layers whose inputs are sequences: no products of two positions."""

    def apart(a, e, weighted_sum):
        norms = jnp.sum(a**2, axis=2) * jnp.sum(e**2, axis=2)
        return contributions.Contribution(jnp.sum(norms, axis=1), weighted_sum)

    plant("norm by Gram matrices", apart)
    with pytest.raises(AssertionError):
        check_22()


def test_22_notices_a_shared_layer_of_which_one_use_counts(plant):
    plant("layers that the engine knows", lambda self, parameters: None)
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


def test_23_notices_a_normalization_over_the_batch(plant):
    def normalized(self, x):
        centred = x - jnp.mean(x, axis=0, keepdims=True)
        normal = centred / (jnp.std(x, axis=0, keepdims=True) + self.epsilon)
        outputs = normal * self.scale[...][None] + self.bias[...][None]
        return record(self, normal, outputs)

    plant("output of a norm layer", normalized)
    with pytest.raises(AssertionError):
        check_23()


def test_23_notices_batch_norm_that_is_accepted(plant):
    plant("refusal of shared state", lambda module: None)
    with pytest.raises(pytest.fail.Exception):
        check_23()
