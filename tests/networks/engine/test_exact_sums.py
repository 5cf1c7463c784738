"""Batch sums are free of rounding: a record moves them by what is its own, bit for bit.

Sums in float32 are not, and records can be chosen such that one of 4,097 moves them by
more than a clip norm.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from privfeat import DPSGDClassifier
from privfeat.audit.replay import replay_neighbours
from privfeat.core.sums.batches import LARGEST_BATCH, UNIT, BatchTotal, on_grid
from privfeat.networks.engine.clipping import CLIP_STYLES, clip_factors
from privfeat.networks.layers import contributions
from privfeat.networks.training.loop import physical_batches
from privfeat.networks.training.units import fitting_microbatch
from tests.combinations import few
from tests.networks.engine.modules import EveryLayer, Plain
from tests.networks.small import NETWORKS
from tests.networks.tiny import TINY

N_OTHERS = 4096
SMALL = -0.3 * 2.0**-12  # less than half of what a float32 above 2**11 can tell


def kept(rows):
    return contributions.kept(rows[:, :, None])


def dense(rows):
    return contributions.dense(rows[:, None], jnp.ones((len(rows), 1, 1)))


def listed(rows):
    return contributions.kept_list([*rows])


def cancelling(rows):
    """Five positions, four of which cancel each other but for rounding."""
    noise = jnp.full_like(rows, 1000.0)
    a = jnp.stack([rows, noise, noise, noise, noise], axis=1)
    signs = jnp.array([1.0, 1.0, -1.0, 1.0, -1.0])[None, :, None]
    return contributions.dense(a, jnp.broadcast_to(signs, (len(rows), 5, 1)))


def looked_up(rows):
    """The first row of a table is used twice; the second has no gradient."""
    ids = jnp.zeros((len(rows), 2), int)
    return contributions.lookup(ids, jnp.stack([rows, rows], axis=1) / 2, 2)


FORMS = {f.__name__: f for f in (kept, dense, listed, cancelling, looked_up)}


@pytest.fixture
def chosen():
    """Return records whose float32 sum one in front moves by the most.

    The large ones add up to a power of two, and to one more with that in front: then
    the small ones are lost, all of which count without it.
    """
    rows = np.full((N_OTHERS, 3), SMALL, np.float32)
    rows[: 2**11] = 1.0
    return rows


def total_of(form, rows, size, radius=1.0):
    """Return the total that a step releases of these gradients."""

    @jax.jit
    def batch_sum(rows, valid):
        found = form(rows)
        norms = contributions.norms_of({"": found}, {"": [""]})[""]
        weights = clip_factors(norms, radius, "normalize") / (radius * UNIT)
        return found.weighted_sum(jnp.where(valid, weights, 0.0), on_grid).ravel()

    n_entries = 2 * rows.shape[1] if form is looked_up else rows.shape[1]
    total = BatchTotal(True, n_entries, size, radius)
    for numbers, valid in physical_batches(np.arange(len(rows)), size):
        total.add(batch_sum(jnp.asarray(rows[numbers]), jnp.asarray(valid)))
    return total.sum().total


def test_a_float32_sum_of_chosen_records_moves_by_more_than_one(chosen):
    """Why whole numbers are added: one more record, of norm 1, and the sum in order."""
    more = np.insert(chosen[:, 0], 0, np.float32(1.0))
    both = [np.cumsum(part, dtype=np.float32)[-1] for part in (chosen[:, 0], more)]
    assert float(both[1] - both[0]) > 1.05


@pytest.mark.parametrize("size", [32, 33, 256])
@pytest.mark.parametrize("name", few(2, ["kept", "dense", "cancelling", "looked_up"]))
def test_one_of_many_moves_the_total_by_its_own_part(chosen, name, size):
    """One more of 4,096 in front, and another in its place; every other one shifts."""
    form, alike = FORMS[name], chosen[:, :3]
    one, other = np.float32([[1.0, 2.0, -0.1]]), np.float32([[-3.0, 1e-3, 7.0]])
    own, its = (total_of(form, each, size) for each in (one, other))
    without = total_of(form, alike, size)
    added, replaced = (
        total_of(form, np.vstack([each, alike]), size) for each in (one, other)
    )
    np.testing.assert_array_equal(added - without, own)
    np.testing.assert_array_equal(added - replaced, own - its)
    assert 0.1 < np.linalg.norm(own) * UNIT <= 1.0  # less where much cancels
    assert np.linalg.norm(added - replaced) * UNIT <= 2.0


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("size", [3, 32, 33])
def test_all_orders_of_records_have_one_total(name, size):
    draw = np.random.default_rng(0)
    rows = draw.normal(size=(64, 3)).astype(np.float32) * 10.0 ** draw.integers(-9, 9)
    found = total_of(FORMS[name], rows, size)
    assert np.any(found)
    for _ in range(3):
        order = draw.permutation(64)
        np.testing.assert_array_equal(total_of(FORMS[name], rows[order], size), found)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["fast", "reference"])
@pytest.mark.parametrize("style", CLIP_STYLES)
def test_every_layer_counts_a_record_alike_in_every_slot(
    engine, style, rngs, make_batch, make_sum
):
    _in_every_slot(EveryLayer(rngs), (4, 4, 1), engine, make_batch, make_sum, style)


def test_a_record_counts_alike_in_every_slot_of_networks_of_others(
    rngs, make_batch, make_sum
):
    _in_every_slot(Plain(rngs), (5,), "reference", make_batch, make_sum, n=13)


def test_a_record_counts_alike_in_every_slot(small_mlp, make_batch, make_sum):
    _in_every_slot(small_mlp, (5,), "fast", make_batch, make_sum, n=13)


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_records_of_every_network_count_alike_in_every_slot(
    name, rngs, make_batch, make_sum
):
    """Of thirteen, which no loop of a compiler divides."""
    shape, make = NETWORKS[name]
    _in_every_slot(make(rngs), shape, "fast", make_batch, make_sum, n=13)


def _in_every_slot(module, shape, engine, make_batch, make_sum, style="flat", n=32):
    """As compiled for use: the tests' own options would not show what rounds."""
    inputs, labels = make_batch(shape, n=n)
    compute = make_sum(module, (inputs, labels), engine, style=style, optimized=True)
    whole = compute((inputs, labels))
    for shift in (1, 7, 19):
        places = np.roll(np.arange(n), shift)
        moved = compute((inputs[places], labels[places]))
        for name, leaf in whole.items():
            np.testing.assert_array_equal(moved[name], leaf, err_msg=name)


