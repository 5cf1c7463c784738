import dataclasses
import json
import math

import pytest

from privfeat import PrivacyStatement, __version__
from privfeat.core.accounting.calibration import plan_releases
from privfeat.core.statement.selection import Selection
from tests.core.statements import PLANS, PUBLIC, QUERIES, state

NOT_POSITIVE = [0.0, -1.0, math.nan, math.inf, "1", None, True]


def test_statement_repeats_the_plan(plan):
    statement = state(plan)
    for name in ("epsilon", "delta", "rho", "mu", "adjacency", "accounting"):
        assert getattr(statement, name) == getattr(plan, name)
    for record, release in zip(statement.releases, plan.releases, strict=True):
        assert record.name == release.query.name
        assert record.count == release.query.count
        assert record.l2_sensitivity == release.query.l2_sensitivity
        assert record.sampling_prob == release.query.sampling_prob
        assert record.noise_multiplier == release.noise_multiplier
        assert record.noise_stddev == release.noise_stddev
    assert statement.version == __version__


@pytest.mark.parametrize(
    ("options", "seeded", "private"),
    [("exact", False, True), ("exact", True, False), ("free", False, False)],
)
def test_statement_is_private_with_finite_epsilon_and_no_seed(options, seeded, private):
    plan = plan_releases(QUERIES, **PLANS[options])
    assert state(plan, seeded=seeded).private is private


def test_statement_read_back_describes_the_event_of_the_plan(plan):
    statement = PrivacyStatement.from_json(state(plan).to_json())
    assert statement.event() == plan.event()


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_statement_says_when_users_are_protected(adjacency):
    plan = plan_releases(QUERIES, adjacency=adjacency)
    of_records = state(plan)
    of_users = PrivacyStatement.from_plan(
        plan, public=PUBLIC, seeded=False, unit="user"
    )
    assert of_records.unit == "record"
    assert "unit: record" in str(of_records)
    assert "unit: user" in str(of_users)
    assert "all records of one user" in str(of_users)
    assert json.loads(of_users.to_json())["unit"] == "user"
    assert PrivacyStatement.from_json(of_users.to_json()) == of_users


def test_statement_says_which_arithmetic_was_used():
    plan = plan_releases(QUERIES)
    options = {"public": (), "seeded": False}
    ordinary = PrivacyStatement.from_plan(plan, **options)
    exact = PrivacyStatement.from_plan(plan, arithmetic="exact", **options)
    assert ordinary.arithmetic == "float64"
    assert "(Gaussian noise;" in str(ordinary)
    assert "(discrete Gaussian noise on whole sums" in str(exact)
    assert PrivacyStatement.from_json(exact.to_json()) == exact
    fields = json.loads(exact.to_json())
    del fields["arithmetic"]  # as statements were written before
    older = PrivacyStatement.from_json(json.dumps(fields))
    assert older == dataclasses.replace(exact, arithmetic="float64")


@pytest.mark.validation
@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("epsilon", [-1.0, math.nan, "1", None, True]),
        ("delta", [0.0, -1e-5, 1.5, math.nan, None]),
        ("rho", [-0.5, math.nan, "1"]),
        ("mu", [-0.5, math.nan, "1"]),
        ("accounting", ["moments", "selection", None]),
        ("adjacency", ["swap", None]),
        ("arithmetic", ["float32", None]),
        ("unit", ["group", None]),
        ("seeded", ["no", None, 1]),
        ("version", [None, 1]),
        ("public", ["a string", ["a list"], (1,), None]),
        ("releases", [(), None, ({"name": "gram"},), []]),
        ("selection", [3, Selection(0.1, 0.0, 0.1, "public")]),
    ],
)
def test_no_statement_has_a_field_out_of_its_range(name, values):
    statement = state(plan_releases(QUERIES))
    for value in values:
        with pytest.raises((TypeError, ValueError), match=name):
            dataclasses.replace(statement, **{name: value})


@pytest.mark.validation
@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("name", [5, None]),
        ("count", [0, 1.0, True]),
        ("l2_sensitivity", NOT_POSITIVE),
        ("noise_multiplier", [-1.0, math.nan, math.inf, None]),
        ("noise_stddev", [-1.0, math.nan, math.inf, None]),
        ("sampling_prob", [0.0, 1.5, math.nan, None]),
    ],
)
def test_no_record_of_a_release_has_a_field_out_of_its_range(name, values):
    record = state(plan_releases(QUERIES)).releases[0]
    for value in values:
        with pytest.raises((TypeError, ValueError), match=name):
            dataclasses.replace(record, **{name: value})


@pytest.mark.parametrize("options", ["exact", "free"])
def test_noise_and_a_finite_epsilon_go_together(options):
    statement = state(plan_releases(QUERIES, **PLANS[options]))
    other = 1.0 if math.isinf(statement.epsilon) else math.inf
    with pytest.raises(ValueError, match="noise where epsilon is finite"):
        dataclasses.replace(statement, epsilon=other)
    changed = 0.0 if statement.releases[0].noise_multiplier else 1.0
    mixed = (
        dataclasses.replace(statement.releases[0], noise_multiplier=changed),
        *statement.releases[1:],
    )
    with pytest.raises(ValueError, match="noise where epsilon is finite"):
        dataclasses.replace(statement, releases=mixed)
