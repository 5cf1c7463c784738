"""Ending a process without waiting for those that it fits with."""

import atexit
import os
import sys


def leave_at_once(status: int = 1) -> None:
    """Let this process, when it ends, not wait for the others, with this exit status.

    JAX would wait minutes for those that ended already, or that wait for this one, and
    would abort. The end of this process closes its connections: the others notice.
    """
    atexit.register(leave_now, status)


def leave_now(status: int) -> None:
    """End this process without waiting for the others; nothing runs after it.

    For what runs when Python ends: it calls no function that is registered then.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
