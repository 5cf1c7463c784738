"""How records come to folds."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from privfeat import HashKFold
from privfeat.data.users import user_of
from tests.selection.conftest import FOLDS

IDS_OF_MANY = range(9000, 18000)


def folds_of(ids, splitter):
    """Return the number of the fold in which each id is tested."""
    found = {}
    for fold, (train, test) in enumerate(splitter.split(np.zeros(len(ids)), None, ids)):
        assert sorted([*train, *test]) == list(range(len(ids)))
        found |= {ids[row]: fold for row in test}
    return found


@settings(deadline=None)
@given(
    st.lists(
        st.one_of(st.integers(), st.text().filter(user_of)).filter(
            lambda one: str(one) != "1"
        ),
        min_size=1,
        unique_by=str,
    ),
    st.integers(2, 7),
    st.integers(0, 2**128 - 1),
    st.data(),
)
def test_a_record_more_moves_no_other(ids, n_splits, key, labelled):
    """Whatever the others are, and wherever it stands."""
    splitter = HashKFold(n_splits, key=key)
    gone = labelled.draw(st.sampled_from(ids))
    rest = [one for one in labelled.draw(st.permutations(ids)) if one != gone]
    both = folds_of(ids, splitter)
    assert both.pop(gone) in range(n_splits)
    if rest:
        assert folds_of(rest, splitter) == both


def test_records_of_one_id_share_a_fold_and_a_record_is_tested_once():
    users = np.repeat(np.arange(40), 5)
    tested = np.full(200, -1)
    for fold, (train, test) in enumerate(
        HashKFold(4).split(np.zeros(200), None, users)
    ):
        assert not set(users[train]) & set(users[test])
        assert np.all(tested[test] == -1)
        tested[test] = fold
    assert np.all(tested >= 0)


def test_ids_are_known_by_their_text_whatever_holds_them():
    ids = 50 + np.arange(50)
    expected = folds_of(ids.tolist(), FOLDS)
    for others in (ids, ids.astype(np.int8), ids.astype(np.uint64)):
        assert list(folds_of(others, FOLDS).values()) == list(expected.values())
    texts = folds_of(ids.astype(str), FOLDS)
    assert {int(text): fold for text, fold in texts.items()} == expected
    # as a file has all of them once one record has none
    gaps = folds_of([f"{one}.0" for one in ids], FOLDS)
    assert list(gaps.values()) == list(expected.values())
    # as a file has them, of which a reader makes numbers unless one has a letter
    codes = folds_of([f"{one:07}" for one in ids], FOLDS)
    assert list(codes.values()) == list(expected.values())


def test_folds_without_a_key_are_fresh_and_with_one_are_not():
    ids = list(range(501, 701))
    assert folds_of(ids, FOLDS) == folds_of(ids, clone(FOLDS, safe=False))
    # equal with probability 3**-200
    assert folds_of(ids, HashKFold(3)) != folds_of(ids, HashKFold(3))
    assert folds_of(ids, FOLDS) != folds_of(ids, HashKFold(3, key=1))
    first, again = (
        [train.tolist() for train, _ in HashKFold(3).split(np.zeros((200, 1)))]
        for _ in range(2)
    )
    assert first != again


@pytest.mark.statistical
def test_folds_are_uniform():
    """Fixed key; false-positive rate 1e-6 over keys."""
    sizes = [len(test) for _, test in FOLDS.split(np.zeros(9000), None, IDS_OF_MANY)]
    assert abs(np.subtract(sizes, 3000)).max() < 5 * math.sqrt(9000 * 2 / 9)


def test_every_split_is_made_even_if_it_is_empty():
    splits = list(HashKFold(7, key=0).split(np.zeros((1, 2)), None, ["one"]))
    assert sorted(len(test) for _, test in splits) == [0] * 6 + [1]
    assert sorted(len(train) for train, _ in splits) == [0] + [1] * 6


@pytest.mark.validation
@pytest.mark.parametrize("ids", [[1.0, 2.0], [1, None], [True, False]])
def test_split_refuses_ids_whose_text_may_depend_on_others(ids):
    with pytest.raises(TypeError, match="hold whole numbers, strings or bytes"):
        next(FOLDS.split(np.zeros((2, 1)), None, ids))


@pytest.mark.validation
@pytest.mark.parametrize("ids", [["", "ann"], ["NA", "ann"], ["ann", b"nan"]])
def test_split_refuses_ids_that_stand_for_none(ids):
    """A reader makes gaps of "NA", unless one record of the column has a word."""
    with pytest.raises(ValueError, match="an id for each record, got none"):
        next(FOLDS.split(np.zeros((2, 1)), None, ids))


def test_a_name_in_bytes_is_in_the_fold_of_its_text():
    names = ["ann", "bob", "eve", "zoé"]
    texts, in_bytes = (
        [test.tolist() for _, test in FOLDS.split(np.zeros((4, 1)), None, ids)]
        for ids in (names, [name.encode() for name in names])
    )
    assert texts == in_bytes


@pytest.mark.validation
def test_split_refuses_a_key_for_places():
    with pytest.raises(ValueError, match="key must be None without ids"):
        next(FOLDS.split(np.zeros((2, 1))))
    with pytest.raises(ValueError, match="groups must hold one id"):
        next(FOLDS.split(np.zeros((2, 1)), None, [1]))
    for bad in ({"n_splits": 1}, {"n_splits": 2.5}, {"key": -1}, {"key": "a"}):
        with pytest.raises((TypeError, ValueError), match=next(iter(bad))):
            HashKFold(**bad)


@pytest.mark.validation
@pytest.mark.parametrize("first", [0, 1])
def test_split_refuses_ranks_under_a_key_that_may_be_known(first):
    """One user more shifts them, as in ``groups`` of feature files."""
    ranks = np.repeat(first + np.arange(10), 2)[::-1]
    for ids in (ranks, ranks.astype(str), first + np.arange(20)):
        with pytest.raises(ValueError, match=r"row numbers and ranks.*Pass key=None"):
            FOLDS.split(np.zeros((20, 1)), None, ids)
        HashKFold(3).split(np.zeros((20, 1)), None, ids)  # shifted or not, all alike
    FOLDS.split(np.zeros((20, 1)), None, ranks + (ranks > 5))  # numbers with a gap


def test_ids_that_were_rounded_are_refused():
    """Persons with long codes would be one."""
    ids = ["1.10101199003070016e+17", "110101199003070001"]
    with pytest.raises(ValueError, match="may be of several users"):
        next(HashKFold(2, key=4).split(np.zeros((2, 3)), groups=ids))
