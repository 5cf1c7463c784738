"""Users with several records: the neighbours lose or replace all of one user's."""

import itertools
import math

import numpy as np
import pytest

from privfeat import (
    DPFC,
    DPAdamLinear,
    DPLeastSquares,
    DPNearestMean,
    DPNewton,
    open_features,
)
from privfeat.data import write_features
from privfeat.exceptions import UnsupportedEventError
from tests.linear.replaying import assert_same_state, check_sensitivity, replay

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")
SAME = {"n_iter": 3, "gradient_clip_norm": 1.0}  # whose default goes by the users
FITS = {
    "ls": (DPLeastSquares, {}),
    "ls-class": (DPLeastSquares, {"class_gram": True}),
    "newton": (DPNewton, {"n_iter": 2}),
    "newton-sigmoid": (DPNewton, {"n_iter": 2, "loss": "sigmoid"}),
    "fc": (DPFC, {**SAME, "fit_intercept": True}),
    "fc-squared": (DPFC, {**SAME, "loss": "squared"}),
    "fc-balanced": (DPFC, {**SAME, "class_weight": "balanced"}),
    "adam": (DPAdamLinear, {"n_iter": 3, "row_scaling": "clip"}),
    "nearest": (DPNearestMean, {}),
}


@pytest.fixture(params=FITS)
def fit(request):
    return FITS[request.param]


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
            user_bound="count",
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


def test_check_sensitivity_notices_a_bound_for_one_record(users, spy, plant):

    plant("cost of a user", lambda query, most, clipped: query)
    X, y, groups = users
    own = groups == 9

    def make():
        options = {"user_bound": "count", "random_state": 0}
        return DPLeastSquares(classes=range(3), max_group_size=3, **options)

    one, two = (X, y, groups), (X[~own], y[~own], groups[~own])
    first, _, *calls = replay(spy, make, one, two)
    with pytest.raises(AssertionError):
        check_sensitivity(first.privacy_, *calls)


@pytest.mark.parametrize("max_group_size", [1, 3])
def test_fit_uses_so_many_records_of_each_user(max_group_size, users, spy):
    """Also on the chunks of one class; unit rows have a squared norm of one."""
    X, y, groups = users
    clf = DPLeastSquares(class_gram=True, max_group_size=max_group_size)
    clf.set_params(classes=range(3), user_bound="count").fit(X, y, groups)
    expected = np.sum(np.minimum(np.bincount(groups), max_group_size))
    (gram,) = spy.of("gram")
    assert np.trace(gram.exact) == pytest.approx(expected, rel=1e-4)
    found = sum(np.trace(call.exact) for call in spy.of("class_grams"))
    assert found == pytest.approx(expected, rel=1e-4)


def test_fit_multiplies_every_sensitivity(fit, users):
    cls, options = fit
    X, y, groups = users
    alone = cls(classes=range(3), **options).fit(X, y)
    clf = cls(classes=range(3), max_group_size=5, user_bound="count", **options)
    clf.fit(X, y, groups)
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
    counted = {"max_group_size": 9, "user_bound": "count"}
    for options, given in [({}, ()), (counted, (groups,))]:
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
