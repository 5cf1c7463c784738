"""Users as units: what one of them can change, however many records they have."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from privfeat import DPSGDClassifier
from privfeat.core.sums.batches import UNIT
from privfeat.estimation.inputs import Users
from privfeat.networks.engine import clipped_sums
from privfeat.networks.engine.losses import cross_entropy
from privfeat.networks.engine.network import Network
from privfeat.networks.images.augment import Views
from privfeat.networks.training.federated import (
    LocalTraining,
    Slots,
    UserInputs,
    whole_users,
)
from privfeat.networks.training.loop import flatten
from tests.networks.tiny import UNOPTIMIZED
from tests.networks.training.users import SMALL, norm_of, two_layers

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")


@pytest.fixture
def network(rngs):
    return Network(two_layers((5,), 3, rngs=rngs))


@pytest.fixture
def exact_sum(network):
    """Return the sum that a step would release of all users, in units of the clip."""
    local = LocalTraining(3, epochs=2, batch_size=2, learning_rate=0.5)
    numbers, views = np.arange(12), Views("none", 1)
    compiled = {}

    def compute(X, y, users, *, style="flat", factor="abadi"):
        rows = np.asarray(X, np.float32)
        units = whole_users(rows, np.asarray(y), views, Users(users, 3), 5, local)
        present = np.minimum(numbers, units.n_units - 1)
        inputs = units.prepare(units.records[present], present, jax.random.key(1))
        targets = jnp.asarray(units.targets[present])
        valid = jnp.asarray(numbers < units.n_units)
        rule = factor, style
        arguments = network.initial, inputs, targets, valid, jnp.float32(0.25)
        if rule not in compiled:
            names = tuple(network.initial)
            parts = clipped_sums.record_parts(
                network, cross_entropy, style, local, names
            )
            function = clipped_sums.clipped_sum(parts, factor)
            lowered = function.lower(*arguments)
            compiled[rule] = lowered.compile(compiler_options=UNOPTIMIZED)
        return flatten(compiled[rule](*arguments), tuple(network.initial)) * UNIT

    return compute


@pytest.fixture
def others(of_users):
    """Return the data of everybody, with one more user of such records."""
    X, y, users = of_users

    def join(more, labels):
        n_more = np.full(len(labels), 10)
        return np.vstack([X, more]), np.append(y, labels), np.append(users, n_more)

    return join


@pytest.mark.slow
def test_one_record_and_one_step_of_rate_one_are_a_step_of_dp_sgd(of_users, released):
    X, y, _ = of_users
    one = {"max_group_size": 1, "local_learning_rate": 1.0}
    DPSGDClassifier(**SMALL | one).fit(X, y, np.arange(30))
    DPSGDClassifier(**SMALL | {"max_group_size": None}).fit(X, y)
    np.testing.assert_allclose(*released, atol=1e-5)


@pytest.mark.slow
def test_updates_are_those_of_a_loop_over_users_epochs_and_batches(network):
    draw = np.random.default_rng(0)
    views = jnp.asarray(draw.normal(size=(2, 4, 2, 5)), jnp.float32)
    targets = jnp.asarray(draw.integers(0, 3, (2, 4)))
    filled = jnp.array([[True] * 4, [True] * 3 + [False]])
    orders = jnp.array([[[0, 3], [1, 2], [2, 3], [1, 0]], [[1, 2], [0, 3]] * 2])
    local = LocalTraining(4, epochs=2, batch_size=2, learning_rate=0.5)
    names = tuple(network.initial)
    parts = clipped_sums.record_parts(network, cross_entropy, "flat", local, names)
    inputs = UserInputs(views, filled, orders)
    terms = parts(network.initial, inputs, targets, jnp.ones(2, bool)).found

    @jax.jit
    @jax.grad
    def record_gradient(parameters, views, target):
        scores = network(parameters, views)
        return jnp.mean(cross_entropy(scores, target.repeat(2)))

    for user, steps in enumerate(orders.tolist()):
        parameters = dict(network.initial)
        for slots in steps:
            gradients = [
                record_gradient(parameters, views[user, slot], targets[user, slot])
                for slot in slots
                if filled[user, slot]
            ]
            parameters = {
                name: value - 0.5 * np.mean([own[name] for own in gradients], axis=0)
                for name, value in parameters.items()
            }
        for name, start in network.initial.items():
            lost = start - parameters[name]
            found = terms[name].weighted_sum(jnp.eye(2)[user])
            np.testing.assert_allclose(found, lost, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("style", ["flat", "layerwise"])
@pytest.mark.parametrize("factor", ["abadi", "normalize"])
def test_one_user_moves_the_sum_by_at_most_its_sensitivity(
    exact_sum, of_users, others, style, factor
):
    """Users of any number of records, of any size, who are there, or not, or others."""
    rule = {"style": style, "factor": factor}
    without, sums = exact_sum(*of_users, **rule), []
    for size, n_records in ((1e3, 1), (1e3, 7), (-1e3, 7), (1.0, 3), (1e-3, 2)):
        more = np.full((n_records, 5), size), np.arange(n_records) % 2
        sums.append(exact_sum(*others(*more), **rule))
    added = [exact - without for exact in sums]
    assert norm_of(added) <= 1.0 + 1e-6
    assert norm_of(added) > 0.7
    gaps = [one - other for one in sums for other in sums]
    assert 1.0 < norm_of(gaps) <= 2.0 + 1e-6


@pytest.mark.slow
def test_updates_that_are_not_clipped_break_the_bound(
    exact_sum, of_users, others, plant
):
    """The test above notices a factor that does nothing."""
    plant("factors of the clip", lambda norms, *_: jnp.ones_like(norms))
    more = others(np.full((7, 5), 1e3), np.zeros(7, int))
    assert norm_of([exact_sum(*more) - exact_sum(*of_users)]) > 2.0


def test_users_count_by_their_own_records_alone(exact_sum, of_users, others):
    """Whatever another one holds; not at all, if their update is not finite."""
    without = exact_sum(*of_users)
    for value in (np.nan, np.inf):
        more = np.ones((2, 5)), np.zeros(2, int)
        assert norm_of([exact_sum(*others(*more)) - without]) > 0.1
        more[0][0, 1] = value
        np.testing.assert_array_equal(exact_sum(*others(*more)), without)


def test_slots_filled_with_the_records_of_another_would_be_noticed(
    exact_sum, of_users, others, plant
):
    genuine = plant.genuine("records of a user")

    def of_anybody(self, users):
        return np.where(self.filled(users), genuine(self, users), 30)

    plant("records of a user", of_anybody)
    ones = exact_sum(*others(np.ones((1, 5)), [0]))
    assert norm_of([exact_sum(*others(np.full((1, 5), np.nan), [0])) - ones]) > 1.1


def test_at_most_so_many_records_of_a_user_count(of_users):
    _, _, users = of_users
    slots = Slots(Users(users, 3), 7, 4)
    everyone = np.arange(len(slots))
    filled, places = slots.filled(everyone), slots.records(everyone)
    assert filled.shape == places.shape == (10, 4)
    assert filled.sum(axis=1).tolist() == [1, 2, 3, 3, 3] * 2
    # what fills the other slots is of the same user as well
    assert np.array_equal(users[places], np.repeat(everyone[:, None], 4, axis=1))
    held = places[filled]
    assert len(set(held.tolist())) == len(held)
    drawn = [set(Slots(Users(users, 3), key, 3).records([4])[0]) for key in range(9)]
    assert len(set.union(*drawn)) == 5  # every record of a user may be among them


def test_epochs_have_orders_of_their_own_and_empty_slots_come_last(of_users):
    _, _, users = of_users
    local = LocalTraining(5, epochs=3, batch_size=2, learning_rate=1.0)
    slots = Slots(Users(users, 5), 7, 6)
    filled = slots.filled(np.arange(10))
    orders = np.asarray(local.orders(jax.random.key(0), np.arange(10), filled))
    assert orders.shape == (10, 9, 2)
    for own, n_records in zip(
        orders.reshape(10, 3, 6), filled.sum(axis=1), strict=True
    ):
        assert np.array_equal(np.sort(own), np.tile(np.arange(6), (3, 1)))
        assert np.array_equal(np.sort(own[:, :n_records])[0], np.arange(n_records))
    assert len({own.tobytes() for own in orders[4].reshape(3, 6)}) > 1
    assert not np.array_equal(orders[4], orders[9])  # two users of five records


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_updates_of_any_network_are_summed_in_float32(dtype):
    """One in half precision ended each fit for users, when it was charged."""
    linear = nnx.Linear(3, 2, param_dtype=dtype, dtype=dtype, rngs=nnx.Rngs(0))
    network, local = Network(linear), LocalTraining(2, 1, 2, 0.5)
    parts = clipped_sums.record_parts(
        network, cross_entropy, "flat", local, ("kernel", "bias")
    )
    slots = jnp.ones((4, 2), bool), jnp.zeros((4, 1, 2), int)
    found = jax.eval_shape(
        clipped_sums.clipped_sum(parts, exact=False),
        network.initial,
        UserInputs(jnp.ones((4, 2, 1, 3)), *slots),
        jnp.zeros((4, 2), int),
        jnp.ones(4, bool),
        jnp.float32(1.0),
    )
    assert (found["kernel"].shape, found["kernel"].dtype) == ((3, 2), np.float32)
