"""Images in class folders inside a tar or zip archive, read without unpacking."""

import bz2
import gzip
import io
import lzma
import os
import shutil
import tarfile
import uuid
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from privfeat.data.pixels import (
    BadImageError,
    decode,
    is_hidden,
    is_image,
    warn_of_second_names,
)

from .errors import ExtractError
from .layout import read_layout, source_of
from .ranks import one_at_a_time
from .sources import Source, as_labels

DAMAGE = (
    tarfile.TarError,
    zipfile.BadZipFile,
    lzma.LZMAError,
    zlib.error,
    EOFError,
    NotImplementedError,  # of zipfile: a compression that it does not know
)
MAGIC: dict[bytes, Any] = {
    b"\x1f\x8b": gzip.open,
    b"\xfd7zXZ\x00": lzma.open,
    b"BZh": bz2.open,
}


# of the first file, or of the list of none
ZIP = (b"PK\3\4", b"PK\5\6")


class ArchiveImages:
    """One split of an archive: a zip archive, or a tar archive without compression.

    ``names`` are members, ``labels`` their classes, and ``spans`` offset and size of
    each member of a tar archive; None for zip. ``path`` is the archive, or what it was
    decompressed to, and ``archive`` the one that was given.
    """

    def __init__(
        self,
        archive: Path,
        path: Path,
        names: list[str],
        labels: list[int],
        spans: list[tuple[int, int]] | None,
    ) -> None:
        self.archive, self.path = archive, path
        self.names, self.labels = names, as_labels(labels)
        self.spans = spans
        self._file: Any = None
        self._pid = -1

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_file": None, "_pid": -1}

    def __len__(self) -> int:
        return len(self.names)

    def files(self) -> list[Path]:
        """Return the one file that holds all images."""
        return [self.archive]

    def load(self, index: int) -> tuple[Any, int]:
        """Return the decoded image and its label."""
        if self._file is None or self._pid != os.getpid():
            # A worker process must not share the position of its parent's file.
            zipped = self.spans is None
            self._file = zipfile.ZipFile(self.path) if zipped else open(self.path, "rb")
            self._pid = os.getpid()
        if self.spans is None:
            try:
                data = self._file.read(self.names[index])
            except (*DAMAGE, RuntimeError) as error:  # RuntimeError: a password
                raise BadImageError(str(error)) from error
        else:
            offset, size = self.spans[index]
            self._file.seek(offset)
            data = self._file.read(size)
        return decode(io.BytesIO(data)), int(self.labels[index])

    def close(self) -> None:
        """Close the archive; it opens again when needed."""
        if self._file is not None:
            self._file.close()
            self._file = None


def open_archive(path: Path, splits: Sequence[str] | None, workspace: Path) -> Source:
    """List the images of an archive, in sorted order.

    A compressed tar archive is decompressed once into ``workspace`` (one file; zip and
    plain tar are read where they are). ExtractError if it is no archive, is damaged, or
    as for `read_layout`.
    """
    try:
        spans: dict[str, tuple[int, int]] | None = None
        # by its first bytes: a tar archive may hold a zip archive at its end
        if _head(path).startswith(ZIP):
            with zipfile.ZipFile(path) as archive:
                if min((m.header_offset for m in archive.infolist()), default=0):
                    raise zipfile.BadZipFile("another archive stands before it")
                names = [m.filename for m in archive.infolist() if not m.is_dir()]
                folders = [m.filename for m in archive.infolist() if m.is_dir()]
            readable = path
        else:
            readable = _plain_tar(path, workspace)
            spans, folders = _members_of(readable)
            warn_of_second_names({n: at for n, at in spans.items() if is_image(n)})
            names = list(spans)
    except DAMAGE as error:
        raise ExtractError(
            f"--data must be a folder or a tar or zip archive, but {path} is damaged "
            f"or of another kind ({error})."
        ) from error
    layout = read_layout(
        [name for name in names if is_image(name)],
        splits,
        str(path),
        [name for name in folders if not is_hidden(name)],
    )
    images = {}
    for name, files in layout.files.items():
        places = None if spans is None else [spans[file] for file in files]
        labels = layout.labels[name]
        images[name] = ArchiveImages(path, readable, files, labels, places)
    return source_of(path.name.split(".")[0], layout, images)


def _members_of(path: Path) -> tuple[dict[str, tuple[int, int]], list[str]]:
    """Return offset and size of each file of a tar archive by its name, and folders.

    An error of tarfile for what is not whole, or not stored as it is: the bytes of a
    row would be those of other records, or rows be missing.
    """
    spans: dict[str, tuple[int, int]] = {}
    folders = []
    with tarfile.open(path, "r:") as members:
        for member in members:
            name = member.name.removeprefix("./")
            if member.issparse():
                raise tarfile.ReadError("it was made by tar --sparse; pack it without")
            if member.isreg():
                spans[name] = (member.offset_data, member.size)
            elif member.islnk():  # a second name of a file that stands before
                first = member.linkname.removeprefix("./")
                if first not in spans:
                    raise tarfile.ReadError("a link leads nowhere")
                spans[name] = spans[first]
            elif member.isdir():
                folders.append(name)
            elif member.issym() or is_image(name):
                raise tarfile.ReadError(
                    "a name in it leads to another file or folder; pack it by tar -h"
                )
        end = members.offset
    with open(path, "rb") as file:
        file.seek(end)
        # tarfile stops and raises nothing where a header is damaged or cut off
        rest = iter(lambda: file.read(1 << 20), b"")
        if end + tarfile.BLOCKSIZE > path.stat().st_size or any(map(any, rest)):
            raise tarfile.ReadError("it does not end where its last file does")
    return spans, folders


def _head(path: Path) -> bytes:
    with open(path, "rb") as file:
        return file.read(6)


def _plain_tar(path: Path, workspace: Path) -> Path:
    """Return a tar file that can be read at any offset."""
    head = _head(path)
    opener = next((o for magic, o in MAGIC.items() if head.startswith(magic)), None)
    if opener is None:
        return path
    state = path.stat()
    plain = workspace / f"source-{state.st_size}-{state.st_mtime_ns}.tar"
    with one_at_a_time(workspace):
        if plain.exists():
            return plain
        unfinished = plain.with_suffix(f".{uuid.uuid4().hex}.tmp")
        try:
            with opener(path, "rb") as packed, open(unfinished, "wb") as target:
                shutil.copyfileobj(packed, target, 1 << 20)
            os.replace(unfinished, plain)
        finally:
            unfinished.unlink(missing_ok=True)
    return plain
