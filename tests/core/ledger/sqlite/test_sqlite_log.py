"""The log that SQLite keeps beside an older ledger."""

import os
import shutil
import sqlite3
import struct
from contextlib import closing

import pytest

from tests.core.ledger.sqlite.conftest import beside, n_charges, old_charge

FRAME = 24 + 4096


def test_a_log_beside_an_old_ledger_is_kept(killed):
    assert beside(killed, "-wal").stat().st_size > 2 * FRAME
    assert n_charges(killed) == 4
    assert os.listdir(killed.parent) == [killed.name]


def test_a_log_after_a_checkpoint_is_kept(path, tmp_path):
    """The frames of the log's earlier use are behind those of its present one."""
    folder = tmp_path / "killed"
    folder.mkdir()
    with closing(sqlite3.connect(path, isolation_level=None)) as opened:
        opened.execute("PRAGMA wal_autocheckpoint=0")
        for number in range(3, 9):
            old_charge(opened, number)
        opened.execute("PRAGMA wal_checkpoint(PASSIVE)")
        old_charge(opened, 9)
        for side in ("", "-wal", "-shm"):
            shutil.copy(beside(path, side), folder)
    assert n_charges(folder / path.name) == 9


@pytest.mark.parametrize("index", [True, False])
def test_a_wrong_byte_in_the_log_is_an_error(killed, index):
    """With and without the index that says how long it was."""
    log = beside(killed, "-wal")
    if not index:
        beside(killed, "-shm").unlink()
    content = log.read_bytes()
    frames = range(32, len(content), FRAME)
    inside = [*range(24), *range(24, FRAME, 499), FRAME - 1]
    for at in [*range(32), *(frame + i for frame in frames for i in inside)]:
        wrong = bytearray(content)
        wrong[at] ^= 1 << at % 8
        log.write_bytes(wrong)
        assert n_charges(killed) is None, at
    log.write_bytes(content)
    assert n_charges(killed) == 4


@pytest.mark.parametrize("index", [True, False])
def test_a_log_cut_off_is_an_error_where_it_can_be_noticed(killed, index):
    """Without the index, one cut off between two charges is an older, whole one."""
    log = beside(killed, "-wal")
    content = log.read_bytes()
    if not index:
        beside(killed, "-shm").unlink()
    commits = [
        at + FRAME
        for at in range(32, len(content), FRAME)
        if struct.unpack_from(">I", content, at + 4) != (0,)
    ]
    assert len(commits) == 3
    assert commits[2] - commits[1] == FRAME
    anywhere = [0, 1, 31, 32, 33, *range(100, len(content), 997), len(content) - 1]
    behind = [commit + n for commit in commits[:-1] for n in (1, 8, 15, 16, 24)]
    for end in anywhere + behind:
        log.write_bytes(content[:end])
        if not index and end in (0, 32):
            continue  # as a process leaves it that was killed before it charged
        assert n_charges(killed) is None, end
    log.write_bytes(content[: commits[0]])
    if index:
        assert n_charges(killed) is None
        log.unlink()
        assert n_charges(killed) is None


def rewrite_index(path, *, n_frames=None, n_copied=0, length=None, torn=False):
    """Let the index beside a log count other frames, or be cut off."""
    index = bytearray(beside(path, "-shm").read_bytes())
    if n_frames is not None:
        struct.pack_into("=I", index, 16, n_frames)
        if not torn:  # the second copy of its header
            struct.pack_into("=I", index, 48 + 16, n_frames)
        struct.pack_into("=I", index, 96, n_copied)
    beside(path, "-shm").write_bytes(index[:length])


def n_frames_of(path):
    return (beside(path, "-wal").stat().st_size - 32) // FRAME


@pytest.mark.parametrize("n_missing", [1, 2])
def test_a_log_with_fewer_frames_than_its_index_counts_is_an_error(killed, n_missing):
    rewrite_index(killed, n_frames=n_frames_of(killed) + n_missing)
    assert n_charges(killed) is None
    beside(killed, "-wal").unlink()
    rewrite_index(killed, n_frames=n_missing)
    assert n_charges(killed) is None
    rewrite_index(killed, n_frames=n_missing, length=100)
    assert n_charges(killed) is None
    rewrite_index(killed, n_frames=n_missing, n_copied=n_missing)
    assert n_charges(killed) == 2  # all in it was in the database as well


@pytest.mark.parametrize("change", [{"length": 99}, {"torn": True, "n_frames": 99}])
def test_half_an_index_says_nothing(killed, change):
    """SQLite makes it anew from the log."""
    rewrite_index(killed, **change)
    assert n_charges(killed) == 4


def test_a_log_of_a_machine_with_the_other_byte_order_is_kept(killed):
    """SQLite reads it as well, if its checksums are right."""
    beside(killed, "-shm").unlink()
    log = bytearray(beside(killed, "-wal").read_bytes())
    struct.pack_into(">I", log, 0, 0x377F0683)

    def checksum(content, a, b):
        words = iter(struct.unpack(f">{len(content) // 4}I", content))
        for word in words:
            a = (a + word + b) % 2**32
            b = (b + next(words) + a) % 2**32
        return a, b

    sums = checksum(log[:24], 0, 0)
    struct.pack_into(">2I", log, 24, *sums)
    for at in range(32, len(log), FRAME):
        sums = checksum(log[at : at + 8] + log[at + 24 : at + FRAME], *sums)
        struct.pack_into(">2I", log, at + 16, *sums)
    beside(killed, "-wal").write_bytes(log)
    assert n_charges(killed) == 4


@pytest.mark.parametrize("length", [0, 32])
def test_an_empty_log_of_a_killed_reader_is_harmless(killed, length):
    """Without a frame, and maybe without its header."""
    log = beside(killed, "-wal")
    log.write_bytes(log.read_bytes()[:length])
    beside(killed, "-shm").unlink()
    assert n_charges(killed) == 2
