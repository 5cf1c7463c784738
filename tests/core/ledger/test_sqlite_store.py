"""SQLite ledgers of older releases: taken over whole, or refused."""

import hashlib
import json
import os
import shutil
import sqlite3
import struct
from contextlib import closing
from pathlib import Path

import pytest

from privfeat import LedgerError, PrivacyLedger
from tests.core.ledgers import charge_until_killed, exit_code, make_statement

GOLDEN = Path(__file__).parents[2] / "golden" / "ledger-v1.sqlite"
FRAME = 24 + 4096


@pytest.fixture
def path(tmp_path):
    """Return an old ledger of two charges, with nothing beside it."""
    return Path(shutil.copy(GOLDEN, tmp_path / "old.ledger"))


def old_charge(opened, number):
    """Charge as older releases did."""
    (uid,) = opened.execute("SELECT uid FROM privfeat_budget").fetchone()
    fields = (number, "Old", "2026", make_statement(rho=1e-4).to_json(), None)
    sha256 = hashlib.sha256(json.dumps([uid, *fields]).encode()).hexdigest()
    opened.execute(
        "INSERT INTO privfeat_charge VALUES ('a', ?, ?, ?, ?, ?, ?, NULL)",
        (*fields, sha256),
    )


@pytest.fixture
def killed(path, tmp_path):
    """Return an old ledger of four charges, two of which are in its log alone.

    The last change in the log is of one page.
    """
    folder = tmp_path / "killed"
    folder.mkdir()
    with closing(sqlite3.connect(path, isolation_level=None)) as opened:
        opened.execute("PRAGMA wal_autocheckpoint=0")
        for number in (3, 4):
            old_charge(opened, number)
        opened.execute("UPDATE privfeat_charge SET fitted = '2026' WHERE number = 4")
        for name in os.listdir(tmp_path):
            if name.startswith(path.name):
                shutil.copy(tmp_path / name, folder)
    return folder / path.name


def beside(path, side):
    return path.with_name(path.name + side)


def n_charges(path):
    """Return how many charges there are, or None for an error."""
    try:
        return len(PrivacyLedger(path, dataset="a").history)
    except LedgerError:
        return None


def test_an_old_ledger_is_taken_over_within_its_file(path):
    before = path.stat()
    first, second = PrivacyLedger(path, dataset="a").history
    assert (first.status, second.status) == ("fitted", "asked")
    after = path.stat()
    assert (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode)
    assert os.listdir(path.parent) == [path.name]
    with closing(sqlite3.connect(path)) as opened:
        with pytest.raises(sqlite3.DatabaseError, match="not a database"):
            opened.execute("SELECT * FROM privfeat_charge")
    ledger = PrivacyLedger(path, dataset="a")
    assert ledger.charge(make_statement(rho=1e-4), estimator="New") == 3


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


@pytest.mark.parametrize("length", [16, 70, 71, 72, 99])
def test_an_old_ledger_cut_off_in_its_header_is_an_error(path, length):
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(LedgerError, match="ledger"):
        PrivacyLedger(path, dataset="a")


@pytest.mark.parametrize("length", [0, 32])
def test_an_empty_log_of_a_killed_reader_is_harmless(killed, length):
    """Without a frame, and maybe without its header."""
    log = beside(killed, "-wal")
    log.write_bytes(log.read_bytes()[:length])
    beside(killed, "-shm").unlink()
    assert n_charges(killed) == 2


@pytest.mark.parametrize("at", [*range(0, 100, 7), 5000, 9000, 20479])
def test_a_damaged_old_ledger_is_an_error_or_says_the_same(path, at):
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)
    assert n_charges(path) in (None, 2)


@pytest.mark.parametrize(
    "change",
    [
        "sql = replace(sql, 'fitted TEXT', 'fitted TEXT NOT NULL')",
        "rootpage = 2 WHERE type = 'index'",
    ],
)
def test_what_sqlite_finds_out_of_order_is_an_error(path, change):
    with closing(sqlite3.connect(path)) as opened:
        opened.execute("PRAGMA writable_schema=ON")
        opened.execute(f"UPDATE sqlite_schema SET {change}")
        opened.commit()
    before = path.read_bytes()
    with pytest.raises(LedgerError, match=r"damaged|malformed"):
        PrivacyLedger(path, dataset="a")
    assert path.read_bytes() == before


def test_a_ledger_that_another_process_takes_over_first_is_read(path, plant):
    """Between the look at the file and the lock, it became ours."""
    PrivacyLedger(path, dataset="a")
    genuine, seen = plant.genuine("look at the kind of a ledger file"), []

    def is_old(file):
        seen.append(genuine(file))
        return len(seen) == 1

    plant("look at the kind of a ledger file", is_old)
    assert n_charges(path) == 2
    assert set(seen) == {False}


