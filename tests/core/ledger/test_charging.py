"""A fit is charged before it starts, and stays charged if it fails."""

import warnings
from threading import Thread

import numpy as np
import pytest

from privfeat import BudgetExceededError, LedgerError, PrivacyError, PrivacyLedger
from privfeat.core.accounting.folds import Uncovered
from privfeat.core.ledger.charging import charged
from privfeat.core.sums.processes import Team
from privfeat.exceptions import PrivacyWarning
from tests.core.ledgers import make_statement


@pytest.fixture
def fit():
    return make_statement(epsilon=0.5)


def test_charged_marks_what_it_finished(ledger, fit):
    with charged(ledger, fit, estimator="DPFC"):
        assert [charge.status for charge in ledger.history] == ["asked"]
    assert [charge.status for charge in ledger.history] == ["fitted"]


def test_charged_keeps_the_charge_of_what_failed(ledger, fit):
    with pytest.raises(KeyboardInterrupt), charged(ledger, fit, estimator="DPFC"):
        raise KeyboardInterrupt
    assert [charge.status for charge in ledger.history] == ["asked"]


def test_charged_does_not_start_what_it_refuses(ledger):
    with (
        pytest.raises(BudgetExceededError),
        charged(ledger, make_statement(epsilon=4.0), estimator="DPFC"),
    ):
        pytest.fail("the body ran")


def test_charged_warns_but_keeps_a_fit_that_cannot_be_marked(ledger, fit, plant):
    def fail(*_):
        raise LedgerError("disk full")

    plant("mark that a fit is done", fail)
    with (
        pytest.warns(PrivacyWarning, match="is paid for.*disk full"),
        charged(ledger, fit, estimator="DPFC"),
    ):
        pass
    assert [charge.status for charge in ledger.history] == ["asked"]


@pytest.mark.parametrize("error", [LedgerError("disk full"), MemoryError("disk full")])
def test_filters_that_raise_warnings_lose_no_fit(ledger, fit, plant, error):
    def fail(*_):
        raise error

    plant("mark that a fit is done", fail)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("error")
        before = [*warnings.filters]
        with charged(ledger, fit, estimator="DPFC"):
            warnings.warn("of the disk", UserWarning, stacklevel=1)
            thread = Thread(target=warnings.warn, args=("of another thread",))
            thread.start()
            thread.join()
        assert warnings.filters == before
        with pytest.raises(UserWarning):
            warnings.warn("of the user", stacklevel=1)
    of_the_disk, of_another_thread, unmarked = (str(one.message) for one in caught)
    assert of_the_disk == "of the disk"
    assert of_another_thread == "of another thread"
    assert unmarked.endswith("not marked as finished in its ledger: disk full")


@pytest.mark.parametrize("in_ledger", [True, False])
def test_errors_that_numpy_was_told_to_raise_lose_no_fit(ledger, fit, in_ledger):
    """Underflow of a number that is next to nothing ended charged fits."""
    with (
        np.errstate(all="raise"),
        charged(ledger if in_ledger else None, fit, estimator="DPFC"),
    ):
        assert np.exp(np.float64(-1000.0)) == 0.0
        with pytest.warns(RuntimeWarning, match="divide by zero"):
            assert np.float64(1.0) / np.float64(0.0) == np.inf


def test_filters_that_ignore_warnings_stay_in_force(fit):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "of the disk")
        with charged(None, fit, estimator="DPFC"):
            warnings.warn("of the disk", stacklevel=1)
    assert caught == []


def test_an_interrupt_while_a_fit_is_marked_says_that_it_was_charged(
    ledger, fit, plant
):
    def interrupt(*_):
        raise KeyboardInterrupt

    plant("mark that a fit is done", interrupt)
    with (
        pytest.raises(KeyboardInterrupt) as stopped,
        charged(ledger, fit, estimator="DPFC"),
    ):
        pass
    assert "as number 1 of its ledger: its budget" in "".join(stopped.value.__notes__)


def test_charged_without_a_ledger_does_nothing(fit):
    with charged(None, fit, estimator="DPFC"):
        pass


class Second(Team):
    """The second of two processes; the first says 1 at the calls that are named."""

    def __new__(cls, *says):
        team = super().__new__(cls)
        object.__setattr__(team, "asked", iter(says))
        return team

    def __init__(self, *says):
        super().__init__(1, 2)

    def each(self, value):
        return [next(self.asked), int(value)]

    def from_first(self, values, what):
        assert values.any()  # a name of its own, which does not count
        return np.array([1, 2**56 - 1])


@pytest.fixture
def as_second(plant):
    def join(*says):
        team = Second(*says)
        plant("team that charges", lambda: team)

    return join


def test_charged_lets_the_first_process_charge_for_all(ledger, fit, as_second):
    as_second(1, 0)  # it has a ledger, and could charge it
    bodies = []
    with charged(ledger, fit, estimator="DPFC") as found:
        bodies.append("ran")
    assert bodies == ["ran"]
    number, statement = found
    assert number is None
    assert statement.charge == "0100000000000000ffffffffffffff00"  # as the first has it
    assert ledger.history == []