@pytest.mark.parametrize(
    ("backend", "n_devices", "asked", "expected"),
    [
        ("cpu", 1, 4096, 32),
        ("gpu", 1, 4096, LARGEST_BATCH),
        ("cpu", 1, 6, 4),
        ("gpu", 3, 4096, 192),
        ("gpu", 3, 4, 6),
        ("gpu", 300, 4096, 300),  # refused by `check_batches`
    ],
)
def test_physical_batches_are_as_large_as_sums_are_proved_for(
    monkeypatch, backend, n_devices, asked, expected
):
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    monkeypatch.setattr(jax, "local_device_count", lambda: n_devices)
    assert fitting_microbatch(None, None, asked, 1) == expected


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")
@pytest.mark.parametrize("size", [5, 6, 7, 12, 31])
def test_a_record_without_a_gradient_moves_nothing_in_batches_of_any_size(size):
    """The others move to other slots: in batches of 5 some were rounded otherwise."""
    draw = np.random.default_rng(0)
    X, y = draw.normal(size=(150, 100)).astype(np.float32), draw.integers(0, 5, 150)
    X[0] = 3e38  # overflows
    clf = DPSGDClassifier(
        model="mlp",
        noise_multiplier=1.0,
        n_iter=1,
        expected_batch_size=None,
        classes=range(5),
        clip_norm=0.5,
        microbatch_size=size,
    )
    found = replay_neighbours(clf, (X, y), (X, y), missing=np.arange(150) == 0)
    assert [movement.observed for movement in found.movements] == [0.0]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")
def test_one_more_record_moves_what_a_fit_releases_by_its_own_part(records, released):
    """In front of all others, of which each takes another slot, some another batch."""
    X, y = records
    params = TINY | {"n_iter": 1, "expected_batch_size": None, "microbatch_size": 8}
    for part in (slice(None), slice(1, None), slice(0, 1)):
        DPSGDClassifier(**params | {"classes": [0, 1, 2]}).fit(X[part], y[part])
    whole, others, alone = released
    np.testing.assert_array_equal(whole - others, alone)
    assert 0.0 < np.linalg.norm(alone) <= 1.0
