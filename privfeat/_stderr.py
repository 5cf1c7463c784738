"""What a person is told while a fit goes on; lost where nobody can be told."""

import sys
from contextlib import suppress


class _Stderr:
    """The stderr of the moment; what it does not take is dropped.

    It may be closed, on a full disk, a terminal that is gone, or a pipe that nobody
    reads (``2>&1 | head``). A fit that was charged must not be lost by that.
    """

    @property
    def encoding(self) -> str | None:
        """Of what is written; tqdm asks for it."""
        return getattr(sys.stderr, "encoding", None)

    def write(self, text: str) -> int:
        """Write a text, or not."""
        if sys.stderr is not None:  # it was not open when Python started
            with suppress(Exception):  # what stands for it may raise anything
                sys.stderr.write(text)
        return len(text)

    def flush(self) -> None:
        """Hand on what was written."""
        if sys.stderr is not None:
            with suppress(Exception):
                sys.stderr.flush()

    def isatty(self) -> bool:
        """Return whether it is a terminal."""
        with suppress(Exception):
            return sys.stderr is not None and sys.stderr.isatty()
        return False


STDERR = _Stderr()
