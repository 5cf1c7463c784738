"""Users with several records: the neighbours lose or replace all of one user's."""

import itertools
import math

import numpy as np
import pytest

from privfeat import (
    DPFC,
    DPAdamLinear,
    DPLeastSquares,
    DPNewton,
    HashKFold,
    open_features,
)
from privfeat.data import write_features
from privfeat.estimation.inputs import check_users
from privfeat.exceptions import UnsupportedEventError
from tests.linear.replaying import assert_same_state, check_sensitivity, replay

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")
FITS = {
    "ls": (DPLeastSquares, {}),
    "ls-class": (DPLeastSquares, {"class_gram": True}),
    "newton": (DPNewton, {"n_iter": 2}),
    "newton-sigmoid": (DPNewton, {"n_iter": 2, "loss": "sigmoid"}),
    "fc": (DPFC, {"n_iter": 3, "fit_intercept": True}),
    "fc-squared": (DPFC, {"n_iter": 3, "loss": "squared"}),
    "adam": (DPAdamLinear, {"n_iter": 3, "row_scaling": "clip"}),
}


@pytest.fixture(params=FITS)
def fit(request):
    return FITS[request.param]


@pytest.fixture
def users():
    """Forty records of ten users, who have from one to nine, in any order."""
    rng = np.random.default_rng(0)
    sizes = [1, 1, 2, 3, 3, 4, 4, 6, 7, 9]
    groups = rng.permutation(np.repeat(np.arange(10), sizes))
    y = rng.integers(0, 3, 40)
    return rng.normal(size=(40, 4)) + 2.0 * np.eye(3, 4)[y], y, groups


@pytest.mark.parametrize("max_group_size", [1, 3, 20])
@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_fit_without_a_user_differs_by_the_declared_sensitivity_alone(
    fit, adjacency, max_group_size, users, spy
):
    """The worst user has equal records that are as long as they may be."""
    cls, options = fit
    X, y, groups = users

    def make():
        return cls(
            epsilon=2.0,
            adjacency=adjacency,
            classes=range(3),
            max_group_size=max_group_size,
            random_state=0,
            **options,
        )

    for user, alike in itertools.product([0, 5, 9], [True, False]):
        own = groups == user
        X_one, y_one = X.copy(), y.copy()
        if alike:
            X_one[own], y_one[own] = [[1e4, 0.0, 0.0, 0.0]], 0
        one = X_one, y_one, groups
        if adjacency == "add_remove":
            two = X_one[~own], y_one[~own], groups[~own]
        else:
            # any number of other records, in another place
            others = -X_one[own][[0] * 7]
            two = (
                np.concatenate([others, X_one[~own]]),
                np.concatenate([[0] * 7, y_one[~own]]),
                np.concatenate([[user] * 7, groups[~own]]),
            )
        first, second, *calls = replay(spy, make, one, two)
        check_sensitivity(first.privacy_, *calls)
        assert_same_state(first, second)


def test_check_sensitivity_notices_a_bound_for_one_record(users, spy, monkeypatch):
    from privfeat.core.accounting.plan import Query

    monkeypatch.setattr(Query, "per_user", lambda query, max_group_size: query)
    X, y, groups = users
    own = groups == 9

    def make():
        return DPLeastSquares(classes=range(3), max_group_size=3, random_state=0)

    one, two = (X, y, groups), (X[~own], y[~own], groups[~own])
    first, _, *calls = replay(spy, make, one, two)
    with pytest.raises(AssertionError):
        check_sensitivity(first.privacy_, *calls)


@pytest.mark.parametrize("max_group_size", [1, 3])
def test_fit_uses_so_many_records_of_each_user(max_group_size, users, spy):
    """Also on the chunks of one class; unit rows have a squared norm of one."""
    X, y, groups = users
    clf = DPLeastSquares(class_gram=True, max_group_size=max_group_size)
    clf.set_params(classes=range(3)).fit(X, y, groups)
    expected = np.sum(np.minimum(np.bincount(groups), max_group_size))
    (gram,) = spy.of("gram")
    assert np.trace(gram.exact) == pytest.approx(expected, rel=1e-4)
    found = sum(np.trace(call.exact) for call in spy.of("class_grams"))
    assert found == pytest.approx(expected, rel=1e-4)


