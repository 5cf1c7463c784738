"""What a command says to the person who started it."""

import signal
import threading
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from privfeat._warnings import STDERR
from privfeat.exceptions import BudgetExceededError, LedgerError

if TYPE_CHECKING:
    from privfeat import PrivacyLedger

NOTHING_CHARGED = "Nothing was charged."


class Terminated(KeyboardInterrupt):
    """SIGTERM, as a scheduler sends it: a command ends as by Ctrl-C."""


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Raise `Terminated` in the body at SIGTERM, unless the caller answers it."""
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return

    def end(*_: object) -> None:
        raise Terminated

    signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


class CommandError(Exception):
    """A command cannot do what was asked; the message says why."""


def shows_progress(args: Namespace) -> bool:
    """Return whether to show progress: on a terminal, without ``--quiet``."""
    return STDERR.isatty() and not args.quiet


def progress(args: Namespace, text: str) -> None:
    """Print what is being done, if progress is shown."""
    if shows_progress(args):
        print(text, file=STDERR, flush=True)


def warn(sentence: str) -> None:
    """Print a warning to the person who started the command."""
    print(f"privfeat: warning: {sentence}", file=STDERR)


@contextmanager
def before_the_charge(args: Namespace) -> Iterator[None]:
    """Note of what fails in the body that nothing was charged, if there is a ledger."""
    try:
        yield
    except Exception as error:
        if args.ledger is not None:
            error.add_note(NOTHING_CHARGED)
        raise


@contextmanager
def charged_within(ledger: "PrivacyLedger | None") -> Iterator[None]:
    """Note the same of what fails in the body before its charge, as the ledger says.

    Where another command charges it meanwhile, or it cannot be read, nothing is noted,
    but of a fit that the budget has no room for.
    """
    before = _charges(ledger)
    try:
        yield
    except Exception as error:
        refused = isinstance(error, BudgetExceededError)
        if refused or (before is not None and _charges(ledger) == before):
            error.add_note(NOTHING_CHARGED)
        raise


def _charges(ledger: "PrivacyLedger | None") -> int | None:
    try:
        return None if ledger is None else len(ledger.history)
    except LedgerError:
        return None
