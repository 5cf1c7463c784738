"""What a statement says of a selection, and what it refuses."""

import dataclasses
import json
import math
from importlib import resources
from types import SimpleNamespace

import jsonschema
import pytest
from dp_accounting.dp_event import (
    GaussianDpEvent,
    NonPrivateDpEvent,
    RepeatAndSelectDpEvent,
)

from privfeat import PrivacyStatement
from privfeat.core.accounting.calibration import plan_releases
from privfeat.core.accounting.plan import Query
from privfeat.core.accounting.run_count import RunCount
from privfeat.core.accounting.selection import SLACK, selection_epsilon
from privfeat.core.bounds.strategy import Banded
from privfeat.core.statement.selection import Selection
from privfeat.exceptions import PrivacyError, UnsupportedEventError

SELECTION = Selection(run_mu=0.2, eta=0.0, gamma=0.1, scored_on="holdout")


@pytest.fixture
def statement():
    return PrivacyStatement(
        epsilon=1.0,
        delta=1e-5,
        rho=None,
        mu=None,
        adjacency="add_remove",
        accounting="selection",
        releases=(),
        public=("everything",),
        seeded=False,
        selection=SELECTION,
    )


def test_statement_with_a_selection_survives_json(statement):
    assert PrivacyStatement.from_json(statement.to_json()) == statement


def test_statement_with_a_wrong_selection_is_refused(statement):
    fields = json.loads(statement.to_json())
    fields["selection"] = {"run_mu": 0.1}
    with pytest.raises(PrivacyError):
        PrivacyStatement.from_json(json.dumps(fields))


def test_statement_with_a_selection_gives_the_event_of_all_runs(statement):
    event = statement.event()
    assert isinstance(event, RepeatAndSelectDpEvent)
    assert event.event == GaussianDpEvent(5.0)
    assert (event.mean, event.shape) == (SELECTION.runs.mean, 0.0)


def test_selection_without_privacy_gives_a_nonprivate_event():
    event = dataclasses.replace(SELECTION, run_mu=math.inf).event()
    assert event.event == NonPrivateDpEvent()


def test_selection_of_negative_shape_has_no_event():
    with pytest.raises(UnsupportedEventError, match="eta"):
        dataclasses.replace(SELECTION, eta=-0.5).event()


def test_statement_text_tells_of_the_selection(statement):
    text = str(statement)
    for part in [
        "best of a random number",
        "eta = 0",
        "mu = 0.2",
        "kept from training",
    ]:
        assert part in text


def test_selection_refuses_a_mean_below_one(plant):
    plant("mean number of runs", property(lambda self: 0.9))
    with pytest.raises(ValueError, match="mean must be"):
        dataclasses.replace(SELECTION, gamma=0.2)


def test_selection_of_few_runs_is_allowed():
    gamma = RunCount.from_mean(1.01, 1.0).gamma
    assert dataclasses.replace(SELECTION, eta=1.0, gamma=gamma).runs.mean < 1.02


@pytest.mark.parametrize("run_mu", [0.2, math.inf])
def test_statement_with_a_selection_fits_its_schema(statement, run_mu):
    epsilon = 1.0 if math.isfinite(run_mu) else math.inf
    selection = dataclasses.replace(SELECTION, run_mu=run_mu)
    statement = dataclasses.replace(statement, epsilon=epsilon, selection=selection)
    text = resources.files("privfeat.core.statement").joinpath("statement.schema.json")
    schema = json.loads(text.read_text(encoding="utf-8"))
    jsonschema.validate(json.loads(statement.to_json()), schema)
    assert PrivacyStatement.from_json(statement.to_json()) == statement


def test_statement_of_a_selection_does_not_read_without_it(statement):
    """Its releases are not all that was drawn, and may be none."""
    fields = json.loads(statement.to_json())
    del fields["selection"]
    with pytest.raises(PrivacyError):
        PrivacyStatement.from_json(json.dumps(fields))


@pytest.mark.parametrize(
    "wrong",
    [
        *({"run_mu": run_mu} for run_mu in (0.0, -1.0, math.nan)),
        *({"eta": eta} for eta in (-0.6, 10.5, math.nan)),
        *({"gamma": gamma} for gamma in (0.0, -0.5, 1.0, 1.5, math.nan)),
        {"scored_on": "guesses"},
    ],
)
def test_no_selection_contradicts_itself(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        dataclasses.replace(SELECTION, **wrong)


def test_the_cost_of_a_selection_covers_the_rounding_of_its_runs():
    """Half the slack above their mu: `selection_mu` leaves room for as much."""

    def cost(slack):
        return selection_epsilon(0.2 * (1.0 + slack * SLACK), 1e-5, SELECTION.runs)

    for enough in (cost(0.5), 2.0, math.inf):
        SELECTION.check_cost(enough, 1e-5)
    for too_little in (cost(0.4), cost(0.0), 0.0):
        with pytest.raises(PrivacyError, match="epsilon must be that of the best"):
            SELECTION.check_cost(too_little, 1e-5)
    for run_mu in (2e6, math.inf):
        with pytest.raises(PrivacyError, match="epsilon must be that of the best"):
            dataclasses.replace(SELECTION, run_mu=run_mu).check_cost(1e9, 1e-5)


def plan_of(mu, private=True, adjacency="add_remove", releases=()):
    return SimpleNamespace(
        mu=mu, private=private, adjacency=adjacency, releases=releases
    )


def test_a_run_draws_plans_within_its_mu_and_their_rounding():
    SELECTION.check_run(plan_of(0.2 * (1.0 + 0.5 * SLACK)), "add_remove")
    free = dataclasses.replace(SELECTION, run_mu=math.inf)
    free.check_run(plan_of(math.inf, private=False), "add_remove")
    for refused in (
        plan_of(0.2 * (1.0 + 0.6 * SLACK)),
        plan_of(None),
        plan_of(0.1, private=False),
        plan_of(0.1, adjacency="replace_one"),
    ):
        with pytest.raises(PrivacyError, match=r"a run must draw plans of mu = 0\.2"):
            SELECTION.check_run(refused, "add_remove")


def test_a_run_draws_no_plan_whose_noise_costs_more_than_it_says():
    strategy = Banded((0.75, 0.5))
    queries = [Query("a", 1.0, count=2), Query("b", 3.0, count=4, strategy=strategy)]
    plan = plan_releases(queries, noise_multiplier=10.0)
    assert plan.mu == pytest.approx(0.2)
    SELECTION.check_run(plan, "add_remove")
    louder = [dataclasses.replace(one, noise_multiplier=9.0) for one in plan.releases]
    for releases in ((louder[0], plan.releases[1]), (plan.releases[0], louder[1])):
        said = dataclasses.replace(plan, releases=releases)
        assert said.mu == plan.mu
        with pytest.raises(PrivacyError, match=r"got mu = 0\.2114"):
            SELECTION.check_run(said, "add_remove")
