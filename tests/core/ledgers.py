"""Statements to charge, and what other processes do to a ledger.

A module of its own, and light, because other processes import it by name.
"""

import itertools
import multiprocessing
import os
import resource
import signal
import sqlite3
from contextlib import contextmanager
from pathlib import Path

from privfeat.core.accounting.calibration import plan_releases
from privfeat.core.accounting.plan import Query
from privfeat.core.ledger import charging
from privfeat.core.ledger.privacy_ledger import PrivacyLedger
from privfeat.core.statement.privacy_statement import PrivacyStatement
from privfeat.exceptions import BudgetExceededError, LedgerError

CONTEXT = multiprocessing.get_context("forkserver")
# Imported once, not by every child; JAX computes nothing before the children fork.
CONTEXT.set_forkserver_preload(["privfeat.linear", "tests.core.ledgers"])


def make_statement(
    *, count=3, sampling_prob=1.0, seeded=False, unit="record", **budget
):
    query = Query("gradient", 1.0, count=count, sampling_prob=sampling_prob)
    plan = plan_releases([query], **budget)
    return PrivacyStatement.from_plan(plan, public=(), seeded=seeded, unit=unit)


@contextmanager
def charged(ledger, statement, **options):
    """Charge at once, as a fit does whose first draw comes first."""
    with charging.charged(ledger, statement, **options) as charge:
        yield charge()


def in_process(target, *args):
    """Start ``target`` in a process of its own."""
    process = CONTEXT.Process(target=target, args=args, daemon=True)
    process.start()
    return process


def exit_code(target, *args):
    process = in_process(target, *args)
    process.join(timeout=900)
    return process.exitcode


def kill_this_process():
    os.kill(os.getpid(), signal.SIGKILL)


def draw_noise(path):
    """Stand for the first draw: whatever is on disk now was released."""
    Path(path).touch()


def fit_until_killed(ledger, statement, noise, step):
    """Charge, draw, finish; killed before the ``step``-th thing done to the store."""
    left = itertools.count(step, -1)
    store = type(ledger._store)
    genuine = store.transaction

    def next_step():
        if next(left) == 0:
            kill_this_process()

    class Counted:
        def __init__(self, rows):
            self.rows = rows

        def __getattr__(self, name):
            next_step()
            return getattr(self.rows, name)

    @contextmanager
    def transaction(self, *, write):
        next_step()
        with genuine(self, write=write) as rows:
            yield Counted(rows)
            next_step()  # all is said, nothing is committed
        next_step()

    store.transaction = transaction
    with charged(ledger, statement, estimator="Killed"):
        draw_noise(noise)


def charge_often(ledger, statement, n_charges):
    """Charge until done or until the budget is full."""
    for _ in range(n_charges):
        try:
            ledger.charge(statement, estimator="Child")
        except BudgetExceededError:
            return


def create_and_tell(path, dataset, connection):
    """Create a budget if its name is granted; send whether it was."""
    try:
        PrivacyLedger(path, dataset=dataset, epsilon=3.0, delta=1e-5)
    except ValueError:
        connection.send(False)
    else:
        connection.send(True)


def charge_for_ever(ledger, statement, connection):
    """Tell of every charge as soon as noise could be drawn."""
    while True:
        connection.send(ledger.charge(statement, estimator="Child"))


def charge_on_a_full_disk(ledger, statement, connection, n_bytes):
    """Charge while no file may grow past ``n_bytes``; send what went through."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, n_bytes))
    connection.send(_charge_until_refused(ledger, statement))


def charge_as_a_stranger(ledger, statement, connection):
    """Charge as a user who owns none of the files."""
    if os.getuid() == 0:
        os.setgroups([])
        os.setresgid(65534, 65534, 65534)
        os.setresuid(65534, 65534, 65534)
    connection.send(_charge_until_refused(ledger, statement))


def _charge_until_refused(ledger, statement):
    numbers = []
    try:
        for _ in range(200):
            numbers.append(ledger.charge(statement, estimator="Child"))
    except LedgerError as error:
        return numbers, str(error)
    return numbers, ""


def create_until_killed(path, step):
    """Create a ledger; killed before the ``step``-th call to the operating system."""
    die_at(step)
    PrivacyLedger(path, dataset="a", epsilon=3.0, delta=1e-5)


def charge_until_killed(path, step, n_bytes, opening=False):
    """Charge; killed in the ``step``-th call to the operating system, or to SQLite.

    If that call writes, its first ``n_bytes`` get through. With ``opening`` the steps
    are counted from before the ledger is opened.
    """
    if opening:
        die_at(step, n_bytes)
    ledger = PrivacyLedger(path, dataset="a")
    if not opening:
        die_at(step, n_bytes)
    ledger.charge(make_statement(rho=1e-4), estimator="Killed")


def die_at(step, n_bytes=0):
    left = itertools.count(step, -1)

    def dying(genuine):
        def call(*args, **kwargs):
            if next(left) == 0:
                if genuine is pwrite:
                    file, content, offset = args
                    pwrite(file, content[:n_bytes], offset)
                kill_this_process()
            return genuine(*args, **kwargs)

        return call

    pwrite = os.pwrite
    for name in ("open", "pread", "pwrite", "fsync", "ftruncate", "link", "close"):
        setattr(os, name, dying(getattr(os, name)))

    class Connection(sqlite3.Connection):
        execute = dying(sqlite3.Connection.execute)
        close = dying(sqlite3.Connection.close)

    connect = sqlite3.connect
    sqlite3.connect = lambda *a, **k: connect(*a, **k, factory=Connection)


def charge_and_tell(path, statement, n_charges, connection):
    """Charge until done or until the budget is full; send the numbers."""
    ledger, numbers = PrivacyLedger(path, dataset="a"), []
    try:
        for _ in range(n_charges):
            numbers.append(ledger.charge(statement, estimator="Child"))
    except BudgetExceededError:
        pass
    connection.send(numbers)
