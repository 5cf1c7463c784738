"""Let HDF5 write to a disk that may be full."""

import errno
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py


class Sink(io.FileIO):
    """A file for HDF5 in which no write ever seems to fail.

    When a write fails for real, HDF5 can neither go on nor close its file, and crashes
    the process. So the first error is kept here, and raised where it can be handled.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path, "w+")
        self._error: OSError | None = None

    def check(self) -> None:
        """Raise the first error, if there was one."""
        if self._error is not None:
            raise self._error

    def write(self, data: Any) -> int:
        """Write bytes at the position, unless an earlier write failed."""
        view, written = memoryview(data).cast("B"), 0
        try:
            while self._error is None and written < len(view):
                written += super().write(view[written:])
        except OSError as error:
            self._error = error
        return len(view)

    def truncate(self, size: int | None = None) -> int:
        """Set the length, unless an earlier write failed."""
        try:
            return super().truncate(size) if self._error is None else self.tell()
        except OSError as error:
            self._error = error
            return self.tell()


@contextmanager
def new_hdf5(path: Path, *, final: Path) -> Iterator[tuple[h5py.File, Sink]]:
    """Write an HDF5 file; at the end the disk has all of it, or there is none.

    An error of the disk names ``final`` and says what to do.
    """
    try:
        with Sink(path) as sink:
            with h5py.File(sink, "w") as file:
                yield file, sink
            sink.check()
            os.fsync(sink.fileno())
    except BaseException as error:
        path.unlink(missing_ok=True)
        if not isinstance(error, OSError):
            raise
        raise OSError(
            error.errno or errno.EIO,
            f"{final} could not be written ({error.strerror or error}). Free space on "
            "its disk and run again to continue; earlier features are kept",
        ) from error
