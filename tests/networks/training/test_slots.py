"""A fit tries its own compiled sum: a record counts alike in every slot of a batch."""

import tracemalloc
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from privfeat import DPSGDClassifier
from privfeat.audit.replay import replay_neighbours
from privfeat.core.sums.processes import current_team
from privfeat.estimation.inputs import check_users
from privfeat.exceptions import PrivacyError
from privfeat.networks.engine.choice import BatchSum, sum_of_batch
from privfeat.networks.engine.losses import cross_entropy
from privfeat.networks.engine.network import Network
from privfeat.networks.images.augment import Views
from privfeat.networks.training.federated import LocalTraining, whole_users
from privfeat.networks.training.units import (
    _adds_up,
    alike_microbatch,
    single_records,
)

X, Y = np.zeros((1, 5), np.float32), np.zeros(1, np.int32)
UNITS = single_records(X, Y, Views("none", 2), "fast")


@pytest.fixture
def network(small_mlp):
    return Network(small_mlp)


def sum_by(network, factor="abadi"):
    names = (*network.initial,)
    return sum_of_batch(
        network, BatchSum(cross_entropy, "flat", "fast", names, factor, exact=True)
    )


def size_for(network, batch_sum, team=None, size=8):
    team = team or current_team()
    return alike_microbatch(UNITS, batch_sum, size, team, network.initial, X, Y)


@pytest.mark.parametrize("factor", ["abadi", "global"])
def test_alike_microbatch_keeps_a_size_of_equal_slots(network, factor):
    assert size_for(network, sum_by(network, factor)) == 8


@pytest.mark.slow
@pytest.mark.parametrize("factor", ["abadi", "global"])
@pytest.mark.parametrize(
    "differs",
    [
        lambda valid: valid[-1],  # in the last slot
        lambda valid: ~valid[0] & valid[1],  # in the second, if the first is empty
    ],
)
def test_alike_microbatch_halves_where_one_slot_differs(network, factor, differs):
    genuine = sum_by(network, factor)

    def crooked(parameters, inputs, targets, valid, radius):
        found = genuine(parameters, inputs, targets, valid, radius)
        more = int(len(valid) > 1 and differs(np.asarray(valid)))
        return {name: leaf + more * (leaf != 0) for name, leaf in found.items()}

    assert size_for(network, crooked) == 1


def test_alike_microbatch_halves_to_the_largest_that_holds(network):
    genuine = sum_by(network)

    def crooked(parameters, inputs, targets, valid, radius):
        found = genuine(parameters, inputs, targets, valid, radius)
        more = int(valid[4]) if len(valid) > 4 else 0
        return {name: leaf + more for name, leaf in found.items()}

    assert size_for(network, crooked) == 4


def test_alike_microbatch_is_that_of_all_processes(network):
    found = iter([[True, False], [True, True]])
    same = []
    team = SimpleNamespace(
        size=2, each=lambda value: next(found), check_same=lambda *how: same.append(how)
    )
    assert size_for(network, sum_by(network), team) == 4
    assert len(same) == 1


@pytest.mark.parametrize("size", [1, 8])
def test_processes_compare_the_gradients_of_public_records(network, size):
    """A CPU of another kind may round in another way."""
    genuine, seen = sum_by(network), []

    def check_same(what, content):
        assert what == "gradients of a record, so CPUs of one kind"
        seen.append(content)

    def other(parameters, inputs, targets, valid, radius):
        found = genuine(parameters, inputs, targets, valid, radius)
        return {name: 2 * leaf for name, leaf in found.items()}

    team = SimpleNamespace(size=2, each=lambda value: [value], check_same=check_same)
    for batch_sum in (genuine, genuine, other):
        assert size_for(network, batch_sum, team, size) == size
    assert seen[0] == seen[1] != seen[2]
    # one of them may have trained such a network before, alone, from other weights
    further = {name: leaf + 1 for name, leaf in network.initial.items()}
    alike_microbatch(UNITS, genuine, size, team, further, X, Y)
    assert seen[3] != seen[0]


def test_alike_microbatch_refuses_devices_that_differ(network, monkeypatch):
    monkeypatch.setattr(jax, "local_device_count", lambda: 2)

    def crooked(parameters, inputs, targets, valid, radius):
        return {"": jnp.int32([7 * valid.sum() + valid[-1]])}

    with pytest.raises(PrivacyError, match="alike on all local devices"):
        size_for(network, crooked)


def test_alike_microbatch_tries_what_is_compiled_alike_once(network):
    """Fits of other records, and of users, find what an earlier one found."""
    calls = []
    clipped = sum_by(network)

    def counted(*given):
        calls.append(1)
        return clipped(*given)

    for n_copies in (1, 2):  # which have other shapes
        for _ in range(2):
            views = Views("none", n_copies)
            units = single_records(X, Y, lambda *how, views=views: views(*how), "fast")
            how = 8, current_team(), network.initial, X, Y
            assert alike_microbatch(units, counted, *how) == 8
            calls.append("fitted")
    of_fits = "".join(map(str, calls)).split("fitted")
    assert [bool(tried) for tried in of_fits] == [True, False, True, False, False]


def test_the_trial_of_a_sum_takes_few_bytes_of_a_parameter():
    draw, n = np.random.default_rng(0), 2**20 + 1
    own = [draw.integers(-9, 9, n, np.int32) for _ in range(16)]
    counts = np.arange(16)
    found = sum(count * each for count, each in zip(counts, own, strict=True))
    tracemalloc.start()
    assert _adds_up(found, counts, own)
    assert tracemalloc.get_traced_memory()[1] < 16 * n
    tracemalloc.stop()
    found[-1] += 1
    assert not _adds_up(found, counts, own)


def test_units_of_whole_users_have_the_shapes_of_a_fit():
    """So that the code that is tried is that which the fit runs."""
    draw = np.random.default_rng(0)
    records, labels = draw.normal(size=(6, 5)).astype(np.float32), np.arange(6) % 2
    users = check_users([0, 0, 0, 1, 1, 2], 3, 6, records)
    local = LocalTraining(3, 2, 2, 0.1)
    units = whole_users(records, labels, Views("none", 2), users, 1, local)
    numbers, key = np.arange(2), jax.random.key(0)
    prepared = units.prepare(units.records[numbers], numbers, key)
    inputs, targets = units.whole(records[:2], labels[:2], numbers, key)
    kinds = [
        jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), each)
        for each in ((prepared, units.targets[numbers]), (inputs, targets))
    ]
    assert kinds[0] == kinds[1]
    assert np.all(inputs.filled)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")
@pytest.mark.parametrize("size", [2, 4])
def test_a_convnet_moves_by_nothing_for_a_record_without_a_gradient(size):
    """Its kernels round the two slots of batches of 2 otherwise."""
    draw = np.random.default_rng(0)
    images = draw.normal(size=(40, 28, 28, 1)).astype(np.float32)
    labels = draw.integers(0, 10, 40)
    images[0] = 3e38  # overflows
    clf = DPSGDClassifier(
        model="sample_convnet",
        noise_multiplier=1.0,
        n_iter=1,
        expected_batch_size=None,
        classes=range(10),
        clip_norm=0.5,
        microbatch_size=size,
    )
    both = (images, labels), (images, labels)
    found = replay_neighbours(clf, *both, missing=np.arange(40) == 0)
    assert [movement.observed for movement in found.movements] == [0.0]
