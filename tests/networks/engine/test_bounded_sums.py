"""What counts in a clipped sum, and which layers are refused."""

import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from privfeat.networks.engine.clipped_sums import dry_run
from privfeat.networks.engine.clipping import CLIP_FACTORS, clip_factors
from privfeat.networks.engine.network import Network
from privfeat.networks.layers import Dense, contributions
from privfeat.networks.layers.basic import FastEngineError
from tests.networks.engine.modules import EveryLayer, Plain, Twice, assert_same


def test_frozen_parameters_get_no_gradient_and_do_not_count(
    small_mlp, make_batch, sum_of
):
    batch = make_batch((5,))
    frozen = frozenset(n for n in Network(small_mlp).initial if "layers/1" not in n)
    sums = [sum_of(small_mlp, batch, e, frozen=frozen) for e in ("fast", "reference")]
    assert sorted(sums[0]) == ["layers/1/bias", "layers/1/kernel"]
    assert_same(*sums)


@pytest.mark.parametrize("engine", ["fast", "reference"])
def test_empty_slots_do_not_count(engine, small_mlp, make_batch, sum_of):
    inputs, labels = make_batch((5,))
    filled = inputs.at[2].set(jnp.nan)
    padded = sum_of(small_mlp, (filled, labels), engine, valid=[True, True, False])
    assert_same(padded, sum_of(small_mlp, (inputs[:2], labels[:2]), engine))


@pytest.mark.parametrize("engine", ["fast", "reference"])
@pytest.mark.parametrize("value", [np.nan, np.inf, 3e38])
def test_record_that_overflows_is_left_out(engine, value, rngs, make_batch, sum_of):
    module, (inputs, labels) = EveryDense(rngs), make_batch((4, 5))
    spoilt = inputs.at[1].set(value)
    total = sum_of(module, (spoilt, labels), engine)
    others = sum_of(module, (inputs[::2], labels[::2]), engine)
    assert_same(total, others)


class EveryDense(nnx.Module):
    """Dense layers with and without positions, and nothing that bounds values."""

    def __init__(self, rngs):
        self.hidden = Dense(5, 6, rngs=rngs)
        self.head = Dense(6, 4, rngs=rngs)

    def __call__(self, x):
        return self.head(jnp.mean(jnp.square(self.hidden(x)), axis=1))


@pytest.mark.slow
def test_slack_only_lowers_what_a_record_counts(
    rngs, make_batch, sum_of, norm_of, plant
):
    module, batch = EveryLayer(rngs), make_batch((4, 4, 1), n=1)
    with_slack = norm_of(sum_of(module, batch, "fast", clip_norm=1e-3))
    plant("slack for cancellation", 0.0)
    without = norm_of(sum_of(module, batch, "fast", clip_norm=1e-3))
    assert 0.999 * without < with_slack < without <= 1e-3


@pytest.mark.parametrize(("n_positions", "n_inputs"), [(1, 4), (2, 100)])
@pytest.mark.parametrize("factor", CLIP_FACTORS)
def test_numbers_whose_squares_are_flushed_to_zero_are_bounded(
    n_positions, n_inputs, factor
):
    """Cotangents below the root of the smallest float32 beside huge inputs."""
    a = jnp.zeros((1, n_positions, n_inputs)).at[..., 0].set(1.5e19)
    e = jnp.full((1, n_positions, 1000), 1e-19)
    found = contributions.dense(a, e)
    norm = jnp.sqrt(found.squared_norms + found.slack)
    total = found.weighted_sum(clip_factors(norm, 1.0, factor))
    assert float(jnp.linalg.norm(found.weighted_sum(jnp.ones(1)))) > 40.0
    assert float(jnp.linalg.norm(total)) <= 1.0


def test_normalize_does_not_enlarge_what_it_cannot_measure():
    a = jnp.full((1, 1, 100), 100.0)
    e = jnp.full((1, 1, 1000), 5e-20).at[0, 0, 0].set(4e-19)
    found = contributions.dense(a, e)
    total = found.weighted_sum(
        clip_factors(jnp.sqrt(found.squared_norms), 1.0, "normalize")
    )
    assert np.linalg.norm(np.asarray(total, np.float64)) <= 1.0


@pytest.mark.slow
def test_records_do_not_touch_each_other(rngs, make_batch, sum_of):
    """The sum over a batch is the sum over its records alone."""
    module, (inputs, labels) = EveryLayer(rngs), make_batch((4, 4, 1), n=3)
    whole = sum_of(module, (inputs, labels), "fast")
    alone = [
        sum_of(module, (inputs[i : i + 1], labels[i : i + 1]), "fast") for i in range(3)
    ]
    assert_same(whole, {name: sum(part[name] for part in alone) for name in whole})


def test_fast_engine_refuses_layers_it_does_not_know(rngs, make_batch, sum_of):
    with pytest.raises(FastEngineError, match="of another layer"):
        sum_of(Plain(rngs), make_batch((5,)), "fast")


def test_fast_engine_refuses_a_layer_that_is_used_twice(rngs, make_batch, sum_of):
    with pytest.raises(FastEngineError, match="'layer' twice"):
        sum_of(Twice(rngs), make_batch((4,)), "fast")
    with pytest.raises(FastEngineError, match="used once"):
        dry_run(Network(Twice(rngs)), jnp.zeros((1, 4))).check_knows([])


def test_batch_norm_is_refused_by_name(rngs):
    module = nnx.Sequential(nnx.Linear(4, 4, rngs=rngs), nnx.BatchNorm(4, rngs=rngs))
    with pytest.raises(ValueError, match="batch norm 'layers/1'"):
        Network(module)


def test_random_state_is_refused_by_name(rngs):
    module = nnx.Sequential(nnx.Dropout(0.5, rngs=nnx.Rngs(0)))
    with pytest.raises(ValueError, match="nothing but parameters"):
        Network(module)
