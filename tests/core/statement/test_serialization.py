import dataclasses
import json
import math
import re
from importlib import resources

import jsonschema
import numpy as np
import pytest

from privfeat import PrivacyError, PrivacyStatement
from privfeat.core.accounting.calibration import plan_releases
from privfeat.core.accounting.plan import Query
from privfeat.core.bounds.strategy import Banded
from privfeat.core.statement import serialization
from tests.core.statements import QUERIES, state


@pytest.fixture(scope="module")
def schema():
    text = resources.files("privfeat.core.statement").joinpath("statement.schema.json")
    schema = json.loads(text.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return schema


@pytest.mark.parametrize("seeded", [True, False])
def test_statement_fits_its_schema(plan, schema, seeded):
    jsonschema.validate(json.loads(state(plan, seeded=seeded).to_json()), schema)


def test_name_of_a_charge_is_read_back_and_changes_no_cost(plan, schema):
    plain = state(plan)
    named = dataclasses.replace(plain, charge="0f" * 16)
    jsonschema.validate(json.loads(named.to_json()), schema)
    assert PrivacyStatement.from_json(named.to_json()).charge == "0f" * 16
    assert named == plain
    assert "charge" not in json.loads(plain.to_json())
    told = f"charged to a ledger: {named.charge}" in str(named)
    assert told == math.isfinite(plain.epsilon)
    assert "charged" not in str(plain)


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
        {"charge": "1"},
        {"charge": 1},
        {"charge": ""},
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


@pytest.mark.parametrize("seeded", [True, False])
def test_statement_survives_json(plan, seeded):
    statement = state(plan, seeded=seeded)
    assert PrivacyStatement.from_json(statement.to_json()) == statement


def test_a_text_that_is_inf_stays_a_text():
    plan = plan_releases([Query("inf", 1.0)], epsilon=math.inf)
    statement = PrivacyStatement.from_plan(plan, public=("inf",), seeded=False)
    statement = dataclasses.replace(statement, version="inf")
    assert PrivacyStatement.from_json(statement.to_json()) == statement


def test_statement_json_is_standard(plan):
    def refuse(constant):
        raise AssertionError(constant)

    json.loads(state(plan).to_json(), parse_constant=refuse)


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


def test_statement_of_numpy_numbers_is_written_as_any_other():
    statement = state(plan_releases(QUERIES))
    numbers = dataclasses.replace(
        statement, delta=np.float32(0.25), rho=np.float64(0.5), seeded=np.bool_(False)
    )
    read = PrivacyStatement.from_json(numbers.to_json())
    assert (read.delta, read.rho, read.seeded) == (0.25, 0.5, False)


@pytest.mark.validation
@pytest.mark.parametrize("text", ["[]", "null", '"statement_version"', "{}", "1"])
def test_loads_refuses_what_is_no_object_with_a_version(text):
    with pytest.raises(ValueError, match="an object in JSON with a statement_version"):
        serialization.loads(text)


def test_statement_of_correlated_noise_comes_back(schema):
    """And names its coefficients, without which its noise is another."""
    strategy = Banded((0.75, 0.5))
    query = Query("gradient", 1.0, count=3, sampling_prob=0.25, strategy=strategy)
    plan = plan_releases([query], noise_multiplier=3.0, accounting="rdp")
    text = state(plan).to_json()
    jsonschema.validate(json.loads(text), schema)
    assert PrivacyStatement.from_json(text) == state(plan)
    assert json.loads(text)["releases"][0]["strategy"]["coefficients"] == [0.75, 0.5]
    assert "strategy" not in state(plan_releases(QUERIES)).to_json()


@pytest.mark.parametrize(
    "strategy",
    [None, {}, [0.75, 0.5], {"coefficients": 0.75}, {"coefficients": [2, 1]}],
)
def test_a_strategy_that_is_none_is_refused(plan, strategy):
    content = json.loads(state(plan).to_json())
    content["releases"][0]["strategy"] = strategy
    with pytest.raises(PrivacyError):
        PrivacyStatement.from_json(json.dumps(content))
