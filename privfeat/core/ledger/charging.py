"""How a fit is charged: once, right before its first draw, for all its processes."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace

import numpy as np

from privfeat._warnings import warn, warnings_shown
from privfeat.core.callers.candidates import check_candidates_around
from privfeat.core.callers.folds import SCORES, uncovered_or_scored
from privfeat.core.callers.several_fits import several_fits
from privfeat.core.ledger.privacy_ledger import PrivacyLedger
from privfeat.core.ledger.runs import Tokens, check_running, finish
from privfeat.core.statement.privacy_statement import PrivacyStatement
from privfeat.core.sums.processes import Team, current_team
from privfeat.exceptions import BudgetExceededError, LedgerError, PrivacyError

NOTHING_DRAWN = "Nothing was drawn, and nothing was charged."
# Whether the fit is part of another, such as a run of a search.
_AROUND: ContextVar[bool] = ContextVar("a charged whole", default=False)
MAYBE_CHARGED = "Whether it was charged, the history of its ledger says."
_SPENT = 2  # what a process tells the others; 1: it could not charge, 0: it could


@contextmanager
def charged(
    ledger: PrivacyLedger | None,
    statement: PrivacyStatement,
    *,
    estimator: str,
    number: int | None = None,
    tokens: Tokens = (None,),
) -> Iterator[Callable[[], tuple[int | None, PrivacyStatement]]]:
    """Yield what charges the fit that the body makes, once, right before it draws.

    It returns the number of the charge, in the first process alone, and the statement
    with the random name of the charge. What the body raises before costs nothing; the
    charge stands if the body fails after it. A fit that goes on after an interruption
    passes its ``number`` and is not charged again. ``tokens`` are those of its newest
    checkpoint whenever they are read: they change with it
    (`privfeat.core.ledger.runs`). Without a ledger nothing is charged.

    A fit for which too little is left is refused before the body starts, and once more
    by its charge. So is one in folds where one record can move others, whose charge
    would be too small; without a ledger it is warned of. A fit whose scores a search
    will choose by is warned of, if nobody did as it asked for the folds. Of several
    processes that fit together the first charges for all, and none goes on unless it
    could. ValueError in a search that charges some of its candidates only.
    """
    team, around = current_team(), uncovered_or_scored(statement.adjacency)
    choice, scored, chosen = around
    if scored or chosen:
        check_candidates_around(in_folds=scored)
    if team.size > 1 and len(set(team.each(ledger is not None))) > 1:
        raise PrivacyError("all processes must have a ledger, or none.")
    if scored and choice is None and statement.private and not _AROUND.get():
        warn(f"{SCORES.format(of='')}.")
    notes: dict[type[BaseException], str] = {BaseException: NOTHING_DRAWN}
    # one that goes on was; and the first process may charge before another hears of it
    if ledger is not None and (number is not None or team.index > 0):
        notes = {BaseException: MAYBE_CHARGED, BudgetExceededError: NOTHING_DRAWN}
    if ledger is None:
        if choice is not None and statement.private:
            warn(
                "a statement holds for the records that a fit was given, and does not "
                "compose where one record more can move or change others, got "
                f"{choice.what}. {choice.remedy}"
            )

        def begin() -> tuple[None, PrivacyStatement]:
            notes[BaseException] = "The fit had drawn noise: its budget is spent."
            return None, statement

        # what a run, or a step, of a charged whole raises is noted by the whole
        with _noted({} if _AROUND.get() else notes), warnings_shown():
            yield begin
        return

    name: str | None = uuid.uuid4().hex

    def look() -> None:
        nonlocal name
        if choice is not None:
            raise PrivacyError(
                "a fit with a ledger must get all records, or folds of HashKFold, as "
                "they are: elsewhere one record more can move many others, which the "
                f"charge does not cover, got {choice.what}. {choice.remedy}"
            )
        if (several := several_fits()) is not None:
            what, remedy = several
            raise PrivacyError(
                f"a ledger must be charged for one fit, got {what}: where a later one "
                f"is refused, those before it are charged and lost. {remedy}"
            )
        if team.index > 0:
            return
        if number is None:
            ledger.check_room(replace(statement, charge=name))
        else:
            name = check_running(
                ledger, number, tokens, statement=statement, estimator=estimator
            )

    def charge() -> None:
        nonlocal number
        if team.index == 0 and number is None:
            named = replace(statement, charge=name)
            number = ledger.charge(named, estimator=estimator)

    def begin_charged() -> tuple[int | None, PrivacyStatement]:
        # it may be written when it fails
        notes.update({BaseException: MAYBE_CHARGED, BudgetExceededError: NOTHING_DRAWN})
        _by_all(team, charge)
        known = "" if number is None else f", as number {number} of its ledger"
        del notes[BudgetExceededError]
        notes[BaseException] = f"The fit was charged{known}: its budget is spent."
        return number, replace(statement, charge=_of_first(team, name))

    with _noted(notes), warnings_shown():
        _by_all(team, look)
        yield begin_charged
        if number is not None:  # the first process has it
            _finish(ledger, number, tokens)


def _by_all(team: Team, act: Callable[[], None]) -> None:
    """Raise what ``act`` raises; in the other processes, that one of them failed."""
    refusal: Exception | None = None
    try:
        act()
    except Exception as error:  # noqa: BLE001 - the others wait to hear of it
        refusal = error
    spent = isinstance(refusal, BudgetExceededError)
    said_by_all = team.each(_SPENT if spent else refusal is not None)
    if refusal is not None:
        raise refusal
    if _SPENT in said_by_all:
        raise BudgetExceededError(
            "the budget must have room for the fit, but another process found too "
            "little left: see its output."
        )
    if any(said_by_all):
        raise PrivacyError("another process could not charge the ledger.")


def _of_first(team: Team, name: str | None) -> str | None:
    """Return the name that the first process has: None of an older release's charge."""
    bits = np.frombuffer(bytes.fromhex(name or "00" * 16), np.int64)
    bits = team.from_first(bits, "name of the charge")
    return bits.tobytes().hex() if np.any(bits) else None


def _finish(ledger: PrivacyLedger, number: int, tokens: Tokens) -> None:
    """Note that a fit is finished. It is paid for: it must not be lost by this.

    But it is a PrivacyError if another run has gone on, or finished.
    """
    try:
        finish(ledger, number, tokens)
    except (LedgerError, MemoryError) as error:
        why = str(error) or type(error).__name__
        warn(f"a fit is paid for, but was not marked as finished in its ledger: {why}")


@contextmanager
def _noted(notes: dict[type[BaseException], str]) -> Iterator[None]:
    """Add the last note of its kind to the error, Ctrl-C perhaps, that ends the body.

    In one body from before the charge to the end: between two a Ctrl-C had no note.
    """
    token = _AROUND.set(True)
    try:
        yield
    except BaseException as error:
        for kind, note in reversed(notes.items()):
            if isinstance(error, kind):
                error.add_note(note)
                break
        raise
    finally:
        _AROUND.reset(token)
