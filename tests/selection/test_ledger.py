"""A search is charged as a whole, before its first run, and once."""

import pytest

from privfeat import DPFC, BudgetExceededError, PrivacyError, PrivacyLedger, compose


@pytest.fixture
def ledger(tmp_path):
    return PrivacyLedger(tmp_path / "x.ledger", dataset="x", epsilon=3.0, delta=1e-5)


def test_search_is_charged_once_for_all_its_runs(make, data, ledger, five_runs, runs):
    search = make(ledger=ledger).fit(*data)
    (charge,) = ledger.history
    assert len(runs) == 5
    assert charge.estimator == "DPRandomizedSearch(DPFC)"
    assert charge.status == "fitted"
    assert charge.statement.epsilon == search.privacy_.epsilon == 2.0
    assert charge.statement.selection == search.privacy_.selection
    assert charge.statement.charge == search.privacy_.charge is not None
    assert search.best_estimator_.privacy_.charge == search.privacy_.charge
    assert ledger.spent.epsilon == 2.0


def test_the_best_estimator_is_charged_when_it_is_fitted_again(make, data, ledger):
    """Silence answered it, and a search of scikit-learn has always charged it."""
    best = make(ledger=ledger, epsilon=1.0).fit(*data).best_estimator_
    best.fit(*data)
    again = ledger.history[-1]
    assert again.estimator == "DPFC"
    assert ledger.spent.epsilon > again.statement.epsilon == best.privacy_.epsilon


def test_search_is_charged_before_its_first_run(make, data, ledger, plant, five_runs):
    def fail(*_):
        assert len(ledger.history) == 1
        raise MemoryError

    plant("one run of a search", fail)
    with pytest.raises(MemoryError):
        make(ledger=ledger).fit(*data)
    assert [charge.status for charge in ledger.history] == ["asked"]


def test_search_that_overspends_makes_no_run(make, data, ledger, runs):
    search = make(ledger=ledger, epsilon=3.5)
    with pytest.raises(BudgetExceededError):
        search.fit(*data)
    assert runs == []
    assert ledger.history == []
    assert not hasattr(search, "privacy_")


def test_search_and_fits_are_charged_together(make, data, ledger):
    fit = DPFC(epsilon=0.5, n_iter=2, classes=range(3), ledger=ledger).fit(*data)
    search = make(ledger=ledger, epsilon=1.0).fit(*data)
    expected = compose([fit.privacy_, search.privacy_], delta=1e-5)
    assert ledger.spent.epsilon == expected.epsilon
    assert 0.0 < ledger.remaining.epsilon < 3.0


def test_search_refuses_a_ledger_of_its_estimator(make, data, ledger):
    """Else its fits would be charged again, or the search not at all."""
    search = make(DPFC(n_iter=2, classes=range(3), ledger=ledger), ledger=ledger)
    with pytest.raises(ValueError, match="Pass it to the search"):
        search.fit(*data)
    with pytest.raises(ValueError, match="param_distributions must hold"):
        make(candidates={"ledger": [ledger]}).fit(*data)
    assert ledger.history == []


@pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")
@pytest.mark.parametrize("options", [{"epsilon": float("inf")}, {"random_state": 0}])
def test_search_without_privacy_is_not_charged(make, data, ledger, options):
    with pytest.raises(PrivacyError, match="a fit with a ledger must have"):
        make(ledger=ledger, **options).fit(*data)
    assert ledger.history == []


@pytest.mark.validation
def test_search_refuses_what_is_no_ledger(make, data):
    with pytest.raises(TypeError, match="ledger must be None or a PrivacyLedger"):
        make(ledger="x.ledger").fit(*data)
