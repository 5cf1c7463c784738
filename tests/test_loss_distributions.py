"""The memory of ``tests/loss_distributions.py`` changes no epsilon."""

import pytest
from dp_accounting import (
    GaussianDpEvent,
    PoissonSampledDpEvent,
    SelfComposedDpEvent,
)

from privfeat.core.accounting.pld import pld_epsilon


def make_event(count, noise_multiplier=2.0, sampling_prob=0.25):
    event = PoissonSampledDpEvent(sampling_prob, GaussianDpEvent(noise_multiplier))
    return SelfComposedDpEvent(event, count)


@pytest.fixture
def kept(plant):
    """Return the memory, or what stands in its place."""
    return plant.genuine("loss distribution of a Gaussian release")


@pytest.mark.slow
def test_a_distribution_is_found_once_and_stays_as_it_is(kept, plant):
    before = kept.cache_info()
    epsilons = [pld_epsilon(make_event(n), 1e-5) for n in (1, 7, 3, 1, 7, 3)]
    assert kept.cache_info().misses <= before.misses + 1
    assert kept.cache_info().hits >= before.hits + 5
    plant("loss distribution of a Gaussian release", kept.__wrapped__)
    assert epsilons == [pld_epsilon(make_event(n), 1e-5) for n in (1, 7, 3)] * 2


def test_other_arguments_have_another_distribution():
    events = make_event(3), make_event(3, 2.5), make_event(3, 2.0, 0.3)
    assert len({pld_epsilon(event, 1e-5) for event in events}) == 3
