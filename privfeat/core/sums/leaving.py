"""Ending a process without waiting for those that it fits with."""

import atexit
import os
import sys


def leave_at_once(status: int = 1) -> None:
    """Let this process, when it ends, not wait for the others, with this exit status.

    JAX would wait minutes for those that ended already, or that wait for this one, and
    would abort. The end of this process closes its connections: the others notice.
    """
    atexit.register(_leave, status)


def _leave(status: int) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
