"""Fits on several devices and hosts.

All devices of a process are used without being asked. For several processes, each on
its host or its devices, start the same script everywhere::

    from privfeat import DPFC, open_features
    from privfeat.distributed import all_processes, initialize

    initialize()                              # finds SLURM, Open MPI, TPU pods
    train = open_features("train.h5")["train"]
    with all_processes():
        clf = DPFC(epsilon=1, classes=range(10)).fit(train.X, train.y)

`DPSGDClassifier` and `DPSGDRegressor` are fitted likewise. The processes of a network
must have devices of one kind and number: it refuses others.
"""

import atexit
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from privfeat.core.sums.leaving import leave_now
from privfeat.core.sums.processes import Team, all_processes

__all__ = ["all_processes", "initialize"]

# So long after another process was killed, JAX aborts one that still works alone, and
# says nothing of its charge.
_HEARTBEAT_SECONDS = 300
_OWN_HOST = ("localhost", "127.0.0.1", "[::1]")


def initialize(**arguments: Any) -> None:
    """Connect the processes of one job; call it first, once in each.

    Parameters
    ----------
    **arguments
        Of ``jax.distributed.initialize``: ``coordinator_address`` (host:port of the
        first process), ``num_processes`` and ``process_id``. SLURM, Open MPI and TPU
        pods need none.

    Raises
    ------
    RuntimeError, ValueError
        If the port of the first process is in use. From JAX: if that process cannot be
        reached, the number of processes is not known, or JAX was used before.

    Notes
    -----
    If a connected process is killed or fails, the others raise `PrivacyError` at their
    next sum; if it is the first, JAX may abort them before. A host that is cut off is
    noticed after ``heartbeat_timeout_seconds``, 300 unless given; JAX then aborts the
    others. Until all have met, SIGINT and SIGTERM end a process at once, whatever would
    answer them.

    On CPUs the processes talk by gloo. Exact sums, and samples of the records, travel
    between them unencrypted and without noise: the network must be trusted as the hosts
    are. The first process waits for the others on all its addresses, or on this host
    alone if it is ``localhost``; ``coordinator_bind_address`` names another.
    """
    import jax

    jax.config.update(  # type: ignore[no-untyped-call]
        "jax_cpu_collectives_implementation", "gloo"
    )
    # its notifier would take SIGTERM for itself: a process that is told to end ends
    if "jax_enable_preemption_service" in jax.config.values:
        jax.config.update(  # type: ignore[no-untyped-call]
            "jax_enable_preemption_service", False
        )
    address = str(arguments.get("coordinator_address"))
    if address.rpartition(":")[0] in _OWN_HOST:  # else it listens to all hosts
        arguments = {"coordinator_bind_address": address} | arguments
    if arguments.get("process_id") == 0:
        _check_free(arguments.get("coordinator_bind_address", address))
    with _ended_by_signals():
        jax.distributed.initialize(
            **{"heartbeat_timeout_seconds": _HEARTBEAT_SECONDS} | arguments
        )
        # once they have met, all notice at once if one ends
        Team(jax.process_index(), jax.process_count()).check_same("job", b"")
    atexit.register(_leave)


def _check_free(address: str) -> None:
    """Raise RuntimeError if a program listens on this port; JAX would crash."""
    host, _, port = address.rpartition(":")
    if not (port.isascii() and port.isdigit() and int(port) < 2**16):
        return  # JAX says what is wrong
    here = host.strip("[]") if host in _OWN_HOST else "localhost"
    with suppress(OSError), socket.create_connection((here, int(port)), timeout=1.0):
        raise RuntimeError(
            f"coordinator_address must have a free port, got {port}, which another "
            "program uses. Pass one for each job."
        )


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Let signals end the process while it waits in C, where Python answers none."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    names = ("SIGINT", "SIGTERM", "SIGHUP")  # Windows has no third
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    before = {each: signal.getsignal(each) for each in numbers}
    for number, answer in before.items():
        if answer not in (signal.SIG_IGN, None):
            signal.signal(number, signal.SIG_DFL)
    try:
        yield
    finally:
        for number, answer in before.items():
            if answer is not None:  # it is not Python's
                signal.signal(number, answer)


def _leave() -> None:
    """Wait for the others at the end of a script, unless it failed.

    JAX waits too, but closes the connections of its sums before: one that still reads
    the last sum would lose it, and end as if this process had failed.
    """
    if getattr(sys, "last_value", None) is not None:
        leave_now(1)
    import jax

    jax.distributed.shutdown()  # type: ignore[no-untyped-call]
