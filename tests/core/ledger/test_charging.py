"""A fit is charged before its first draw, and stays charged if it fails."""

import sys
import warnings
from threading import Thread
from types import CodeType

import numpy as np
import pytest

from privfeat import BudgetExceededError, LedgerError, PrivacyError, PrivacyLedger
from privfeat.core.ledger import charging
from privfeat.exceptions import PrivacyWarning
from tests.core.ledgers import charged, make_statement


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


def test_what_fails_before_the_charge_costs_nothing(ledger, fit):
    with (
        pytest.raises(MemoryError) as caught,
        charging.charged(ledger, fit, estimator="DPFC"),
    ):
        raise MemoryError
    assert ledger.history == []
    assert caught.value.__notes__ == [charging.NOTHING_DRAWN]


def test_a_charge_that_fails_may_stand(ledger, fit, plant):
    """The note said that nothing was charged; the row was written."""
    genuine = plant.genuine("charge of a ledger")

    def fail(self, *args, **kwargs):
        genuine(self, *args, **kwargs)
        raise LedgerError("the disk is away")

    plant("charge of a ledger", fail)
    with pytest.raises(LedgerError) as caught, charged(ledger, fit, estimator="DPFC"):
        pytest.fail("the body ran")
    assert len(ledger.history) == 1
    assert caught.value.__notes__ == [
        "Whether it was charged, the history of its ledger says."
    ]


def fail_within(ledger, fit):
    with (
        charged(ledger, fit, estimator="Search"),
        charging.charged(None, fit, estimator="DPFC"),
    ):
        raise MemoryError


def test_a_run_leaves_it_to_the_whole_to_say_what_was_charged(ledger, fit):
    with pytest.raises(MemoryError) as caught:
        fail_within(ledger, fit)
    (note,) = caught.value.__notes__
    assert note.startswith("The fit was charged")


def test_of_two_fits_that_found_room_one_is_charged(ledger):
    """Both look before either charges: the second is refused before it draws."""
    fit = make_statement(epsilon=2.5)
    with charging.charged(ledger, fit, estimator="DPFC") as charge:
        with charged(ledger, fit, estimator="DPLeastSquares"):
            pass
        with pytest.raises(BudgetExceededError):
            charge()
    assert [charge.estimator for charge in ledger.history] == ["DPLeastSquares"]


@pytest.mark.slow
def test_an_interrupt_after_the_charge_says_so_at_every_line(ledger):
    """Ctrl-C between the charge and the fit: the command said "No budget was spent"."""
    codes = [charging.charged.__wrapped__.__code__, charging._by_all.__code__]
    codes += [one for one in codes[0].co_consts if isinstance(one, CodeType)]
    fit, told = make_statement(epsilon=1e-3), set()

    def interrupt_at(place, frame, event):
        if frame.f_code not in codes:
            return None
        if event == "line" and (frame.f_code, frame.f_lineno) == place:
            raise KeyboardInterrupt
        return lambda frame, event, _: interrupt_at(place, frame, event)

    lines = [(c, line) for c in codes for line in {n for *_, n in c.co_lines() if n}]
    for place in lines:
        charges, tracing = len(ledger.history), sys.gettrace()
        sys.settrace(lambda frame, event, _, at=place: interrupt_at(at, frame, event))
        try:
            with charged(ledger, fit, estimator="DPFC"):
                sys.settrace(tracing)
        except KeyboardInterrupt as error:
            sys.settrace(tracing)
            if len(ledger.history) > charges:
                told.update(getattr(error, "__notes__", ["nothing"]))
        finally:
            sys.settrace(tracing)
    kinds = {"".join(c for c in note if not c.isdigit()) for note in told}
    assert kinds == {
        "Whether it was charged, the history of its ledger says.",
        "The fit was charged, as number  of its ledger: its budget is spent.",
    }


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
