import math

from privfeat import __version__
from privfeat.core.accounting.calibration import plan_releases
from privfeat.core.accounting.plan import Query
from privfeat.core.bounds.strategy import Banded
from privfeat.core.statement.selection import Selection
from tests.core.statements import PUBLIC, QUERIES, state


def test_statement_tells_of_samples_where_there_are_some(plan):
    sampled = any(release.query.sampling_prob < 1 for release in plan.releases)
    assert ("sampling" in str(state(plan))) == sampled


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


def test_statement_text_rounds_against_us():
    plan = plan_releases([Query("gram", 1.0, count=3)], noise_multiplier=1.2345675)
    assert "noise multiplier 1.23456," in str(state(plan))
    query = Query("gradient", 1.0, sampling_prob=0.12345612)
    plan = plan_releases([query], noise_multiplier=3.0, accounting="pld")
    assert "sampling 0.123457\n" in str(state(plan))
    selection = Selection(0.12345649, 0.5, 0.05, "public")
    assert any("mu = 0.123457," in line for line in selection.lines())


def test_statement_text_tells_of_turns():
    strategy = Banded((0.75, 0.5))
    query = Query("gradient", 1.0, count=3, sampling_prob=0.25, strategy=strategy)
    plan = plan_releases([query], noise_multiplier=3.0, accounting="rdp")
    said = "sampling 0.25 of a record in its turn, one release in 2; banded noise"
    assert said in str(state(plan))
