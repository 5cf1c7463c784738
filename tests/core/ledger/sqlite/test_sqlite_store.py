"""SQLite ledgers of older releases: taken over whole, or refused."""

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from privfeat import LedgerError, PrivacyLedger
from privfeat.core.ledger.stores.chained_log import MARK_BYTES, read_marks
from tests.core.ledger.sqlite.conftest import GOLDEN, beside, n_charges
from tests.core.ledgers import charge_until_killed, exit_code, make_statement


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


@pytest.mark.parametrize("length", [16, 70, 71, 72, 99])
def test_an_old_ledger_cut_off_in_its_header_is_an_error(path, length):
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(LedgerError, match="ledger"):
        PrivacyLedger(path, dataset="a")


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


@pytest.mark.parametrize("n_written", [0, 1, 9, 40])
def test_a_ledger_stopped_between_its_two_marks_is_ours(path, plant, n_written):
    """One mark is enough; it is not taken over a second time."""
    genuine = plant.genuine("write to a ledger file")

    def write(file, content, offset):
        if offset == 0:
            genuine(file, content[:n_written], offset)
            raise OSError("stopped")
        genuine(file, content, offset)

    with plant.context() as patch:
        patch("write to a ledger file", write)
        with pytest.raises(LedgerError, match="stopped"):
            PrivacyLedger(path, dataset="a")
    before = path.read_bytes()
    assert before[n_written:].startswith(b"SQLite format"[n_written:])
    assert n_charges(path) == 2
    assert path.read_bytes() == before
    ledger = PrivacyLedger(path, dataset="a")
    assert ledger.charge(make_statement(rho=1e-4), estimator="New") == 3
    assert n_charges(path) == 3


def test_a_mark_of_zeros_is_no_page_of_sqlite(path):
    """The charge that followed is cut off, and the mark that counted it is gone."""
    ledger = PrivacyLedger(path, dataset="a")
    ledger.charge(make_statement(rho=1e-4), estimator="New")
    whole = path.read_bytes()
    marks = read_marks(whole)
    newest = max(range(2), key=lambda place: marks[place].n_lines)
    cut = bytearray(whole[: marks[1 - newest].end])
    cut[newest * MARK_BYTES : (newest + 1) * MARK_BYTES] = bytes(MARK_BYTES)
    path.write_bytes(cut)
    with pytest.raises(LedgerError, match="a charge may be cut off"):
        PrivacyLedger(path, dataset="a")


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
