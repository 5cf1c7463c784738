import dataclasses
import json
import math
import re
from importlib import resources

import jsonschema
import numpy as np
import pytest

from privfeat import PrivacyError, PrivacyStatement, __version__
from privfeat.core.calibration import plan_releases
from privfeat.core.plan import Query
from privfeat.core.repetition import Selection

QUERIES = [Query("gram", 1.0), Query("gradient", 0.5, count=7)]
PUBLIC = ("the number of features (3)", "all constructor parameters")


def state(plan, *, seeded=False):
    return PrivacyStatement.from_plan(plan, public=PUBLIC, seeded=seeded)


PLANS = {
    "exact": {"epsilon": 1.0},
    "zcdp": {"rho": 0.1, "accounting": "zcdp", "adjacency": "replace_one"},
    "free": {"epsilon": math.inf},
}


@pytest.fixture(params=[*PLANS, "sampled"])
def plan(request):
    if request.param == "sampled":
        query = Query("gradient", 1.0, count=3, sampling_prob=0.25)
        return plan_releases([query], noise_multiplier=3.0, accounting="pld")
    return plan_releases(QUERIES, **PLANS[request.param])


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


@pytest.fixture(scope="module")
def schema():
    text = resources.files("privfeat.core").joinpath("statement.schema.json")
    schema = json.loads(text.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return schema


@pytest.mark.parametrize("seeded", [True, False])
def test_statement_fits_its_schema(plan, schema, seeded):
    jsonschema.validate(json.loads(state(plan, seeded=seeded).to_json()), schema)


def test_schema_names_every_field(schema):
    names = {field.name for field in dataclasses.fields(PrivacyStatement)}
    assert set(schema["properties"]) == names | {"statement_version"}


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon": -1.0},
        {"epsilon": "nan"},
        {"delta": 0},
        {"delta": 1.5},
        {"rho": -0.5},
        {"mu": -0.5},
        {"seeded": "no"},
        {"statement_version": 2},
        {"more": 1},
        {"releases": [{"name": "gram"}]},
    ],
)
def test_schema_refuses_what_from_json_refuses(plan, schema, change):
    content = json.loads(state(plan).to_json()) | change
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(content, schema)
    with pytest.raises(PrivacyError):
        PrivacyStatement.from_json(json.dumps(content))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("count", 0),
        ("l2_sensitivity", -0.5),
        ("noise_multiplier", -0.5),
        ("noise_stddev", -0.5),
        ("sampling_prob", -0.5),
        ("sampling_prob", 1.5),
    ],
)
def test_no_release_has_impossible_numbers(plan, schema, name, value):
    content = json.loads(state(plan).to_json())
    content["releases"][0][name] = value
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(content, schema)
    with pytest.raises(PrivacyError):
        PrivacyStatement.from_json(json.dumps(content))


def test_statement_tells_of_samples_where_there_are_some(plan):
    sampled = any(release.query.sampling_prob < 1 for release in plan.releases)
    assert ("sampling" in str(state(plan))) == sampled


@pytest.mark.parametrize("seeded", [True, False])
def test_statement_survives_json(plan, seeded):
    statement = state(plan, seeded=seeded)
    assert PrivacyStatement.from_json(statement.to_json()) == statement


def test_statement_json_is_standard(plan):
    def refuse(constant):
        raise AssertionError(constant)

    json.loads(state(plan).to_json(), parse_constant=refuse)


@pytest.mark.parametrize(
    ("options", "seeded", "private"),
    [("exact", False, True), ("exact", True, False), ("free", False, False)],
)
def test_statement_is_private_with_finite_epsilon_and_no_seed(options, seeded, private):
    plan = plan_releases(QUERIES, **PLANS[options])
    assert state(plan, seeded=seeded).private is private


def test_statement_text_holds_what_a_reader_needs():
    text = str(state(plan_releases(QUERIES, epsilon=1.0)))
    for part in [
        "epsilon = 1,",
        "delta = 1e-05",
        "mu = ",
        "rho = ",
        "add_remove (one record is present",
        "accounting: exact",
        "1 x gram: noise multiplier",
        "7 x gradient: noise multiplier",
        "L2 sensitivity 0.5",
        *PUBLIC,
        __version__,
    ]:
        assert part in text
    assert "SEEDED" not in text


def test_statement_text_warns_of_a_seed():
    assert "SEEDED" in str(state(plan_releases(QUERIES), seeded=True))


def test_statement_text_says_when_there_is_no_privacy():
    text = str(state(plan_releases(QUERIES, epsilon=math.inf)))
    assert text.startswith("No privacy")


def test_statement_text_shows_the_sampling():
    query = Query("gradient", 1.0, count=3, sampling_prob=0.25)
    plan = plan_releases([query], noise_multiplier=3.0, accounting="pld")
    assert "sampling 0.25" in str(state(plan))


@pytest.mark.validation
@pytest.mark.parametrize(
    "text", ["", "[]", "null", "{}", '{"statement_version": 1}', "not json"]
)
def test_statement_refuses_text_that_is_no_statement(text):
    with pytest.raises(PrivacyError, match="text must be a privacy statement"):
        PrivacyStatement.from_json(text)


@pytest.mark.validation
def test_statement_refuses_an_unknown_version():
    fields = json.loads(state(plan_releases(QUERIES)).to_json())
    fields["statement_version"] = 99
    with pytest.raises(PrivacyError, match="statement_version must be 1"):
        PrivacyStatement.from_json(json.dumps(fields))


@pytest.mark.validation
@pytest.mark.parametrize("changed", [{"public": [1]}, {"version": None}])
def test_statement_refuses_facts_that_are_no_text(changed):
    fields = json.loads(state(plan_releases(QUERIES)).to_json()) | changed
    with pytest.raises(PrivacyError, match="text must be a privacy statement"):
        PrivacyStatement.from_json(json.dumps(fields))


@pytest.mark.validation
def test_statement_refuses_unknown_fields():
    fields = json.loads(state(plan_releases(QUERIES)).to_json()) | {"extra": 1}
    with pytest.raises(PrivacyError, match="text must be a privacy statement"):
        PrivacyStatement.from_json(json.dumps(fields))


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


def test_statement_written_before_units_is_of_records():
    fields = json.loads(state(plan_releases(QUERIES)).to_json())
    del fields["unit"]
    assert PrivacyStatement.from_json(json.dumps(fields)).unit == "record"


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_statement_refuses_numbers_that_are_not_json(plan, number):
    text = PrivacyStatement.from_plan(plan, public=(), seeded=False).to_json()
    changed = re.sub(r'"epsilon": [^,]+', f'"epsilon": {number}', text, count=1)
    assert changed != text
    with pytest.raises(PrivacyError, match="statement in JSON"):
        PrivacyStatement.from_json(changed)


NOT_POSITIVE = [0.0, -1.0, math.nan, math.inf, "1", None, True]


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


def test_statement_of_numpy_numbers_is_written_as_any_other():
    statement = state(plan_releases(QUERIES))
    numbers = dataclasses.replace(
        statement, delta=np.float32(0.25), rho=np.float64(0.5), seeded=np.bool_(False)
    )
    read = PrivacyStatement.from_json(numbers.to_json())
    assert (read.delta, read.rho, read.seeded) == (0.25, 0.5, False)
