"""Threads and processes that charge one ledger, and are killed."""

import random
import threading
import time

import pytest

from privfeat import LedgerError
from privfeat.core.ledger.opening import find_datasets
from privfeat.core.statement.composition import compose
from tests.core.ledgers import (
    CONTEXT,
    charge_for_ever,
    charge_often,
    create_and_tell,
    exit_code,
    fit_until_killed,
    in_process,
    make_statement,
)


def part_of(ledger, n_parts):
    """Return a statement of which exactly ``n_parts`` fit into the budget."""
    return make_statement(rho=ledger.remaining.rho / n_parts)


def test_threads_are_charged_exactly(ledger):
    fit, errors = part_of(ledger, 20), []

    def work():
        try:
            charge_often(ledger, fit, 8)
        except LedgerError as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert [charge.number for charge in ledger.history] == list(range(1, 21))


def test_of_processes_that_create_names_near_each_other_one_does(ledger, location):
    """Who looks at the names and then writes one is alone in the ledger."""
    names = ["parallel scans", "paralel scans", "Parallel-scans", "parallel scasn"]
    pipes = [CONTEXT.Pipe(duplex=False) for _ in names]
    processes = [
        in_process(create_and_tell, location, name, sender)
        for name, (_, sender) in zip(names, pipes, strict=True)
    ]
    granted = [receiver.recv() for receiver, _ in pipes]
    for process in processes:
        process.join()
    assert sum(granted) == 1
    (made,) = set(names) & set(find_datasets(location))
    assert granted[names.index(made)]


def check_processes(ledger, n_processes, n_each, n_fitting):
    fit = part_of(ledger, n_fitting)
    processes = [
        in_process(charge_often, ledger, fit, n_each) for _ in range(n_processes)
    ]
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * n_processes
    assert [c.number for c in ledger.history] == list(range(1, n_fitting + 1))
    assert ledger.spent.epsilon == compose([fit] * n_fitting).epsilon <= 3.0


def test_processes_are_charged_exactly(ledger):
    check_processes(ledger, n_processes=4, n_each=4, n_fitting=12)


@pytest.mark.slow
def test_a_thousand_charges_of_eight_processes_are_exact(ledger):
    """Each of the eight asks for more than its part, so the budget is what stops."""
    check_processes(ledger, n_processes=8, n_each=130, n_fitting=1000)


@pytest.mark.slow
def test_a_fit_killed_at_any_step_is_charged_if_it_drew(ledger, tmp_path):
    """Every call to the store, by counting up until the process lives to the end."""
    fit, step, code, drew = make_statement(rho=1e-4), 0, None, []
    while code != 0:
        n_before, noise = len(ledger.history), tmp_path / str(step)
        code = exit_code(fit_until_killed, ledger, fit, str(noise), step)
        n_charged = len(ledger.history) - n_before
        assert code in (0, -9)
        assert n_charged in (0, 1)
        assert n_charged >= noise.exists()
        drew.append(noise.exists())
        ledger.charge(fit, estimator="Next")  # and nobody is kept waiting
        step += 1
    assert step > 8
    assert drew == sorted(drew)
    assert 2 <= sum(drew) < step
    assert (
        ledger.spent.epsilon == compose([c.statement for c in ledger.history]).epsilon
    )


@pytest.mark.slow
def test_a_process_killed_at_any_moment_leaves_every_charge(ledger):
    """At random moments, the inside of a commit included."""
    fit, moments = make_statement(rho=1e-4), random.Random(0)
    for _ in range(8):
        n_before = len(ledger.history)
        receiver, sender = CONTEXT.Pipe(duplex=False)
        process = in_process(charge_for_ever, ledger, fit, sender)
        sender.close()
        assert receiver.poll(900)
        time.sleep(moments.uniform(0.0, 0.1))
        process.kill()
        process.join()
        told = n_before
        try:
            while True:
                told = receiver.recv()
        except EOFError:
            assert told <= len(ledger.history) <= told + 1
    assert ledger.charge(fit, estimator="Next") == len(ledger.history)
