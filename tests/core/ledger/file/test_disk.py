"""A ledger on a disk that is full, read-only, or fails; and writers that are killed."""

import errno
import itertools
import os
import shutil
import tempfile
from pathlib import Path

import pytest

from privfeat import LedgerError
from privfeat.core.ledger.opening import find_datasets
from privfeat.core.ledger.stores.chained_log import read_marks
from privfeat.core.ledger.stores.file_store import FileStore
from tests.core.ledger.file.conftest import make
from tests.core.ledgers import (
    CONTEXT,
    charge_as_a_stranger,
    charge_on_a_full_disk,
    charge_until_killed,
    create_until_killed,
    exit_code,
    in_process,
    make_statement,
)


def run_child(target, *args):
    receiver, sender = CONTEXT.Pipe(duplex=False)
    process = in_process(target, *args[:2], sender, *args[2:])
    sender.close()
    answer = receiver.recv()
    process.join()
    return answer


@pytest.mark.slow
@pytest.mark.parametrize("n_bytes", [0, 1100, 10_000])
def test_a_full_disk_stops_the_fits_and_loses_none(path, small, n_bytes):
    ledger = make(path)
    numbers, error = run_child(charge_on_a_full_disk, ledger, small, n_bytes)
    assert "must be readable and writable, got" in error
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(ledger.history) >= len(numbers)
    assert ledger.charge(small, estimator="Next") == len(ledger.history)


@pytest.mark.slow
def test_a_full_disk_leaves_no_half_made_ledger(path, tmp_path):
    receiver, sender = CONTEXT.Pipe(duplex=False)
    process = in_process(create_on_a_full_disk, str(path), sender)
    sender.close()
    assert "cannot be created" in receiver.recv()
    process.join()
    assert list(tmp_path.iterdir()) == []
    make(path)


def create_on_a_full_disk(path, connection):
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (700, 700))
    try:
        make(path)
    except LedgerError as error:
        connection.send(str(error))


def test_a_read_only_ledger_stops_the_fits(small):
    folder = Path(tempfile.mkdtemp())  # not below a folder of this user alone
    try:
        path = folder / "team.ledger"
        ledger = make(path)
        path.chmod(0o444)
        folder.chmod(0o555)
        numbers, error = run_child(charge_as_a_stranger, ledger, small)
        assert numbers == []
        assert "must be readable and writable, got" in error
        folder.chmod(0o755)
        path.chmod(0o644)
        assert ledger.charge(small, estimator="Next") == 1
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)


def test_creation_killed_at_any_step_leaves_all_or_nothing(tmp_path):
    step, code, made = 0, None, []
    while code != 0:
        path = tmp_path / f"{step}.ledger"
        code = exit_code(create_until_killed, str(path), step)
        assert code in (0, -9)
        made.append(path.exists())
        if path.exists():
            assert find_datasets(path) in ([], ["a"])
        assert make(path).history == []
        step += 1
    assert step > 8
    assert made == sorted(made)
    assert made[0] is False


@pytest.mark.parametrize("n_before", [0, 1])
def test_a_disk_that_fails_to_keep_a_charge_is_an_error(
    path, small, monkeypatch, n_before
):
    """At the line, and at the mark; what is found later may be more, never less."""
    ledger = make(path)
    ledger.charge(small, estimator="DPFC")
    left, genuine = itertools.count(n_before, -1), os.fsync

    def fsync(file):
        genuine(file)
        if next(left) == 0:
            raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(LedgerError, match="Input/output error"):
        ledger.charge(small, estimator="DPFC")
    monkeypatch.undo()
    assert len(ledger.history) == 2
    assert ledger.charge(small, estimator="DPFC") == 3


def test_the_name_of_a_file_is_on_disk_before_its_first_line_counts(
    path, monkeypatch, tmp_path
):
    """Though another process made the file, and was killed when it had its name."""
    FileStore(str(path)).create()
    (tmp_path / "elsewhere").mkdir()
    link, kept, genuine = tmp_path / "elsewhere" / "a", [], os.fsync
    link.symlink_to(path)

    def fsync(file):
        genuine(file)
        kept.append(os.fstat(file).st_ino)

    monkeypatch.setattr(os, "fsync", fsync)
    make(link).history  # noqa: B018
    inodes = {"folder": os.stat(tmp_path).st_ino, "file": os.stat(path).st_ino}
    assert kept == [inodes["folder"], inodes["file"], inodes["file"]]
    make(path)
    assert len(kept) == 3


@pytest.mark.parametrize("torn", [False, True])
def test_a_mark_is_written_when_its_line_is_on_disk(path, small, monkeypatch, torn):
    """Else a power cut could keep the mark and lose the line, or lose both.

    A mark that a kill left torn is written again before: a second kill, in the line,
    would else look like damage.
    """
    ledger, steps = make(path), []
    if torn:
        ledger.charge(small, estimator="DPFC")  # its line is the second
        content = path.read_bytes()
        path.write_bytes(content[:512] + b"?" + content[513:])
    genuine = {name: getattr(os, name) for name in ("pwrite", "fsync")}

    def pwrite(file, content, offset):
        steps.append("mark" if offset < 1024 else "line")
        return genuine["pwrite"](file, content[:100], offset)  # the rest is written too

    def fsync(file):
        steps.append("fsync")
        genuine["fsync"](file)

    monkeypatch.setattr(os, "pwrite", pwrite)
    monkeypatch.setattr(os, "fsync", fsync)
    ledger.charge(small, estimator="DPFC")
    order = [step for step, _ in itertools.groupby(steps)]
    assert order == torn * ["mark", "fsync"] + ["line", "fsync", "mark", "fsync"]
    monkeypatch.undo()
    assert len(ledger.history) == 1 + torn
    assert None not in read_marks(path.read_bytes())


def test_macos_empties_the_cache_of_its_drive(path, small, monkeypatch):
    import fcntl

    asked = []
    monkeypatch.setattr(fcntl, "F_FULLFSYNC", 51, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", lambda file, what: asked.append(what))
    make(path).charge(small, estimator="DPFC")
    assert len(asked) > 3
    assert set(asked) == {51}


@pytest.mark.slow
@pytest.mark.parametrize("n_bytes", [0, 1, 200, 511])
def test_a_process_killed_at_any_call_leaves_every_charge(path, n_bytes):
    """The call that writes gets some bytes through, or none."""
    ledger, step, code, found = make(path), 0, None, []
    while code != 0:
        n_before = len(ledger.history)
        code = exit_code(charge_until_killed, str(path), step, n_bytes)
        assert code in (0, -9)
        found.append(len(ledger.history) - n_before)
        assert ledger.charge(make_statement(rho=1e-4), estimator="Next") > n_before
        step += 1
    assert found == sorted(found)
    assert set(found) == {0, 1}
    assert os.listdir(path.parent) == [path.name]
