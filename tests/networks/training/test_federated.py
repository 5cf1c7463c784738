"""Users as units: what one of them can change, however many records they have."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from privfeat import DPSGDClassifier, DPSGDRegressor, PrivacyLedger
from privfeat.estimation.inputs import Users
from privfeat.networks.engine import clipped_sums
from privfeat.networks.engine.losses import cross_entropy
from privfeat.networks.engine.network import Network
from privfeat.networks.images.augment import Views
from privfeat.networks.layers import Dense
from privfeat.networks.training.federated import (
    LocalTraining,
    Slots,
    UserInputs,
    whole_users,
)
from privfeat.networks.training.loop import flatten
from tests.networks.tiny import TINY, UNOPTIMIZED

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")


def two_layers(shape, n_outputs, *, rngs):
    return nnx.Sequential(
        Dense(*shape, 6, rngs=rngs), jnp.tanh, Dense(6, n_outputs, rngs=rngs)
    )


SMALL = TINY | {
    "model": two_layers,
    "n_iter": 1,
    "expected_batch_size": None,
    "max_group_size": 3,
}


@pytest.fixture
def records():
    """Ten users of one to five records each, in any order."""
    draw = np.random.default_rng(3)
    users = draw.permutation(np.repeat(np.arange(10), [1, 2, 3, 4, 5] * 2))
    return draw.normal(size=(30, 5)), draw.integers(0, 3, 30), users


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
        return flatten(compiled[rule](*arguments), tuple(network.initial)) / 0.25

    return compute


@pytest.fixture
def others(records):
    """Return the data of everybody, with one more user of such records."""
    X, y, users = records

    def join(more, labels):
        n_more = np.full(len(labels), 10)
        return np.vstack([X, more]), np.append(y, labels), np.append(users, n_more)

    return join


def norm_of(vectors):
    return max(float(np.linalg.norm(vector)) for vector in vectors)


def test_one_record_and_one_step_of_rate_one_are_a_step_of_dp_sgd(records, released):
    X, y, _ = records
    one = {"max_group_size": 1, "local_learning_rate": 1.0}
    DPSGDClassifier(**SMALL | one).fit(X, y, np.arange(30))
    DPSGDClassifier(**SMALL | {"max_group_size": None}).fit(X, y)
    np.testing.assert_allclose(*released, atol=1e-5)


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


@pytest.mark.parametrize("style", ["flat", "layerwise"])
@pytest.mark.parametrize("factor", ["abadi", "normalize"])
def test_one_user_moves_the_sum_by_at_most_its_sensitivity(
    exact_sum, records, others, style, factor
):
    """Users of any number of records, of any size, who are there, or not, or others."""
    rule = {"style": style, "factor": factor}
    without, sums = exact_sum(*records, **rule), []
    for size, n_records in ((1e3, 1), (1e3, 7), (-1e3, 7), (1.0, 3), (1e-3, 2)):
        more = np.full((n_records, 5), size), np.arange(n_records) % 2
        sums.append(exact_sum(*others(*more), **rule))
    added = [exact - without for exact in sums]
    assert norm_of(added) <= 1.0 + 1e-6
    assert norm_of(added) > 0.7
    gaps = [one - other for one in sums for other in sums]
    assert 1.0 < norm_of(gaps) <= 2.0 + 1e-6


def test_updates_that_are_not_clipped_break_the_bound(
    exact_sum, records, others, monkeypatch
):
    """The test above notices a factor that does nothing."""
    monkeypatch.setattr(
        clipped_sums, "clip_factors", lambda norms, *_: jnp.ones_like(norms)
    )
    more = others(np.full((7, 5), 1e3), np.zeros(7, int))
    assert norm_of([exact_sum(*more) - exact_sum(*records)]) > 2.0


def test_users_count_by_their_own_records_alone(exact_sum, records, others):
    """Whatever another one holds; not at all, if their update is not finite."""
    without = exact_sum(*records)
    for value in (np.nan, np.inf):
        more = np.ones((2, 5)), np.zeros(2, int)
        assert norm_of([exact_sum(*others(*more)) - without]) > 0.1
        more[0][0, 1] = value
        np.testing.assert_array_equal(exact_sum(*others(*more)), without)


def test_slots_filled_with_the_records_of_another_would_be_noticed(
    exact_sum, records, others, monkeypatch
):
    genuine = Slots.records

    def of_anybody(self, users):
        return np.where(self.filled(users), genuine(self, users), 30)

    monkeypatch.setattr(Slots, "records", of_anybody)
    ones = exact_sum(*others(np.ones((1, 5)), [0]))
    assert norm_of([exact_sum(*others(np.full((1, 5), np.nan), [0])) - ones]) > 1.1


def test_at_most_so_many_records_of_a_user_count(records):
    _, _, users = records
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


def test_epochs_have_orders_of_their_own_and_empty_slots_come_last(records):
    _, _, users = records
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


def test_the_statement_is_of_users(records):
    X, y, users = records
    params = SMALL | {"expected_batch_size": 4, "n_iter": None, "epochs": 2}
    statement = DPSGDClassifier(**params).fit(X, y, users).privacy_
    (release,) = statement.releases
    assert statement.unit == "user"
    assert release.sampling_prob == 0.4
    assert release.count == 5  # of ten users, four at a time, twice
    assert release.l2_sensitivity == pytest.approx(1.0, rel=1e-5)
    assert "that of a user's records at most 3 count" in statement.public
    assert not any("number of records" in fact for fact in statement.public)
    # as of ten records, each protected on its own
    single = params | {"max_group_size": None}
    alone = DPSGDClassifier(**single).fit(X[:10], y[:10]).privacy_
    assert statement.epsilon == alone.epsilon
    replaced = params | {"adjacency": "replace_one", "expected_batch_size": None}
    statement = DPSGDClassifier(**replaced).fit(X, y, users).privacy_
    assert statement.releases[0].l2_sensitivity == pytest.approx(2.0, rel=1e-5)


def test_fits_of_users_are_charged_to_budgets_of_users(records, tmp_path):
    params = SMALL | {"random_state": None, "noise_multiplier": 2.0}
    ledgers = [
        PrivacyLedger(
            tmp_path / "x.ledger", dataset=unit, epsilon=9, delta=1e-5, unit=unit
        )
        for unit in ("user", "record")
    ]
    clf = DPSGDClassifier(**params, ledger=ledgers[0]).fit(*records)
    assert [charge.statement for charge in ledgers[0].history] == [clf.privacy_]
    with pytest.raises(ValueError, match="unit must be 'record'"):
        clf.set_params(ledger=ledgers[1]).fit(*records)


def test_the_default_is_the_mean_of_the_updates(records, released):
    params = SMALL | {"noise_multiplier": None, "epsilon": np.inf, "local_epochs": 2}
    frozen = DPSGDClassifier(**params | {"learning_rate": 1e-30}).fit(*records)
    clf = DPSGDClassifier(**params).fit(*records)
    names = list(clf.parameters_)
    moved = [frozen.parameters_[n] - clf.parameters_[n] for n in names]
    mean = released[1] / 10 * 2.0**60
    np.testing.assert_allclose(
        np.concatenate([m.ravel() for m in moved]), mean, 0, 1e-6
    )


@pytest.mark.parametrize(
    "params",
    [
        {"clipping": "adaptive", "clip_style": "layerwise", "local_epochs": 2},
        {"augmentation": "crop_flip", "n_copies": 2, "frozen": ("layers/0",)},
        {"optimizer": "adam", "ema_decay": 0.9, "local_batch_size": 2},
    ],
)
def test_the_other_parameters_work_with_groups(records, released, params):
    _, y, users = records
    images = np.random.default_rng(0).integers(0, 256, (30, 4, 4, 1), np.uint8)

    def model(shape, n_outputs, *, rngs):
        flat = two_layers((16,), n_outputs, rngs=rngs)
        return nnx.Sequential(lambda x: x.reshape(len(x), -1), *flat.layers)

    clf = DPSGDClassifier(**SMALL | {"model": model, "n_iter": 2} | params)
    clf.fit(images, y, users)
    assert norm_of(released) <= 10.0
    assert all(np.all(np.isfinite(leaf)) for leaf in clf.parameters_.values())


@pytest.mark.slow
def test_users_teach_a_regressor():
    draw = np.random.default_rng(0)
    X = draw.uniform(-1, 1, (900, 3))
    y, users = X @ [0.5, -0.3, 0.1], np.arange(900) // 3
    model = DPSGDRegressor(
        model=two_layers, noise_multiplier=0.5, n_iter=30, expected_batch_size=150,
        max_group_size=3, local_epochs=5, local_batch_size=1, local_learning_rate=0.1,
    ).fit(X, y, users)  # fmt: skip
    assert model.score(X, y) > 0.7


@pytest.mark.parametrize(
    "params",
    [
        {name: value}
        for name in (
            "max_group_size", "local_epochs", "local_batch_size", "local_learning_rate"
        )
        for value in (np.nan, -1, 0, True, "x")
    ]
    + [
        {"max_group_size": None}, {"engine": "fast"}, {"optimizer": "sgld"},
        {"expected_batch_size": 11},
    ],
)  # fmt: skip
def test_what_does_not_go_with_groups_is_refused(records, released, params):
    with pytest.raises((TypeError, ValueError)):
        DPSGDClassifier(**SMALL | params).fit(*records)
    assert not released


def test_local_training_without_groups_is_refused(records, released):
    X, y, _ = records
    with pytest.raises(ValueError, match="groups must be given"):
        DPSGDClassifier(**SMALL).fit(X, y)
    params = SMALL | {"max_group_size": None, "local_epochs": 2}
    with pytest.raises(ValueError, match="max_group_size must be given"):
        DPSGDClassifier(**params).fit(X, y)
    assert not released
