"""Every way a write can stop, and every byte that can be wrong."""

import hashlib
import itertools

import pytest

from privfeat import LedgerError
from privfeat.core.ledger.store import BUDGETS
from privfeat.core.ledger.stores.chained_log import (
    MARK_BYTES,
    LoggedRows,
    Mark,
    add_line,
    first_mark,
    read_log,
    read_marks,
)

START = 2 * MARK_BYTES


def append(content, change):
    """Return the bytes before a transaction and after each of its writes."""
    log = read_log(content, "a")
    line, mark = add_line(log.mark, [change])
    cut = content[: log.mark.end]
    return [content, cut + line, replaced(cut + line, log.place, mark.render())]


def replaced(content, at, new):
    return content[:at] + new + content[at + len(new) :]


def make(n_lines, start=START):
    """Return the bytes of a log; lines have different lengths."""
    content = (first_mark(start).render() * 2).ljust(start, b"x")
    for number in range(n_lines):
        content = append(content, number * "a")[-1]
    return content


def newest_slot(content):
    """Return which of the two marks counts the last line."""
    first, second = (mark.n_lines for mark in read_marks(content))
    return int(second > first)


def n_lines(content):
    """Return the number of lines, or None if that is an error."""
    try:
        log = read_log(content, "a")
    except LedgerError:
        return None
    assert log.changes == [[number * "a"] for number in range(len(log.changes))]
    return log.mark.n_lines


@pytest.mark.parametrize("start", [START, 3000])
@pytest.mark.parametrize("n", range(4))
def test_log_gives_back_every_line(n, start):
    content = make(n, start)
    assert n_lines(content) == n
    assert read_log(content, "a").mark.end == len(content)


@pytest.mark.parametrize("n", range(4))
def test_a_write_cut_off_anywhere_keeps_every_line_before(n):
    """And the one that is written is there before its mark is."""
    before, lined, marked = append(make(n), n * "a")
    for end in range(len(before), len(lined)):
        assert n_lines(lined[:end]) == n
    assert n_lines(lined[:-1] + b"x") == n
    place = read_log(before, "a").place
    for end in range(MARK_BYTES + 1):
        torn = replaced(lined, place, marked[place : place + end])
        assert n_lines(torn) == n + 1


@pytest.mark.parametrize("torn", [b"", b"short", b"x" * 3000])
def test_the_next_line_goes_over_what_a_cut_write_left(torn):
    content = make(2) + torn
    assert n_lines(content) == 2
    lined, marked = append(content, "aa")[1:]
    assert n_lines(lined) == n_lines(marked) == 3


def test_a_line_without_its_mark_is_followed_by_others():
    content = append(make(2), "aa")[1]
    for number in range(3, 6):
        content = append(content, number * "a")[-1]
        assert n_lines(content) == number + 1


