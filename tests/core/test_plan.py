import math

import pytest
from dp_accounting import (
    ComposedDpEvent,
    GaussianDpEvent,
    NonPrivateDpEvent,
    PoissonSampledDpEvent,
    SelfComposedDpEvent,
)

from privfeat.core.plan import PlannedRelease, Query, ReleasePlan


@pytest.fixture
def releases():
    return (
        PlannedRelease(Query("gram", 2.0), 3.0),
        PlannedRelease(Query("gradient", 0.5, count=4, n_blocks=2), 5.0),
    )


def test_planned_release_scales_its_noise_by_the_sensitivity(releases):
    assert [release.noise_stddev for release in releases] == [6.0, 2.5]


def test_planned_release_event_counts_releases_not_blocks(releases):
    assert releases[1].event() == SelfComposedDpEvent(GaussianDpEvent(5.0), 4)


def test_planned_release_event_carries_the_sampling():
    release = PlannedRelease(Query("gradient", 1.0, count=3, sampling_prob=0.1), 2.0)
    sampled = PoissonSampledDpEvent(0.1, GaussianDpEvent(2.0))
    assert release.event() == SelfComposedDpEvent(sampled, 3)


@pytest.mark.validation
def test_planned_release_event_holds_python_floats():
    """An integer or float32 noise multiplier makes dp-accounting under-report."""
    event = PlannedRelease(Query("gradient", 1.0), 2).event()
    assert type(event.event.noise_multiplier) is float


def test_planned_release_without_noise_is_not_private():
    assert PlannedRelease(Query("gram", 1.0), 0.0).event() == NonPrivateDpEvent()


def test_release_plan_event_composes_all_releases(releases):
    plan = ReleasePlan(releases, "add_remove", "exact", 1.0, 1e-5, 0.1, 0.2)
    assert plan.event() == ComposedDpEvent([release.event() for release in releases])


@pytest.mark.parametrize(("epsilon", "private"), [(1.0, True), (math.inf, False)])
def test_release_plan_is_private_when_epsilon_is_finite(releases, epsilon, private):
    plan = ReleasePlan(releases, "add_remove", "exact", epsilon, 1e-5, 0.1, 0.2)
    assert plan.private is private


def test_release_plan_finds_a_release_by_name(releases):
    plan = ReleasePlan(releases, "add_remove", "exact", 1.0, 1e-5, 0.1, 0.2)
    assert plan["gradient"] is releases[1]
    with pytest.raises(KeyError):
        plan["other"]
