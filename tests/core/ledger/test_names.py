"""Which names two people, or one with a slip of the pen, take for one another."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privfeat import PrivacyWarning
from privfeat.core.ledger.budget import Budget
from privfeat.core.ledger.names import (
    check_new_name,
    check_who,
    is_near,
    nearest,
    tell_of_new,
)

WORDS = st.text("abc", max_size=12)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("digits", "digit"),
        ("digits", "digitss"),
        ("digits", "dugits"),
        ("digits", "idgits"),
        ("mammograms", "mamogrms"),
        ("chest x-rays", "Chest_xrays"),
        ("caf\u00e9", "cafe"),
        ("a", "a!"),
        ("scans-2023", "scans-2024"),
        ("!?", "!?"),
        ("patients", "patients.csv"),
        ("Patients.CSV", "patients.parquet"),
        ("patient", "patients.csv.gz"),
        (".csv", "csv"),
    ],
)
def test_is_near_finds_slips(one, other):
    assert is_near(one, other)
    assert is_near(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a", "b"),
        ("a1", "a2"),
        ("x", ""),
        ("train", "test"),
        ("digits", "dgist"),
        ("digits", "digits, validation"),
        ("!?", "?!"),
        ("north.east", "north"),
        ("abc", "abcd"),
        ("aaba", "abab"),
        ("abcdefghijkl", "abcdefghixyz"),
        ("csv", "h5"),
        (".csv", ".json"),
    ],
)
def test_is_near_leaves_other_names_alone(one, other):
    assert not is_near(one, other)
    assert not is_near(other, one)


def steps(word):
    """Return every word that is one slip away."""
    cuts = [(word[:i], word[i:]) for i in range(len(word) + 1)]
    more = {a + c + b for a, b in cuts for c in "abc"}
    less = {a + b[1:] for a, b in cuts if b}
    other = {a + c + b[1:] for a, b in cuts if b for c in "abc"}
    swapped = {a + b[1] + b[0] + b[2:] for a, b in cuts if len(b) > 1}
    return more | less | other | swapped


@given(WORDS, WORDS)
def test_is_near_counts_slips(one, other):
    """One for four letters; words of eight may be two apart, on disjoint places."""
    shorter = min(len(one), len(other))
    expected = one == other or (shorter > 3 and other in steps(one))
    if shorter < 8 or expected:
        assert is_near(one, other) == expected


@given(st.text("abc", min_size=9, max_size=12), st.data())
def test_is_near_finds_two_slips_apart_from_each_other(word, data):
    head, tail = word[:-4], word[-4:]
    first = data.draw(st.sampled_from(sorted(steps(head))))
    second = data.draw(st.sampled_from(sorted(steps(tail))))
    both = first + second
    assert len(both) < 8 or is_near(word, both)


def test_nearest_is_none_where_nothing_is_near():
    assert nearest("digits", ["a", "retinas"]) is None
    assert nearest("digits", ["a", "Digits"]) == "Digits"


@pytest.mark.parametrize(
    "name", [" a", "a ", "a\tb", "a\u200bb", "a\u00a0b", "a\u3164"]
)
def test_a_new_name_has_no_space_at_its_ends_and_nothing_invisible(name):
    with pytest.raises(ValueError, match="no invisible characters"):
        check_new_name(name, ["other"], new_dataset=True)


def test_a_new_name_may_be_near_another_if_its_records_are_others():
    with pytest.raises(ValueError, match="slip of the pen"):
        check_new_name("digits.csv", ["other", "digits"], new_dataset=False)
    check_new_name("digits.csv", ["other", "digits"], new_dataset=True)
    check_new_name("images", ["other", "digits"], new_dataset=False)


def test_a_new_budget_of_a_large_delta_warns(recwarn):
    """Each fit warned of its own delta, and nobody of that of all together."""
    tell_of_new(make_budget(delta=1e-4), "ledger.jsonl", [])
    assert not recwarn
    tell_of_new(make_budget(delta=1.01e-4), "ledger.jsonl", [])
    (warned,) = recwarn
    assert warned.category is PrivacyWarning
    assert "number of records, got 0.000101" in str(warned.message)


def make_budget(delta=1e-5):
    of = {"dataset": "scans", "uid": "0", "unit": "record", "created": "today"}
    return Budget(epsilon=3.0, delta=delta, adjacency="add_remove", **of)


@pytest.mark.parametrize(
    ("n_others", "held"),
    [(0, "nothing before"), (10, "' before"), (11, "' and more before")],
)
def test_a_new_budget_is_told_with_some_of_the_others(capsys, n_others, held):
    tell_of_new(make_budget(), "ledger.jsonl", [f"a{i}" for i in range(n_others)])
    said = capsys.readouterr().err
    assert held in said
    assert (" and more" in said) == (n_others > 10)


@pytest.mark.parametrize("who", ["", "a" * 101, 3, " a"])
def test_who_charges_has_a_short_plain_name(who):
    with pytest.raises(ValueError, match="who must"):
        check_who(who)


@pytest.mark.parametrize("who", [None, "A", "Ann Lee", "\u00e9" * 100])
def test_a_plain_name_of_who_charges_will_do(who):
    assert check_who(who) == who
