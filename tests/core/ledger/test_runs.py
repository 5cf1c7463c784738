"""Of several runs of a charged fit one goes on: that which has the newest token."""

import pytest

from privfeat import PrivacyError
from privfeat.core.ledger.runs import check_running, finish, newest_checkpoint
from tests.core.ledgers import charged, make_statement


@pytest.fixture
def fit():
    return make_statement(rho=1e-4)


@pytest.fixture
def charge(ledger, fit):
    """Charge three fits, and return the number of the second."""
    return [ledger.charge(fit, estimator=name) for name in ("a", "b", "c")][1]


def write(ledger, number, tokens):
    """Write a checkpoint, and return its tokens."""
    with newest_checkpoint(ledger, number, tokens) as written:
        return written


def tokens_of(ledger):
    return [charge.token for charge in ledger.history]


def test_each_checkpoint_has_its_token_and_that_of_the_one_before(ledger, charge):
    first = write(ledger, charge, [None])
    second = write(ledger, charge, first)
    assert first == [first[0], None]
    assert second == [second[0], first[0]]
    assert first[0] != second[0]
    assert tokens_of(ledger) == [None, second[0], None]
    assert {charge.status for charge in ledger.history} == {"asked"}


def test_a_charge_does_not_show_its_token(ledger, charge):
    """With it, another run could go on."""
    token = write(ledger, charge, [None])[0]
    (shown,) = [one for one in ledger.history if one.token]
    assert token not in repr(shown)
    assert shown.sha256 not in repr(shown)


def test_a_checkpoint_that_the_ledger_does_not_know_goes_on(ledger, charge):
    """Written by a run that was killed before the ledger took its token."""
    first = write(ledger, charge, [None])
    written = write(ledger, charge, ["unknown to the ledger", first[0]])
    assert tokens_of(ledger)[1] == written[0]


@pytest.mark.parametrize("tokens", [(), (None,), ("another", None)])
def test_a_run_from_an_older_checkpoint_writes_none(ledger, charge, fit, tokens):
    newest = write(ledger, charge, [None])[0]
    body = []
    with pytest.raises(PrivacyError, match="got an older one"):
        with newest_checkpoint(ledger, charge, tokens):
            body.append("written")
    with pytest.raises(PrivacyError, match="got an older one"):
        check_running(ledger, charge, tokens, statement=fit, estimator="b")
    with pytest.raises(PrivacyError, match="got an older one"):
        finish(ledger, charge, tokens)
    assert body == []
    assert tokens_of(ledger)[1] == newest
    check_running(ledger, charge, [newest], statement=fit, estimator="b")


def test_a_finished_fit_does_not_go_on(ledger, charge, fit):
    tokens = write(ledger, charge, [None])
    finish(ledger, charge, tokens)
    with pytest.raises(PrivacyError, match="got one that is finished"):
        write(ledger, charge, [*tokens, None])
    with pytest.raises(PrivacyError, match="got one that is finished"):
        check_running(ledger, charge, [*tokens, None], statement=fit, estimator="b")
    assert [one.status for one in ledger.history] == ["asked", "fitted", "asked"]


def test_of_two_runs_that_write_no_more_checkpoints_one_finishes(ledger, fit):
    """Of a copied folder: both draw the steps that are left, for one charge."""
    begun = {"estimator": "d", "number": ledger.charge(fit, estimator="d")}
    tokens = write(ledger, begun["number"], [None])
    released = []

    def run_beside_a_copy():
        with charged(ledger, fit, **begun, tokens=tokens):
            with charged(ledger, fit, **begun, tokens=list(tokens)):
                pass
            released.append("by the copy")
        released.append("by the run")

    with pytest.raises(PrivacyError, match="got one that is finished"):
        run_beside_a_copy()
    assert released == ["by the copy"]


def test_a_run_that_another_has_overtaken_does_not_finish(ledger, fit):
    begun = {"estimator": "d", "number": ledger.charge(fit, estimator="d")}
    mine = [None]
    with pytest.raises(PrivacyError, match="got an older one"):
        with charged(ledger, fit, **begun, tokens=mine):
            write(ledger, begun["number"], [None])
    assert [one.status for one in ledger.history] == ["asked"]


def test_a_run_finishes_with_the_token_of_its_last_checkpoint(ledger, fit):
    mine = [None]
    with charged(ledger, fit, estimator="d", tokens=mine) as (number, _):
        mine[:] = write(ledger, number, mine)[:1]
    assert [one.status for one in ledger.history] == ["fitted"]


def test_a_checkpoint_that_fails_changes_nothing(ledger, charge):
    tokens = write(ledger, charge, [None])
    with pytest.raises(ZeroDivisionError):
        with newest_checkpoint(ledger, charge, tokens):
            raise ZeroDivisionError
    assert tokens_of(ledger) == [None, tokens[0], None]
    write(ledger, charge, tokens)


@pytest.mark.parametrize(
    ("number", "estimator", "rho"),
    [(2, "c", 1e-4), (2, "b", 1e-5), (1, "b", 1e-4), (4, "b", 1e-4), (0, "b", 1e-4)],
)
def test_a_charge_of_another_fit_does_not_go_on(ledger, charge, number, estimator, rho):
    other = make_statement(rho=rho)
    with pytest.raises(PrivacyError, match="must be that of the interrupted fit"):
        check_running(ledger, number, [None], statement=other, estimator=estimator)
