"""Which records of a user are kept, and how users are told apart."""

import itertools

import numpy as np
import pandas as pd
import pytest

from privfeat import DPLeastSquares, HashKFold
from privfeat.estimation.inputs import check_users

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")


def kept(groups, max_group_size, key):
    return check_users(groups, max_group_size, len(groups)).kept_records(key)


def test_kept_records_of_a_user_do_not_depend_on_the_others(users):
    _, _, groups = users
    whole = kept(groups, 3, key=7)
    for user in range(10):
        own = groups == user
        np.testing.assert_array_equal(kept(groups[own], 3, key=7), whole[own])
        np.testing.assert_array_equal(kept(groups[~own], 3, key=7), whole[~own])


def test_kept_records_change_with_the_key(users):
    _, _, groups = users
    draws = {kept(groups, 2, key=key).tobytes() for key in (0, 1, 2**63, 2**64 - 1)}
    assert len(draws) == 4


@pytest.mark.statistical
def test_kept_records_are_a_uniform_choice():
    """All 10 pairs of 5, 500 users, 20 keys; chi-square, false-positive rate 1e-6."""
    from scipy import stats

    groups = np.repeat(np.arange(500), 5)
    places = np.arange(5)
    counts = {}
    for key in range(20):
        for row in kept(groups, 2, key=key).reshape(500, 5):
            pair = tuple(places[row])
            counts[pair] = counts.get(pair, 0) + 1
    assert sorted(counts) == list(itertools.combinations(range(5), 2))
    assert stats.chisquare(list(counts.values())).pvalue > 1e-6


def test_spellings_of_a_name_make_no_other_user():
    """Each would get the guarantee of one; as in tables, see `data.users`."""
    groups = ["Jos\u00e9", "Jose\u0301", " Jos\u00e9", "Jose\u0301\u00a0", "Jose"]
    assert check_users(groups, 1, 5).n_users == 2
    assert check_users(np.array(groups), 1, 5).n_users == 2


def test_check_users_tells_users_apart_whoever_else_is_there():
    """NumPy makes floats of large beside small integers."""
    ids = [2**63 + 1 + i for i in range(200)]
    for groups in (ids, [*ids, 5]):
        users = check_users(groups, 1, len(groups))
        assert np.all(users.kept_records(7))


@pytest.mark.parametrize(
    "bad",
    [[1.0, 2.0], [1, "a"], [None, "a"], [{"a"}, {"b"}], [[1], [2]], np.ones((2, 1))],
    ids=str,
)
def test_fit_refuses_users_that_are_neither_integers_nor_strings(bad):
    clf = DPLeastSquares(classes=range(2), max_group_size=1)
    with pytest.raises(TypeError, match="groups must"):
        clf.fit([[1.0, 0.0], [0.0, 1.0]], [0, 1], groups=bad)


@pytest.mark.parametrize(
    "bad",
    [
        {"a.png": "ann", "b.png": "ann"},
        {"a.png": "ann", "b.png": "ann"}.keys(),
        {"ann", "bob"},
        "ab",
        b"ab",
        np.array("ann"),
    ],
    ids=["dict", "keys", "set", "str", "bytes", "scalar"],
)
def test_check_users_refuses_what_is_no_list_of_one_user_for_each_record(bad):
    """Names of files would pass for users of one record each."""
    with pytest.raises(TypeError, match="groups must be one-dimensional"):
        check_users(bad, 1, 2)
    with pytest.raises(TypeError, match="groups must be one-dimensional"):
        next(HashKFold(2).split(np.zeros((2, 1)), None, bad))


def test_check_users_refuses_a_table_and_takes_values_of_a_dict():
    pandas = pytest.importorskip("pandas")
    with pytest.raises(TypeError, match="got DataFrame"):
        check_users(pandas.DataFrame([["ann", "ann"]], columns=["a", "b"]), 1, 2)
    users = check_users({"a.png": "ann", "b.png": "ann"}.values(), 1, 2)
    assert np.sum(users.kept_records(7)) == 1


def test_check_users_keeps_nullable_integers_apart():
    pandas = pytest.importorskip("pandas")
    groups = pandas.Series([2**53 - 2, 2**53 - 1], dtype="Int64")
    assert np.all(check_users(groups, 1, 2).kept_records(7))


@pytest.mark.parametrize("nobody", ["", " ", "nan", "None", "N/A", b"NULL", b" "])
def test_rows_of_nobody_are_not_taken_for_those_of_one_user(nobody):
    """Of many people without a name few would count, and one of them moves others."""
    named = b"p" if isinstance(nobody, bytes) else "p"
    with pytest.raises(ValueError, match="groups must name the user of each row"):
        check_users([named, nobody], 1, 2, None)


def test_users_in_another_order_than_the_rows_are_refused():
    """Taken by place, they would be the users of other rows."""
    table = pd.DataFrame({"a": [0.3, 0.1, 0.2], "patient": [1, 2, 3]})
    rows = table.sort_values("a")[["a"]]
    with pytest.raises(ValueError, match=r"Pass groups.loc\[X.index\]"):
        check_users(table["patient"], 1, 3, rows)
    found = check_users(table["patient"].loc[rows.index], 1, 3, rows)
    assert found.ids.tolist() == [2, 3, 1]
    mixed = table["patient"].set_axis([7, "b", None])  # which nobody can sort
    for other in (table["patient"].to_numpy(), mixed, mixed.set_axis([7, 8, 9])):
        assert check_users(other, 1, 3, rows).n_users == 3


@pytest.mark.parametrize(
    "labels", [["b", "a", "b", "c"], [0, 1, 0, 1], ["a", 1, "a", None]]
)
def test_users_in_another_order_are_refused_where_labels_repeat(labels):
    """A table by patient, or two files put together."""
    users = pd.Series([1, 2, 3, 4], index=labels)
    rows = users.to_frame()
    assert check_users(users, 1, 4, rows).n_users == 4
    assert check_users(users.reset_index(drop=True), 1, 4, rows).n_users == 4
    with pytest.raises(ValueError, match="must have the index of X and y in its order"):
        check_users(users.iloc[[1, 0, 2, 3]], 1, 4, rows)


@pytest.mark.parametrize("kinds", [("Int64", "int64"), ("string", "object")])
def test_users_in_another_order_are_refused_whatever_type_an_index_has(kinds):
    """A table that was read with nullable types, beside one that was not."""
    labels = pd.Series([3, 1, 2]) if "int64" in kinds else pd.Series(["c", "a", "b"])
    mine, others = (pd.Index(labels.astype(kind)) for kind in kinds)
    users, rows = pd.Series([1, 2, 3], index=mine), pd.DataFrame(index=others)
    assert check_users(users, 1, 3, rows).n_users == 3
    with pytest.raises(ValueError, match="must have the index of X and y in its order"):
        check_users(users.iloc[[1, 0, 2]], 1, 3, rows)
