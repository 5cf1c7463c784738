"""The page about a whole ledger."""

import re
from datetime import UTC, datetime

import pytest

from privfeat import PrivacyLedger
from privfeat.core.ledger.budget import spent_of
from privfeat.core.ledger.opening import Account, read_accounts
from privfeat.core.ledger.rows import Charge
from privfeat.report.spending import MOST_POINTS, render_spending, spending_of
from tests.report.conftest import state

NOW = datetime(2100, 1, 1, tzinfo=UTC)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.ledger"


@pytest.fixture
def ledger(path):
    name = "a <b>set</b>"
    return PrivacyLedger(path, dataset=name, epsilon=3, delta=1e-5, who="Ann <i>")


def test_spending_adds_up_as_the_ledger_does(path, ledger):
    spent = []
    for epsilon in (1.0, 0.5, 0.5):
        ledger.charge(state(epsilon=epsilon), estimator="DPFC")
        spent.append(ledger.spent.epsilon)
    (account,) = read_accounts(path)
    found = spending_of(account, NOW)
    assert found.spent == (0.0, *spent, spent[-1])
    begun, *times, now = found.times
    assert begun == datetime.fromisoformat(ledger.budget.created)
    assert times == [datetime.fromisoformat(c.asked) for c in ledger.history]
    assert now == NOW
    assert float(found.row["spent"]) >= spent[-1]
    assert float(found.row["left"]) <= ledger.remaining.epsilon
    assert [row["fit"] for row in found.charges] == [1, 2, 3]
    assert {row["by"] for row in found.charges} == {"Ann <i>"}


def test_a_chart_never_ends_before_its_last_charge(path, ledger):
    ledger.charge(state(), estimator="DPFC")
    (account,) = read_accounts(path)
    found = spending_of(account, datetime(2000, 1, 1, tzinfo=UTC))
    assert list(found.times) == sorted(found.times)


@pytest.mark.slow
def test_sampled_fits_are_drawn_at_a_few_times_and_the_last(ledger):
    fit = state(sampling_prob=0.1, noise_multiplier=9.0, accounting="rdp", epsilon=None)
    charges = [
        Charge(number, "DPSGDClassifier", "2026-01-01T00:00:00+00:00", fit.to_json())
        for number in range(1, MOST_POINTS + 3)
    ]
    account = Account(ledger.budget, charges)
    found = spending_of(account, NOW)
    assert len(found.times) == len(found.spent) == MOST_POINTS + 2
    assert found.spent[-1] == spent_of(ledger.budget, [fit] * len(charges)).epsilon
    page = render_spending([account], place="", now=NOW)
    assert "Steps of several fits are drawn as one" in page


def test_page_shows_every_data_set_and_escapes_every_name(path, ledger):
    ledger.charge(state(), estimator="DPFC")
    PrivacyLedger(path, dataset="unused", epsilon=1, delta=1e-6)
    page = render_spending(read_accounts(path), place="at <home>", now=NOW)
    assert re.findall("<h2>(.*?)</h2>", page) == [
        "a &lt;b&gt;set&lt;/b&gt;",
        "unused",
    ]
    for text in ("Ann &lt;i&gt;", "at &lt;home&gt;", "No fit was charged yet"):
        assert text in page
    assert page.count("<svg") == 1
    for forbidden in ("<script", "://", "<b>", "<i>", "Steps of several"):
        assert forbidden not in page


def test_page_of_an_empty_ledger_says_so():
    assert "No data set has a budget here" in render_spending([], place="here")


def test_page_is_the_same_at_the_same_time(path, ledger):
    ledger.charge(state(), estimator="DPFC")
    pages = {render_spending(read_accounts(path), place="", now=NOW) for _ in range(2)}
    assert len(pages) == 1
