"""Let HDF5 write to a disk that may be full."""

import os
from pathlib import Path
from types import TracebackType
from typing import Any


class Sink:
    """A file for HDF5 in which no write ever seems to fail.

    When a write fails for real, HDF5 can neither go on nor close its file, and crashes
    the process. So the error is kept here, and raised where it can be handled.
    """

    def __init__(self, path: Path) -> None:
        self._file = open(path, "w+b", buffering=0)
        self._error: OSError | None = None

    def __enter__(self) -> "Sink":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if error is None:
                self.check()
                os.fsync(self._file.fileno())
        finally:
            self._file.close()

    def check(self) -> None:
        """Raise the first error, if there was one."""
        if self._error is not None:
            raise self._error

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Set the position."""
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        """Return the position."""
        return self._file.tell()

    def read(self, size: int = -1) -> bytes:
        """Return bytes at the position."""
        return self._file.read(size)

    def readinto(self, buffer: Any) -> int:
        """Read bytes at the position."""
        return self._file.readinto(buffer)

    def write(self, data: Any) -> int:
        """Write bytes at the position, unless an earlier write failed."""
        view, written = memoryview(data).cast("B"), 0
        try:
            while self._error is None and written < len(view):
                written += self._file.write(view[written:])
        except OSError as error:
            self._error = error
        return len(view)

    def truncate(self, size: int) -> int:
        """Set the length."""
        try:
            if self._error is None:
                self._file.truncate(size)
        except OSError as error:
            self._error = error
        return size

    def flush(self) -> None:
        """Do nothing: nothing is buffered here."""