def test_fit_multiplies_every_sensitivity(fit, users):
    cls, options = fit
    X, y, groups = users
    alone = cls(classes=range(3), **options).fit(X, y)
    clf = cls(classes=range(3), max_group_size=5, **options).fit(X, y, groups)
    for one, two in zip(alone.privacy_.releases, clf.privacy_.releases, strict=True):
        assert two.l2_sensitivity == pytest.approx(5 * one.l2_sensitivity)
        assert two.noise_multiplier == one.noise_multiplier
    assert clf.privacy_.epsilon == alone.privacy_.epsilon


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_fit_states_the_unit(estimator, adjacency, users):
    X, y, groups = users
    clf = estimator(max_group_size=5, adjacency=adjacency).fit(X, y, groups)
    assert clf.privacy_.unit == "user"
    assert "that of a user's records at most 5 count" in clf.privacy_.public
    replace = adjacency == "replace_one"
    assert ("the number of users" in clf.privacy_.public) is replace
    assert "the number of records" not in clf.privacy_.public
    assert "all records of one user" in str(clf.privacy_)
    clf.set_params(max_group_size=None).fit(X, y)
    assert clf.privacy_.unit == "record"


@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_fit_with_a_bound_that_cuts_nothing_uses_all_records(epsilon, users, spy):
    X, y, groups = users
    for options, given in [({}, ()), ({"max_group_size": 9}, (groups,))]:
        spy.start()
        # the mean is noisy, and other rows depend on it
        DPLeastSquares(epsilon=epsilon, center=False, **options).fit(X, y, *given)
        exact = [call.exact for call in spy.calls]
        if not options:
            expected = exact
    for one, two in zip(exact, expected, strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(
    "name",
    [str, lambda user: f"u{user:03d}", lambda user: int(user) + 2**60],
)
@pytest.mark.parametrize("dtype", [None, object])
def test_fit_accepts_integers_and_strings_as_users(name, dtype, users):
    X, y, groups = users
    ids = np.array([name(user) for user in groups], dtype)
    clf = DPLeastSquares(classes=range(3), max_group_size=2, random_state=0)
    one = clf.fit(X, y, ids).coef_
    np.testing.assert_array_equal(clf.fit(X, y, ids.tolist()).coef_, one)


@pytest.mark.parametrize(
    ("options", "given", "match"),
    [
        ({}, True, "max_group_size must be given together with groups"),
        ({"max_group_size": 2}, False, "groups must be given together with"),
    ],
)
def test_fit_refuses_groups_without_a_bound(estimator, options, given, match, users):
    X, y, groups = users
    clf = estimator(**options)
    with pytest.raises(ValueError, match=match):
        clf.fit(X, y, groups if given else None)
    assert not hasattr(clf, "privacy_")


@pytest.mark.parametrize(
    "bad",
    [
        np.zeros(39, int),
        np.zeros((40, 2)),
        np.full(40, math.nan),
        np.zeros(0),
        np.ma.array(np.zeros(40, int), mask=np.arange(40) == 7),
    ],
    ids=["short", "matrix", "nan", "empty", "masked"],
)
def test_fit_refuses_groups_that_are_not_one_for_each_record(estimator, bad, users):
    X, y, _ = users
    with pytest.raises((TypeError, ValueError), match="groups must"):
        estimator(max_group_size=2).fit(X, y, bad)


def test_fit_refuses_to_sample_records_of_users(users):
    clf = DPAdamLinear(sampling_prob=0.5, accounting="pld", max_group_size=2)
    with pytest.raises(UnsupportedEventError, match="sampling_prob must be 1"):
        clf.fit(*users)


def test_fit_on_a_file_equals_fit_in_memory(fit, users, tmp_path):
    cls, options = fit
    X, y, groups = users
    write_features(tmp_path / "users.h5", {"train": (X.astype(np.float32), y, groups)})
    split = open_features(tmp_path / "users.h5")["train"]
    lazy, memory = (
        cls(random_state=0, max_group_size=2, **options).fit(X, split.y, split.groups)
        for X in (split.X, split.X[:])
    )
    np.testing.assert_array_equal(lazy.coef_, memory.coef_)


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


@pytest.mark.parametrize(
    "ids",
    [
        [2**63 + i for i in range(200)],
        [f"u{i // 2}" + "\0" * (i % 2) for i in range(200)],
    ],
    ids=["large", "zeros"],
)
def test_check_users_tells_users_apart_whoever_else_is_there(ids):
    """NumPy makes floats of large beside small integers, and cuts zeros of strings."""
    other = 5 if isinstance(ids[0], int) else "other"
    for groups in (ids, [*ids, other]):
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
    groups = pandas.Series([2**60, 2**60 + 1], dtype="Int64")
    assert np.all(check_users(groups, 1, 2).kept_records(7))
