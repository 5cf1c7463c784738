import pytest

from privfeat import DPLeastSquares, PrivacyLedger
from privfeat.report.ledger import summarize
from tests.report.conftest import state


@pytest.fixture
def ledger(tmp_path):
    return PrivacyLedger(tmp_path / "a.ledger", dataset="a", epsilon=3, delta=1e-5)


def test_summary_holds_the_budget_and_every_charge(ledger):
    fits = [
        DPLeastSquares(epsilon=epsilon, classes=[0, 1], ledger=ledger).fit(
            [[1.0], [2.0]], [0, 1]
        )
        for epsilon in (1.0, 0.5)
    ]
    found = summarize(ledger, fits[0].privacy_)
    budget = dict(found.budget)
    assert budget["data set"] == "a"
    assert budget["budget"] == "epsilon = 3, delta = 1e-05"
    spent = float(budget["spent"].removeprefix("epsilon = "))
    assert ledger.spent.epsilon <= spent <= ledger.spent.epsilon * (1 + 1e-5)
    left = float(budget["left for one more fit"].removeprefix("epsilon = "))
    assert left <= ledger.remaining.epsilon
    assert [row["number"] for row in found.charges] == [1, 2]
    assert [row["epsilon"] for row in found.charges] == ["1", "0.5"]
    assert {row["status"] for row in found.charges} == {"done"}
    assert found.total == f"epsilon = {spent:g}, of a budget of {budget['budget']}"
    assert found.holds_fit
    assert not summarize(ledger, state()).holds_fit


def test_total_says_why_it_is_less_than_what_a_fit_of_a_smaller_delta_states(ledger):
    clf = DPLeastSquares(epsilon=1.0, delta=1e-6, classes=[0, 1], ledger=ledger)
    found = summarize(ledger, clf.fit([[1.0], [2.0]], [0, 1]).privacy_)
    assert found.total.startswith("epsilon = 0.87")
    assert "at which a fit of a smaller delta costs a smaller epsilon" in found.total


def test_summary_tells_of_a_fit_that_was_made_again_without_its_ledger(ledger):
    clf = DPLeastSquares(epsilon=1.0, classes=[0, 1], ledger=ledger)
    charged = clf.fit([[1.0], [2.0]], [0, 1]).privacy_
    again = clf.set_params(ledger=None).fit([[1.0], [2.0]], [0, 1]).privacy_
    assert again == charged
    assert summarize(ledger, charged).holds_fit
    assert not summarize(ledger, again).holds_fit
    assert not summarize(ledger, charged, again).holds_evaluation


def test_a_charge_without_a_name_is_known_by_its_figures(ledger):
    stated = state()
    ledger.charge(stated, estimator="Other")
    assert summarize(ledger, stated).holds_fit


def test_summary_tells_of_an_evaluation_that_was_charged_elsewhere(ledger):
    clf = DPLeastSquares(epsilon=1.0, classes=[0, 1], ledger=ledger)
    statement = clf.fit([[1.0], [2.0]], [0, 1]).privacy_
    assert summarize(ledger, statement).holds_evaluation
    assert summarize(ledger, statement, statement).holds_evaluation
    assert not summarize(ledger, statement, state(epsilon=2.0)).holds_evaluation


def test_an_empty_ledger_has_a_summary(ledger):
    found = summarize(ledger, state())
    assert found.charges == ()
    assert dict(found.budget)["spent"] == "epsilon = 0"
