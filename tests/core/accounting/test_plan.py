import math
from dataclasses import replace

import pytest
from dp_accounting import (
    ComposedDpEvent,
    GaussianDpEvent,
    NonPrivateDpEvent,
    PoissonSampledDpEvent,
    SelfComposedDpEvent,
)

from privfeat.core.accounting.plan import PlannedRelease, Query, ReleasePlan
from privfeat.exceptions import PrivacyError, UnsupportedEventError


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


def test_release_plan_is_private_when_it_has_noise(releases):
    plan = ReleasePlan(releases, "add_remove", "exact", 1.0, 1e-5, 0.1, 0.2)
    assert plan.private
    free = tuple(PlannedRelease(release.query, 0.0) for release in releases)
    plan = ReleasePlan(free, "add_remove", "exact", math.inf, 1e-5, math.inf, math.inf)
    assert not plan.private


def test_release_plan_refuses_noise_with_infinite_epsilon(releases):
    with pytest.raises(PrivacyError, match="noise in every release"):
        ReleasePlan(releases, "add_remove", "pld", math.inf, 1e-5, 0.1, 0.2)


def test_release_plan_refuses_two_queries_of_one_name(releases):
    twice = (releases[0], PlannedRelease(Query("gram", 100.0), 5.0))
    with pytest.raises(PrivacyError, match="different"):
        ReleasePlan(twice, "add_remove", "exact", 1.0, 1e-5, 0.1, 0.2)


@pytest.mark.parametrize("l2_sensitivity", [math.nan, 0.0, -1.0, math.inf])
def test_query_refuses_a_sensitivity_that_would_mean_no_noise(l2_sensitivity):
    with pytest.raises(ValueError, match="l2_sensitivity"):
        Query("gram", l2_sensitivity)


@pytest.mark.validation
@pytest.mark.parametrize("weight", [math.nan, math.inf, -math.inf, 0, 0.0, -1.0])
def test_query_refuses_a_weight_outside_its_range(weight):
    with pytest.raises(ValueError, match="weight must be"):
        Query("gram", 1.0, weight=weight)


@pytest.mark.validation
@pytest.mark.parametrize("weight", [True, "1", None, [1.0], 1j])
def test_query_refuses_a_weight_that_is_no_number(weight):
    with pytest.raises(TypeError, match="weight must be"):
        Query("gram", 1.0, weight=weight)


def test_release_plan_finds_a_release_by_name(releases):
    plan = ReleasePlan(releases, "add_remove", "exact", 1.0, 1e-5, 0.1, 0.2)
    assert plan["gradient"] is releases[1]
    with pytest.raises(KeyError):
        plan["other"]


def test_query_per_user_has_that_many_times_the_sensitivity():
    query = Query("gradient", 0.5, count=4, n_blocks=2, weight=0.3)
    expected = Query("gradient", 1.5, count=4, n_blocks=2, weight=0.3)
    assert query.per_user(3) == expected
    assert query.per_user(1) == query
    clipped = query.per_user(3, clipped=True)
    assert clipped == replace(query, clipped=True)


def test_query_per_user_refuses_sampled_records():
    with pytest.raises(UnsupportedEventError, match="sampling_prob must be 1"):
        Query("gradient", 0.5, sampling_prob=0.5).per_user(3)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("count", 0),
        ("n_blocks", 0),
        ("n_blocks", 2**31),
        ("sampling_prob", -0.5),
        ("sampling_prob", 0.0),
        ("sampling_prob", 1.5),
    ],
)
def test_query_refuses_numbers_out_of_range(name, value):
    with pytest.raises(ValueError, match=name):
        Query("gram", 1.0, **{name: value})


def test_query_takes_as_many_blocks_as_31_bits_count():
    assert Query("gram", 1.0, n_blocks=2**31 - 1).n_blocks == 2**31 - 1


@pytest.mark.parametrize("noise_multiplier", [1e-3, 0.5, 2.0])
def test_release_plan_is_private_with_any_noise(noise_multiplier):
    release = PlannedRelease(Query("gram", 1.0), noise_multiplier)
    plan = ReleasePlan((release,), "add_remove", "exact", 8.0, 1e-5, None, None)
    assert plan.private
    assert plan["gram"].query.n_blocks == 1