def test_a_ledger_stopped_between_its_two_marks_is_ours(path, plant):
    """One mark is enough; it is not taken over a second time."""
    genuine = plant.genuine("write to a ledger file")

    def write(file, content, offset):
        if offset == 0:
            raise OSError("stopped")
        genuine(file, content, offset)

    with plant.context() as patch:
        patch("write to a ledger file", write)
        with pytest.raises(LedgerError, match="stopped"):
            PrivacyLedger(path, dataset="a")
    before = path.read_bytes()
    assert before.startswith(b"SQLite")
    assert n_charges(path) == 2
    assert path.read_bytes() == before
    ledger = PrivacyLedger(path, dataset="a")
    assert ledger.charge(make_statement(rho=1e-4), estimator="New") == 3
    assert n_charges(path) == 3


def test_a_row_that_was_never_written_is_an_error(path):
    with closing(sqlite3.connect(path)) as opened:
        opened.execute("UPDATE privfeat_charge SET event = x'ff'")
        opened.commit()
    with pytest.raises(LedgerError, match="never written"):
        PrivacyLedger(path, dataset="a")


def test_a_journal_that_no_ledger_had_is_an_error(path):
    beside(path, "-journal").write_bytes(b"x" * 5000)
    with pytest.raises(LedgerError, match="a journal is beside it"):
        PrivacyLedger(path, dataset="a")


def test_the_second_mark_goes_where_an_old_ledger_has_nothing():
    assert GOLDEN.read_bytes()[512:1024] == bytes(512)


def test_an_old_ledger_under_two_names_is_refused(path):
    """Each name may have a log beside it, with charges of its own."""
    other = path.with_name("other")
    os.link(path, other)
    before = path.read_bytes()
    for name in (path, other):
        with pytest.raises(LedgerError, match="must have one name"):
            PrivacyLedger(name, dataset="a")
    assert path.read_bytes() == before
    other.unlink()
    assert n_charges(path) == 2


def test_an_old_ledger_is_taken_over_through_a_symbolic_link(killed, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(killed)
    assert n_charges(link) == n_charges(killed) == 4
    assert link.is_symlink()


def test_an_old_ledger_in_use_is_refused_until_it_is_free(path):
    with closing(sqlite3.connect(path, isolation_level=None)) as opened:
        opened.execute("BEGIN")
        opened.execute("SELECT * FROM privfeat_budget").fetchall()
        with pytest.raises(LedgerError, match=r"locked|must be free"):
            PrivacyLedger(path, dataset="a")
        opened.execute("COMMIT")
        # Older releases leave it alone from now on.
        (mark,) = opened.execute("PRAGMA application_id").fetchone()
        assert mark != 0x70664C64
    assert n_charges(path) == 2


def test_an_old_ledger_that_keeps_its_log_is_refused(killed, monkeypatch):
    """SQLite may answer with the mode that stays, without an error."""

    class Connection(sqlite3.Connection):
        def execute(self, sql):
            return super().execute(sql.removesuffix("=DELETE"))

    genuine = sqlite3.connect
    with monkeypatch.context() as patch:
        patch.setattr(
            sqlite3, "connect", lambda *a, **k: genuine(*a, **k, factory=Connection)
        )
        with pytest.raises(LedgerError, match="must be free, but others use it"):
            PrivacyLedger(killed, dataset="a")
    assert n_charges(killed) == 4


@pytest.mark.slow
def test_a_process_killed_while_it_takes_over_loses_nothing(tmp_path):
    """Of every write a part gets through."""
    step, code = 0, None
    while code != 0:
        path = Path(shutil.copy(GOLDEN, tmp_path / f"{step}.ledger"))
        code = exit_code(charge_until_killed, str(path), step, 300, True)
        assert code in (0, -9)
        assert n_charges(path) in (2, 3)
        ledger = PrivacyLedger(path, dataset="a")
        assert ledger.charge(make_statement(rho=1e-4), estimator="Next") in (3, 4)
        step += 1
    assert step > 10


def test_another_database_is_left_alone(tmp_path):
    path = tmp_path / "a"
    with closing(sqlite3.connect(path)) as opened:
        opened.execute("CREATE TABLE privfeat_budget (dataset)")
    content = path.read_bytes()
    with pytest.raises(LedgerError, match="must be a privfeat ledger"):
        PrivacyLedger(path, dataset="a", epsilon=3.0, delta=1e-5)
    assert path.read_bytes() == content
