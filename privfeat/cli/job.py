"""One command run by several processes: how they find each other, and how they end."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from privfeat.cli.common import CommandError


@contextmanager
def joined_job(args: argparse.Namespace) -> Iterator[None]:
    """Connect to the other processes if asked; if the body fails, leave at once."""
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
    except BaseException:
        leave_at_once()
        raise


@contextmanager
def all_of_job(args: argparse.Namespace) -> Iterator[bool]:
    """Fit with all processes of the job if asked; give whether this is the first."""
    if not args.distributed:
        yield True
        return
    from privfeat.core.sums.processes import all_processes, current_team

    with all_processes():
        yield current_team().index == 0


def _address(args: argparse.Namespace) -> dict[str, Any]:
    """Return where the processes meet, if the command line says it."""
    given = (args.coordinator, args.processes, args.process)
    if all(value is None for value in given):
        return {}
    if not args.distributed or None in given:
        raise CommandError(
            "--coordinator, --processes and --process must be given together, with "
            "--distributed."
        )
    host, _, port = args.coordinator.rpartition(":")
    if not (host and port.isascii() and port.isdigit() and int(port) < 2**16):
        raise CommandError(
            "--coordinator must be HOST:PORT, such as localhost:9911, got "
            f"{args.coordinator!r}."
        )
    if not 0 <= args.process < args.processes:
        raise CommandError(
            f"--process must be in [0, {args.processes}), got {args.process}."
        )
    names = ("coordinator_address", "num_processes", "process_id")
    return dict(zip(names, given, strict=True))
