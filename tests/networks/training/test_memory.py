"""The largest physical batch that memory holds."""

import os
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from privfeat import DPSGDClassifier
from privfeat.networks.engine.choice import BatchSum, sum_of_batch
from privfeat.networks.engine.losses import cross_entropy
from privfeat.networks.engine.network import Network
from privfeat.networks.images.augment import Views
from privfeat.networks.training import memory
from tests.networks.tiny import TINY


@pytest.fixture
def given(small_mlp):
    """Return a trainer, as far as memory depends on it, and one record."""
    network = Network(small_mlp)
    what = BatchSum(
        cross_entropy, "flat", "fast", (*network.initial,), "abadi", exact=True
    )
    trainer = SimpleNamespace(
        units=SimpleNamespace(prepare=Views("none", 1)),
        clipped_sum=sum_of_batch(network, what),
    )
    one = np.zeros((1, 5), np.float32), np.zeros(1, np.int32)
    return trainer, network.initial, *one


@pytest.fixture
def largest(given, monkeypatch):
    """Return the size that is found with so many bytes, of which some are free."""
    if jax.default_backend() != "cpu":
        pytest.skip("an accelerator says itself what it has")

    def find(n_bytes, free=0):
        n_pages = {"SC_PHYS_PAGES": 2 * n_bytes, "SC_AVPHYS_PAGES": free}
        monkeypatch.setattr(os, "sysconf", lambda name: n_pages.get(name, 1))
        return memory.largest_microbatch(*given)

    return find


@pytest.mark.slow
def test_it_is_the_largest_that_fits(given, largest):
    trainer, *rest = given
    needs = {n: memory.bytes_needed(trainer, n, *rest) for n in (4, 8)}
    assert needs[4] < needs[8]
    assert largest(needs[8] + 1) == 8
    assert largest(needs[8] - 1) == 4


@pytest.mark.slow
def test_it_follows_from_no_record(given, largest):
    """Records take memory: one more would change how all are rounded."""
    n_bytes = memory.bytes_needed(given[0], 8, *given[1:]) + 1
    assert [largest(n_bytes, free) for free in (0, n_bytes, 2 * n_bytes)] == [8] * 3


@pytest.mark.slow
def test_one_record_is_taken_where_none_fits_and_few_where_all_do(largest):
    assert largest(1.0) == 1
    assert largest(1e15) == memory.most_on_a_device() == 32


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")
def test_a_fit_takes_it_but_not_for_groups(records):
    clf = DPSGDClassifier(**TINY | {"microbatch_size": "largest"})
    assert clf.fit(*records).n_iter_ == 4
    clf.set_params(max_group_size=2)
    with pytest.raises(ValueError, match="microbatch_size must be None or a number"):
        clf.fit(*records, groups=[*range(30)])
