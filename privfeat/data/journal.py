"""The unfinished extraction: raw rows and a journal that survive a kill.

``OUT.partial/`` holds one raw file per column of a split (``train.features``,
``train.labels``) and ``journal.jsonl``. A line of the journal is written only after the
rows that it counts have reached the disk, and carries their checksums. After a kill at
any moment the last whole line is true, and whatever follows it is cut off.
"""

import json
import os
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privfeat.data.schema import FeatureFileError, shown

JOURNAL = "journal.jsonl"
JOURNAL_VERSION = 1


def partial_folder(path: str | os.PathLike[str]) -> Path:
    """Return the folder that holds the unfinished file ``path``."""
    return Path(f"{os.fspath(path)}.partial")


class Position(NamedTuple):
    """How far a split has been written.

    Attributes
    ----------
    seen : int
        Records of the source dealt with, skipped ones included.
    n_rows : int
        Rows written.
    """

    seen: int
    n_rows: int


class RawColumn:
    """Rows of one array, appended to a raw file.

    Parameters
    ----------
    path : Path
        The raw file; created if missing.
    dtype : str
        Element type.
    width : int or None
        Elements of a row; None for a one-dimensional array.
    n_rows, checksum : int
        Rows that the journal vouches for, and the CRC-32 of their bytes.

    Raises
    ------
    FeatureFileError
        If the file does not begin with those rows.
    """

    def __init__(
        self,
        path: Path,
        dtype: str,
        width: int | None,
        n_rows: int = 0,
        checksum: int = 0,
    ) -> None:
        self.path, self.dtype, self.width = path, np.dtype(dtype), width
        self.n_rows, self.checksum = 0, 0
        self.row_bytes = self.dtype.itemsize * (1 if width is None else width)
        mode = "r+b" if path.exists() else "w+b"
        self._file: IO[bytes] = open(path, mode, buffering=0)
        for block in self.blocks(n_rows):
            self.checksum = zlib.crc32(block.tobytes(), self.checksum)
            self.n_rows += len(block)
        if self.n_rows != n_rows or self.checksum != checksum:
            self._file.close()
            raise FeatureFileError(
                f"{path} must hold the rows that the journal lists, but was changed or "
                "lost rows. Start again with overwrite."
            )
        self._file.truncate(n_rows * self.row_bytes)

    def append(self, rows: NDArray[Any]) -> None:
        """Write rows of the right type and width at the end."""
        shape = rows.shape[1:] if self.width is not None else (*rows.shape[1:], None)
        if rows.dtype != self.dtype or shape != (self.width,):
            raise ValueError(
                f"rows of {self.path.name} must be {self.dtype} of width {self.width}, "
                f"got {rows.dtype} of another shape."
            )
        data = rows.tobytes()
        self._file.seek(self.n_rows * self.row_bytes)
        _write_all(self._file, data, self.path)
        self.checksum = zlib.crc32(data, self.checksum)
        self.n_rows += len(rows)

    def blocks(self, n_rows: int, block_bytes: int = 1 << 22) -> Iterator[NDArray[Any]]:
        """Yield the first ``n_rows`` rows in arrays of about ``block_bytes`` bytes."""
        step = max(1, block_bytes // max(self.row_bytes, 1))
        self._file.seek(0)
        for start in range(0, n_rows, step):
            wanted = min(step, n_rows - start) * self.row_bytes
            data = bytearray()
            while len(data) < wanted:
                piece = self._file.read(wanted - len(data))
                if not piece:
                    break
                data += piece
            usable = len(data) - len(data) % max(self.row_bytes, 1)
            rows = np.frombuffer(bytes(data[:usable]), self.dtype)
            yield rows if self.width is None else rows.reshape(-1, self.width)

    def sync(self) -> None:
        """Wait until the rows have reached the disk."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the raw file."""
        self._file.close()


class Journal:
    """What an unfinished extraction has done so far.

    Parameters
    ----------
    folder : Path
        The partial folder.

    Attributes
    ----------
    header : dict
        First line: format, arguments of the run, feature type and width.
    progress : dict of str to dict
        Last state of each split: ``seen``, ``n_rows``, and of each column its type,
        width and checksum; ``n_skipped`` counts over all lines.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / JOURNAL
        self.header: dict[str, Any] = {}
        self.progress: dict[str, dict[str, Any]] = {}
        self._file: IO[bytes] | None = None

    def open(self) -> None:
        """Create the file if missing, and keep other processes out.

        Raises
        ------
        FeatureFileError
            If another process has it open.
        """
        handle = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666)
        self._file = open(handle, "r+b", buffering=0)
        try:
            _lock(self._file, self.path)
        except FeatureFileError:
            self.close()
            raise

    def start(self, header: Mapping[str, Any]) -> None:
        """Begin anew with ``header`` as the first line."""
        self.header = {"journal_version": JOURNAL_VERSION, **header}
        self.progress = {}
        file = self._opened()
        file.truncate(0)
        file.seek(0)
        self._write(self.header)

    def read(self) -> bool:
        """Take in what an earlier run wrote and cut off a line it did not finish.

        Returns
        -------
        begun : bool
            Whether it had recorded any progress.

        Raises
        ------
        FeatureFileError
            If the file is unreadable or of another version.
        """
        file = self._opened()
        text = file.read()
        whole = text[: text.rfind(b"\n") + 1]
        try:
            lines = [json.loads(line) for line in whole.splitlines()]
        except ValueError as error:
            raise self._unreadable() from error
        if not lines:
            return False
        if not isinstance(lines[0], dict) or (
            lines[0].get("journal_version") != JOURNAL_VERSION
        ):
            raise self._unreadable()
        file.truncate(len(whole))
        file.seek(len(whole))
        self.header = lines[0]
        for line in lines[1:]:
            self._remember(line)
        return bool(self.progress)

    def require(self, header: Mapping[str, Any]) -> None:
        """Raise `FeatureFileError` unless the journal was begun with ``header``.

        Parameters
        ----------
        header : mapping
            As given to `start`; its ``arguments`` are compared one by one.
        """
        then = {**self.header, **self.header.get("arguments", {})}
        now = {**header, **header["arguments"]}
        for name in sorted({*header, *self.header.get("arguments", {}), *now}):
            if name != "arguments" and then.get(name) != now.get(name):
                raise FeatureFileError(
                    f"{self.path.parent} must be continued with the arguments it was "
                    f"begun with, but {name} was {shown(name, then)} and is "
                    f"{shown(name, now)}. Use the first arguments, another output, or "
                    "overwrite."
                )

    def record(self, entry: Mapping[str, Any]) -> None:
        """Append the state of one split and wait until it has reached the disk."""
        self._write(entry)
        self._remember(entry)

    def close(self) -> None:
        """Close the journal and release its lock."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _remember(self, entry: Mapping[str, Any]) -> None:
        known = self.progress.get(entry["split"], {}).get("n_skipped", 0)
        # earlier releases kept the names
        new = entry.get("n_skipped", len(entry.get("skipped", ())))
        self.progress[entry["split"]] = {**entry, "n_skipped": known + new}

    def _write(self, value: Mapping[str, Any]) -> None:
        file = self._opened()
        data = json.dumps(value, sort_keys=True).encode() + b"\n"
        _write_all(file, data, self.path)
        os.fsync(file.fileno())

    def _opened(self) -> IO[bytes]:
        if self._file is None:
            raise FeatureFileError(f"{self.path} must be open, but was closed.")
        return self._file

    def _unreadable(self) -> FeatureFileError:
        return FeatureFileError(
            f"{self.path} must be a journal of version {JOURNAL_VERSION}, but is not "
            "readable as one. Start again with overwrite."
        )


def _write_all(file: IO[bytes], data: bytes, path: Path) -> None:
    """Write without a buffer, so that a full disk is noticed here and not later."""
    view, written = memoryview(data), 0
    try:
        while written < len(data):
            written += file.write(view[written:])
    except OSError as error:
        raise OSError(
            error.errno,
            f"{path} could not be written ({error.strerror}). Free space on its disk "
            "and run again to continue; earlier features are kept",
        ) from error


def _lock(file: IO[bytes], path: Path) -> None:
    """Let one process at a time write; a killed process loses its lock at once."""
    try:
        import fcntl
    except ImportError:  # not on Windows
        return
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise FeatureFileError(
            f"{path.parent} must not be in use, but another process is writing it. "
            "Wait for that process, or choose another output."
        ) from error
