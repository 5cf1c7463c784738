"""Statements to charge, and what other processes do to a ledger.

A module of its own, and light, because other processes import it by name.
"""

import itertools
import multiprocessing
import os
import resource
import signal
from contextlib import contextmanager
from pathlib import Path

from privfeat.core.calibration import plan_releases
from privfeat.core.charging import charged
from privfeat.core.ledger import PrivacyLedger
from privfeat.core.plan import Query
from privfeat.core.statement import PrivacyStatement
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

    @contextmanager
    def transaction(self, *, write):
        next_step()
        with genuine(self, write=write) as execute:

            def counted(sql, **values):
                next_step()
                return execute(sql, **values)

            yield counted
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
    left = itertools.count(step, -1)

    def dying(genuine):
        def call(*args, **kwargs):
            if next(left) == 0:
                kill_this_process()
            return genuine(*args, **kwargs)

        return call

    import sqlite3

    class Connection(sqlite3.Connection):
        execute = dying(sqlite3.Connection.execute)
        close = dying(sqlite3.Connection.close)

    genuine = sqlite3.connect
    sqlite3.connect = lambda *a, **k: genuine(*a, **k, factory=Connection)
    os.link, os.fsync = dying(os.link), dying(os.fsync)
    PrivacyLedger(path, dataset="a", epsilon=3.0, delta=1e-5)
