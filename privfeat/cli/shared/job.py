"""One command run by several processes: how they find each other, and how they end."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from privfeat.cli.shared.terminal import CommandError, status_of
from privfeat.exceptions import BudgetExceededError


def options() -> ArgumentParser:
    """Return the options that make this process one of several."""
    parent = ArgumentParser(add_help=False)
    add = parent.add_argument_group("several processes").add_argument
    add(
        "--distributed",
        action="store_true",
        help="fit by all processes of the job together: start this command in each, by "
        "srun, mpirun or another launcher that JAX knows; the first saves the model",
    )
    where = "with --distributed, without a launcher: process 0, and a free port"
    add("--coordinator", metavar="HOST:PORT", help=where)
    add("--processes", metavar="N", type=int, help="with --coordinator: how many")
    add("--process", metavar="I", type=int, help="with --coordinator: this one, from 0")
    return parent


@contextmanager
def joined_job(args: Namespace) -> Iterator[None]:
    """Connect to the other processes if asked; if the body fails, leave at once.

    But a budget that has too little left ends all of them, and JAX waits for that: it
    would abort those that leave after the first.
    """
    address = _address(args)
    if not args.distributed:
        yield
        return
    from privfeat.core.sums.leaving import leave_at_once
    from privfeat.distributed import initialize

    try:
        initialize(**address)
    except (RuntimeError, ValueError) as error:
        raise CommandError(
            "--distributed must run under a launcher that JAX knows, such as srun or "
            "mpirun, or be given --coordinator, --processes and --process: "
            f"{str(error).splitlines()[0]}"
        ) from error
    try:
        yield
    except BudgetExceededError:
        raise
    except BaseException as error:
        leave_at_once(status_of(error))
        raise


@contextmanager
def all_of_job(args: Namespace) -> Iterator[bool]:
    """Fit with all processes of the job if asked; give whether this is the first."""
    if not args.distributed:
        yield True
        return
    from privfeat.core.sums.processes import all_processes, current_team

    with all_processes():
        yield current_team().index == 0


def _address(args: Namespace) -> dict[str, Any]:
    """Return where the processes meet, if the command line says it."""
    address, count, index = args.coordinator, args.processes, args.process
    if address is count is index is None:
        return {}
    if not args.distributed or None in (address, count, index):
        raise CommandError(
            "--coordinator, --processes and --process must be given together, with "
            "--distributed."
        )
    host, _, port = address.rpartition(":")
    if not (host and port.isascii() and port.isdigit() and int(port) < 2**16):
        raise CommandError(
            f"--coordinator must be HOST:PORT, such as localhost:9911, got {address!r}."
        )
    if not 0 <= index < count:
        raise CommandError(f"--process must be in [0, {count}), got {index}.")
    return {
        "coordinator_address": address,
        "num_processes": count,
        "process_id": index,
    }
