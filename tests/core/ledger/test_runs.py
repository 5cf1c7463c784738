"""Of several runs of a charged fit one goes on: that which has the newest token."""

import pytest

from privfeat import PrivacyError
from privfeat.core.ledger.charging import check_running, newest_checkpoint
from tests.core.ledgers import make_statement


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
    assert body == []
    assert tokens_of(ledger)[1] == newest
    check_running(ledger, charge, [newest], statement=fit, estimator="b")


def test_a_finished_fit_does_not_go_on(ledger, charge, fit):
    tokens = write(ledger, charge, [None])
    ledger.finish(charge)
    with pytest.raises(PrivacyError, match="got one that is finished"):
        write(ledger, charge, [*tokens, None])
    with pytest.raises(PrivacyError, match="got one that is finished"):
        check_running(ledger, charge, [*tokens, None], statement=fit, estimator="b")
    assert [one.status for one in ledger.history] == ["asked", "fitted", "asked"]


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
