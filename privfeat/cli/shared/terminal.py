"""What a command says to the person who started it."""

import _thread
import signal
import sys
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
ASK_LEDGER = (
    "The ledger cannot be read now. Whether this was charged, its history says: ask it "
    "by privfeat budget history."
)
COSTS = (NOTHING_CHARGED, ASK_LEDGER)


# SIGTERM, as a scheduler sends it, SIGHUP of a connection that is lost, and SIGXCPU of
# a limit of processor time; Windows does not know the last two.
_POSIX = ("SIGHUP", "SIGXCPU")
ENDS = (
    signal.SIGTERM,
    *(getattr(signal, name) for name in _POSIX if hasattr(signal, name)),
)
INTERRUPTED = tuple(128 + number for number in (signal.SIGINT, *ENDS))


class Terminated(KeyboardInterrupt):
    """SIGTERM, or another signal to end: a command ends as by Ctrl-C."""

    def __init__(self, number: int = signal.SIGTERM) -> None:
        super().__init__()
        self.number = number


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Raise `Terminated` in the body at SIGTERM and the like, unless answered already.

    Python drops what a signal raises in a callback of the garbage collector, and so
    may anything that C calls. Then the signal is sent until it is answered, SIGINT as
    well: one that comes right before the body begins to wait does not wake it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    dropped, answered = sys.unraisablehook, threading.Event()

    def end(number: int, *_: object) -> None:
        answered.set()
        raise KeyboardInterrupt if number == signal.SIGINT else Terminated(number)

    def send_again(found: "sys.UnraisableHookArgs") -> None:
        if not isinstance(found.exc_value, KeyboardInterrupt):
            dropped(found)
            return
        while True:  # the next one may come while this runs, and be dropped as well
            try:
                number = getattr(found.exc_value, "number", signal.SIGINT)
                answered.clear()
                if number not in own:  # `end` does not handle it: sent once
                    threading.Timer(0.02, _send, [number]).start()
                    return
                again = number, answered
                threading.Thread(target=_send_until, args=again, daemon=True).start()
                return
            except KeyboardInterrupt:
                continue

    usual = {
        **dict.fromkeys(ENDS, signal.SIG_DFL),
        signal.SIGINT: signal.default_int_handler,
    }
    own = {n: answer for n, answer in usual.items() if signal.getsignal(n) == answer}
    for number in own:
        signal.signal(number, end)
    sys.unraisablehook = send_again
    try:
        yield
    finally:
        answered.set()
        sys.unraisablehook = dropped
        for number, answer in own.items():
            signal.signal(number, answer)


def _send_until(number: signal.Signals, answered: threading.Event) -> None:
    while not answered.wait(0.02):
        _send(number)


def _send(number: signal.Signals) -> None:
    """Send a signal to the main thread, which wakes what it waits for."""
    if hasattr(signal, "pthread_kill"):
        main = threading.main_thread().ident
        signal.pthread_kill(main, number)  # type: ignore[arg-type]
    else:  # Windows, where nothing is woken
        _thread.interrupt_main(number)


def status_of(error: BaseException) -> int:
    """Return the exit status of a command that ended so: docs/reference/commands.md."""
    if isinstance(error, KeyboardInterrupt):
        return 128 + getattr(error, "number", signal.SIGINT)
    return 3 if isinstance(error, BudgetExceededError) else 1


class CommandError(Exception):
    """A command cannot do what was asked; the message says why."""


def progress(args: Namespace, text: str) -> None:
    """Print what is being done, on a terminal and without ``--quiet``."""
    if STDERR.isatty() and not args.quiet:
        print(text, file=STDERR, flush=True)


def warn(sentence: str) -> None:
    """Print a warning to the person who started the command."""
    print(f"privfeat: warning: {sentence}", file=STDERR)


@contextmanager
def charged_within(ledger: "PrivacyLedger | None") -> Iterator[None]:
    """Note of what ends the body before its charge that nothing was charged.

    Where another command charges it meanwhile nothing is noted, but of a fit that the
    budget has no room for; where the ledger cannot be read any more, how to ask it.
    """
    before = _charges(ledger)
    try:
        yield
    except (Exception, KeyboardInterrupt) as error:
        after, notes = _charges(ledger), getattr(error, "__notes__", ())
        told = any("charged" in note or "spent" in note for note in notes)
        if isinstance(error, KeyboardInterrupt) and told:
            pass  # in the middle of a charge, which has said so
        elif isinstance(error, BudgetExceededError) or (after == before is not None):
            error.add_note(NOTHING_CHARGED)
        elif before is not None and after is None and not told:
            error.add_note(ASK_LEDGER)
        raise


def _charges(ledger: "PrivacyLedger | None") -> int | None:
    try:
        return None if ledger is None else len(ledger.history)
    except LedgerError:
        return None