@pytest.mark.parametrize("n", range(1, 5))
def test_every_wrong_byte_is_noticed_or_harmless(n):
    content = make(n)
    for at, bit in itertools.product(range(len(content)), (0, 3, 7)):
        wrong = replaced(content, at, bytes([content[at] ^ 1 << bit]))
        assert n_lines(wrong) in (None, n)
        # As a kill leaves it: the newest mark alone is not readable.
        assert (n_lines(wrong) == n) == (at // MARK_BYTES == newest_slot(content))


@pytest.mark.parametrize("start", [START, 3000])  # 3000: of a ledger that was SQLite
@pytest.mark.parametrize("n", range(1, 5))
def test_a_charge_is_not_lost_with_its_mark(n, start):
    """Two wrong bytes: in the mark, and in the line that it alone counts."""
    content = make(n, start)
    torn = replaced(content, newest_slot(content) * MARK_BYTES, b"?")
    assert n_lines(torn) == n
    before = len(make(n - 1, start))
    for at in range(before, len(content)):
        assert n_lines(replaced(torn, at, bytes([torn[at] ^ 1]))) is None
        assert n_lines(torn[:at]) is None  # and cut off, the whole line as well


@pytest.mark.parametrize("n", range(1, 5))
def test_every_truncation_is_noticed(n):
    content = make(n)
    assert {n_lines(content[:end]) for end in range(len(content))} == {None}


@pytest.mark.parametrize("n_bytes", [64, 512, 4096])
def test_a_lost_part_is_noticed_or_harmless(n_bytes):
    content = make(60)
    for at in range(0, len(content), n_bytes):
        assert n_lines(replaced(content, at, bytes(n_bytes))[: len(content)]) in (
            None,
            60,
        )


def test_a_line_that_is_gone_or_elsewhere_is_noticed():
    content = make(4)
    lines = content[START:].splitlines(keepends=True)
    for other in itertools.chain(
        itertools.permutations(lines), itertools.combinations(lines, 3)
    ):
        expected = 4 if list(other) == lines else None
        assert n_lines(content[:START] + b"".join(other)) == expected


def test_marks_of_another_ledger_are_noticed():
    content = make(4)
    marks = {make(n)[:MARK_BYTES] for n in (5, 6)} | {make(4, 3000)[:MARK_BYTES]}
    for mark in marks:
        assert n_lines(replaced(content, 0, mark)) is None
        assert n_lines(replaced(content, MARK_BYTES, mark)) is None


@pytest.mark.parametrize("n", range(1, 4))
def test_the_next_mark_goes_over_the_damaged_one(n):
    """Torn as well, it would leave no readable mark if it went over the other."""
    at = newest_slot(make(n)) * MARK_BYTES
    assert read_log(replaced(make(n), at, b"?"), "a").place == at


def test_marks_take_turns():
    content, places = make(0), []
    for number in range(4):
        places.append(read_log(content, "a").place)
        content = append(content, number * "a")[-1]
    assert [abs(a - b) for a, b in itertools.pairwise(places)] == 3 * [MARK_BYTES]


def test_the_bytes_are_those_of_every_release():
    """Files of format 2 are read as long as there are any."""
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    text = f"privfeat ledger 2 1024 1024 0 {empty} ".encode()
    mark = text + hashlib.sha256(text).hexdigest().encode()
    assert first_mark(1024).render() == mark.ljust(511) + b"\n"
    digest = hashlib.sha256(empty.encode() + b'["a"]').hexdigest()
    line, after = add_line(first_mark(1024), ["a"])
    assert line == f'{digest} ["a"]\n'.encode()
    assert after == Mark(1024, 1024 + len(line), 1, digest)


def test_what_is_no_ledger_is_told_from_a_damaged_one():
    for content in (b"", b"text", bytes(5000)):
        with pytest.raises(LedgerError, match="must be a privfeat ledger"):
            read_log(content, "a")
    later = make(2).replace(b"privfeat ledger 2 ", b"privfeat ledger 3 ")
    with pytest.raises(LedgerError, match="release after this one"):
        read_log(later, "a")


def test_a_chain_of_what_is_no_change_is_an_error():
    """Whoever can write the file can make the digests fit."""
    for changes in ([1], [["drop", BUDGETS, {}]], [["insert", "a", {}]], 1, None):
        line, mark = add_line(first_mark(START), changes)
        log = read_log(mark.render() * 2 + line, "a")
        with pytest.raises(LedgerError, match="damaged"):
            LoggedRows("a", log.changes)


def test_rows_are_those_of_their_data_set():
    rows = LoggedRows("a", [])
    for name in "ab":
        rows.insert(BUDGETS, {"dataset": name})
    assert [row["dataset"] for row in rows.select(BUDGETS)] == ["a", "b"]
    assert rows.select(BUDGETS, "b") == [{"dataset": "b"}]
    for refused in (rows.insert, rows.update):
        name = "a" if refused == rows.insert else "c"
        with pytest.raises(LedgerError, match="there twice, or not at all"):
            refused(BUDGETS, {"dataset": name})
    rows.update(BUDGETS, {"dataset": "a", "epsilon": 1.0})
    assert rows.select(BUDGETS, "a") == [{"dataset": "a", "epsilon": 1.0}]
    assert LoggedRows("a", [rows.changes]).select(BUDGETS) == rows.select(BUDGETS)


@pytest.mark.parametrize("body", ["{", "[" * 100_000])
def test_a_line_that_is_not_json_is_an_error(monkeypatch, body):
    with monkeypatch.context() as patch:
        patch.setattr("json.dumps", lambda _: body)
        line, mark = add_line(first_mark(START), [])
    with pytest.raises(LedgerError, match="not JSON"):
        read_log(mark.render() * 2 + line, "a")


def test_a_mark_fits_a_sector_whatever_it_counts():
    mark = Mark(10**15 - 1, 10**15 - 1, 10**15 - 1, "a" * 64)
    assert len(mark.render()) == MARK_BYTES