def test_charged_does_not_start_what_the_first_process_could_not_charge(
    ledger, fit, as_second
):
    as_second(1, 1)
    with (
        pytest.raises(PrivacyError, match="another process could not charge"),
        charged(ledger, fit, estimator="DPFC"),
    ):
        pytest.fail("the body ran")


def test_an_interrupt_while_the_first_process_charges_says_where_to_look(
    ledger, fit, as_second, monkeypatch
):
    def each(self, value):
        if not value:  # waits to hear whether the first one could charge
            raise KeyboardInterrupt
        return [1, value]

    monkeypatch.setattr(Second, "each", each)
    as_second()
    with (
        pytest.raises(KeyboardInterrupt) as caught,
        charged(ledger, fit, estimator="DPFC"),
    ):
        pytest.fail("the body ran")
    said = ["Whether it was charged, the history of its ledger says."]
    assert caught.value.__notes__ == said


def test_charged_refuses_folds_that_the_first_process_does_not_have(
    ledger, fit, as_second, plant
):
    as_second(1, 0)  # it has a ledger, and charged it
    plant("choice that no charge covers", lambda _: Uncovered("folds", "Try."))
    with (
        pytest.raises(PrivacyError, match="which the charge does not cover, got folds"),
        charged(ledger, fit, estimator="DPFC"),
    ):
        pytest.fail("the body ran")


@pytest.mark.parametrize("first_has_one", [0, 1])
def test_charged_refuses_a_ledger_that_some_processes_lack(
    ledger, fit, as_second, first_has_one
):
    as_second(first_has_one)
    mine = None if first_has_one else ledger
    with (
        pytest.raises(PrivacyError, match="must have a ledger, or none"),
        charged(mine, fit, estimator="DPFC"),
    ):
        pytest.fail("the body ran")
    assert ledger.history == []


def interrupt(ledger, fit):
    with pytest.raises(MemoryError), charged(ledger, fit, estimator="DPFC") as found:
        raise MemoryError
    return found[0]


def test_charged_gives_each_charge_a_random_name_that_its_ledger_holds(ledger, fit):
    names = []
    for _ in range(2):
        with charged(ledger, fit, estimator="DPFC") as (_, said):
            names.append(said.charge)
    assert [charge.statement.charge for charge in ledger.history] == names
    assert len({*names, None}) == 3


def test_charged_goes_on_under_the_name_of_the_charge(ledger, fit):
    number = interrupt(ledger, fit)
    with charged(ledger, fit, estimator="DPFC", number=number) as (_, said):
        assert ledger.history[0].statement.charge == said.charge is not None


def test_charged_goes_on_with_a_charge_of_an_older_release(ledger, fit):
    number = ledger.charge(fit, estimator="DPFC")
    with charged(ledger, fit, estimator="DPFC", number=number) as (same, said):
        assert (same, said.charge) == (number, None)


def test_charged_goes_on_without_a_second_charge(ledger, fit):
    number = interrupt(ledger, fit)
    with charged(ledger, fit, estimator="DPFC", number=number) as (same, _):
        assert same == number == 1
    assert [charge.status for charge in ledger.history] == ["fitted"]


def test_charged_does_not_go_on_with_a_finished_fit(ledger, fit):
    number = interrupt(ledger, fit)
    with charged(ledger, fit, estimator="DPFC", number=number):
        pass
    with (
        pytest.raises(PrivacyError, match="got one that is finished"),
        charged(ledger, fit, estimator="DPFC", number=number),
    ):
        pytest.fail("the body ran")


@pytest.mark.parametrize(
    ("number", "epsilon", "name"),
    [(2, 0.5, "DPFC"), (0, 0.5, "DPFC"), (1, 0.6, "DPFC"), (1, 0.5, "DPNewton")],
)
def test_charged_does_not_go_on_with_another_fit(ledger, fit, number, epsilon, name):
    interrupt(ledger, fit)
    other = make_statement(epsilon=epsilon)
    with (
        pytest.raises(PrivacyError, match="that of the interrupted fit"),
        charged(ledger, other, estimator=name, number=number),
    ):
        pytest.fail("the body ran")
    assert len(ledger.history) == 1


def test_a_ledger_that_is_put_back_as_it_was_loses_no_fit(tmp_path, fit):
    """An IndexError ended the fit."""
    path = tmp_path / "ledger"
    ledger = PrivacyLedger(path, dataset="a", epsilon=3.0, delta=1e-5)
    before = path.read_bytes()
    with (
        pytest.warns(PrivacyWarning, match="is paid for.* charge 1 is gone"),
        charged(ledger, fit, estimator="DPFC"),
    ):
        path.write_bytes(before)
    assert not ledger.history
