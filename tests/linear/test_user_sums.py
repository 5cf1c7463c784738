"""Users whose sums are clipped: no more noise than for records, whatever they hold."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from privfeat import (
    DPFC,
    DPAdamLinear,
    DPLeastSquares,
    DPLeastSquaresRegressor,
    DPNearestMean,
    DPNewton,
    PrivacyLedger,
    open_features,
)
from privfeat.core.sums.totals import exact_sum
from privfeat.data import write_features
from privfeat.estimation.inputs import check_users
from privfeat.estimation.rows.slots import slots_of
from privfeat.exceptions import PrivacyError
from tests.linear.replaying import (
    answered,
    assert_same_state,
    check_sensitivity,
    recorded,
)

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")
FITS = {
    "ls-class": (DPLeastSquares, {"class_gram": True}),
    "newton": (DPNewton, {"n_iter": 2}),
    "newton-one": (DPNewton, {"n_iter": 1, "gradient_clip_norm": None}),
    "newton-sigmoid": (DPNewton, {"n_iter": 2, "loss": "sigmoid"}),
    "fc": (DPFC, {"n_iter": 3, "gram_clip_norm": 0.7, "gradient_clip_norm": 0.4}),
    "fc-squared": (DPFC, {"n_iter": 3, "loss": "squared", "row_scaling": "clip"}),
    "adam": (
        DPAdamLinear,
        {"n_iter": 3, "center": False, "gradient_clip_norm": 1.0},
    ),
}
MOST = 9


@pytest.fixture(params=FITS)
def fit(request):
    cls, options = FITS[request.param]

    def make(adjacency="add_remove", **others):
        settings = {"epsilon": 2.0, "classes": range(3), "random_state": 0}
        settings |= {"max_group_size": MOST, "user_bound": "sum"} | options | others
        return cls(adjacency=adjacency, **settings)

    return make


def users_of(kind, n, rng):
    """What one user may hold: records that add up the most, or cancel, or neither."""
    y = np.zeros(n, int) if kind != "classes" else np.arange(n) % 3
    x = np.zeros((n, 4))
    x[:, 0] = 1e4
    if kind == "opposite":
        x[:] *= -1.0
    if kind == "cancelling":
        x[::2] *= -1.0
    if kind in ("random", "classes"):
        x = rng.normal(size=(n, 4))
    if kind == "apart":
        x = np.eye(4)[np.arange(n) % 4]
    return x, y


KINDS = ["alike", "opposite", "cancelling", "random", "classes", "apart"]


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_fit_without_a_user_differs_by_the_bound_of_one_record(
    fit, adjacency, users, spy
):
    """One user with any number of records, in any place, against none or another."""
    X, y, groups = users
    rng = np.random.default_rng(3)

    def data(kind, n, last):
        own_x, own_y = users_of(kind, n, rng)
        parts = [(X, y, groups + 1), (own_x, own_y, np.zeros(n, int))]
        return [
            np.concatenate(pair)
            for pair in zip(*parts[:: 1 if last else -1], strict=True)
        ]

    def make():
        return fit(adjacency)

    first, calls = recorded(spy, make, data("alike", MOST, False))
    neighbours = [data(kind, n, last=n > 1) for kind in KINDS for n in (MOST, 1, 30)]
    if adjacency == "add_remove":
        neighbours = [(X, y, groups + 1)]
    for other in neighbours:
        second, other_calls = answered(spy, make, calls, other)
        check_sensitivity(first.privacy_, calls, other_calls)
        assert_same_state(first, second)
    if adjacency == "add_remove":
        for kind in KINDS[1:]:
            first, calls = recorded(spy, make, data(kind, MOST, True))
            second, other_calls = answered(spy, make, calls, (X, y, groups + 1))
            check_sensitivity(first.privacy_, calls, other_calls)


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_regression_without_a_user_differs_by_the_bound_of_one_record(
    adjacency, users, spy
):
    X, _, groups = users
    own = groups == 9

    def make():
        options = {"target_bounds": (-1, 1), "random_state": 0}
        options |= {"max_group_size": MOST, "user_bound": "sum"}
        return DPLeastSquaresRegressor(adjacency=adjacency, **options)

    X_one, target = X.copy(), np.tanh(X[:, 1])
    X_one[own], target[own] = [1e4, 0.0, 0.0, 0.0], 1.0
    first, calls = recorded(spy, make, (X_one, target, groups))
    other = (X[~own], target[~own], groups[~own])
    if adjacency == "replace_one":
        X_one, target = X_one.copy(), target.copy()
        X_one[own], target[own] = [0.0, 1e4, 0.0, 0.0], -1.0
        other = (X_one, target, groups)
    _, other_calls = answered(spy, make, calls, other)
    check_sensitivity(first.privacy_, calls, other_calls)


def test_check_sensitivity_notices_users_that_are_not_clipped(users, spy, plant):
    plant("clip of users", lambda left, right, users, clip: np.ones(len(users)))
    X, y, groups = users
    own = groups == 9
    X[own], y[own] = [1.0, 0.0, 0.0, 0.0], 0

    def make():
        options = {"user_bound": "sum", "random_state": 0, "center": False}
        return DPLeastSquares(classes=range(3), max_group_size=9, **options)

    first, calls = recorded(spy, make, (X, y, groups))
    _, other_calls = answered(spy, make, calls, (X[~own], y[~own], groups[~own]))
    with pytest.raises(AssertionError):
        check_sensitivity(first.privacy_, calls, other_calls)


def test_a_users_records_add_the_same_wherever_they_stand(fit, users, spy):
    X, y, groups = users
    order = np.random.default_rng(1).permutation(len(y))
    _, calls = recorded(spy, fit, (X, y, groups))
    _, moved = answered(spy, fit, calls, (X[order], y[order], groups[order]))
    for one, two in zip(calls, moved, strict=True):
        np.testing.assert_array_equal(one.exact, two.exact)


def test_noise_is_that_of_records(fit, users):
    X, y, groups = users
    alone = fit(max_group_size=None).fit(X, y)
    clf = fit().fit(X, y, groups)
    for one, two in zip(alone.privacy_.releases, clf.privacy_.releases, strict=True):
        assert one == two
    assert clf.privacy_.unit == "user"
    said = "that they add no more to a sum than one record may"
    assert said in clf.privacy_.public
    assert said not in alone.privacy_.public
    assert clf.planned(4).records == clf.privacy_.releases


def test_fit_on_a_file_equals_fit_in_memory(fit, users, tmp_path):
    X, y, groups = users
    write_features(tmp_path / "users.h5", {"train": (X.astype(np.float32), y, groups)})
    split = open_features(tmp_path / "users.h5")["train"]
    lazy, memory = (
        fit(max_group_size=3).fit(features, split.y, split.groups)
        for features in (split.X, split.X[:])
    )
    np.testing.assert_array_equal(lazy.coef_, memory.coef_)


@pytest.mark.parametrize("cls", [DPLeastSquares, DPAdamLinear])
def test_fit_on_sparse_rows_adds_what_dense_ones_add(cls, users, spy):
    X, y, groups = users
    options = {"classes": range(3), "center": False, "row_scaling": "clip"}

    def make():
        options["random_state"] = 0
        return cls(max_group_size=9, user_bound="sum", **options)

    _, calls = recorded(spy, make, (X, y, groups))
    _, sparse = answered(spy, make, calls, (csr_array(X), y, groups))
    for one, two in zip(calls, sparse, strict=True):
        np.testing.assert_allclose(one.exact, two.exact, atol=1e-3)


def test_fit_without_privacy_clips_no_user(users):
    X, y, groups = users
    clf = DPLeastSquares(epsilon=np.inf, classes=range(3), max_group_size=9)
    expected = clf.fit(X, y, groups).coef_
    clf.set_params(user_bound="sum").fit(X, y, groups)
    np.testing.assert_allclose(clf.coef_, expected)


def test_users_are_clipped_under_exact_noise_too(users):
    clf = DPLeastSquares(classes=range(3), max_group_size=9, arithmetic="exact")
    clf.fit(*users)
    assert np.all(np.isfinite(clf.coef_))
    assert clf.privacy_.releases[-1].l2_sensitivity < 1.001


def test_fit_refuses_more_records_of_a_user_than_stand_in_a_block(users):
    clf = DPLeastSquares(classes=range(3), max_group_size=513, user_bound="sum")
    with pytest.raises(ValueError, match="max_group_size"):
        clf.fit(*users)
    clf.set_params(user_bound="count").fit(*users)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"loss": "sigmoid", "classes": range(5000)}, "loss must not be 'sigmoid'"),
        ({"gradient_clip_norm": 1e-4}, "max_group_size must be smaller"),
    ],
)
def test_users_who_cannot_be_clipped_are_refused_before_the_charge(options, match):
    made = {"classes": range(3), "max_group_size": 400} | options
    with pytest.raises(ValueError, match=match):
        DPAdamLinear(**made).planned(4)
    DPAdamLinear(**made, user_bound="count").planned(4)


@pytest.mark.parametrize(
    "clf",
    [
        DPLeastSquares(classes=range(3), max_group_size=512, clip_norm=1.01),
        DPFC(classes=range(3), max_group_size=512, gram_clip_norm=0.51),
    ],
)
def test_gram_matrices_too_large_to_clip_are_refused_before_the_charge(clf):
    with pytest.raises(ValueError, match="max_group_size must be smaller"):
        clf.planned(11_000)


@pytest.mark.filterwarnings("ignore:X should have fewer columns")
def test_a_regression_too_large_to_clip_is_refused_before_the_charge(tmp_path):
    budget = {"epsilon": 1.0, "delta": 1e-5}
    ledger = PrivacyLedger(tmp_path / "ledger", dataset="d", unit="user", **budget)
    model = DPLeastSquaresRegressor(target_bounds=(0, 1), ledger=ledger, **budget)
    model.set_params(max_group_size=512, clip_norm=0.76)
    with pytest.raises(ValueError, match="max_group_size must be smaller"):
        model.fit(np.zeros((2, 10_600)), [0.0, 1.0], [1, 2])
    assert ledger.spent.epsilon == 0.0


def test_users_of_long_rows_are_clipped_where_no_matrix_is_summed():
    clf = DPNearestMean(classes=range(3), max_group_size=512, center=False)
    assert clf.planned(2**17).records[0].l2_sensitivity < 1.0


def test_users_stand_side_by_side_and_cross_no_block(users):
    _, _, groups = users
    for most in (1, 2, 3, 9):
        found = check_users(groups, most, len(groups))
        kept = found.kept_records(7)
        slots = slots_of(groups, kept, most)
        filled = slots.records[slots.records >= 0]
        np.testing.assert_array_equal(np.sort(filled), np.flatnonzero(kept))
        block = 1 << (most - 1).bit_length()
        for user in range(10):
            own = np.flatnonzero(np.isin(slots.records, np.flatnonzero(groups == user)))
            assert len(np.unique(own // block)) == 1
            assert len(np.unique(slots.users[own])) == 1
        assert np.all((slots.users >= 0) == (slots.records >= 0))


def test_users_are_those_of_one_reading():
    """Another thread, or the writer of a memory map, may change them meanwhile."""
    groups = np.arange(12) // 2
    found = check_users(groups, 2, len(groups))
    kept = found.kept_records(7)
    groups[:] = 0  # a user of twelve records would stand in six blocks
    slots = slots_of(found.ids, kept, 2)
    assert np.unique(slots.users, return_counts=True)[1].max() == 2


def test_a_sum_of_ones_own_has_no_noise_for_clipped_users():
    """By its name alone it would have that of sums which are clipped by user."""

    class OwnSum(DPNearestMean):
        def _solve(self, rows, mechanism, shape):
            size = (shape.n_outputs, shape.n_columns)
            own = exact_sum(rows, size, 1.0, lambda chunk: np.zeros(size))
            mechanism.release("class_contrasts", own)

    clf = OwnSum(classes=range(3), max_group_size=2, center=False)
    with pytest.raises(PrivacyError, match="class_contrasts must be clipped by user"):
        clf.fit(np.eye(3), range(3), groups=[0, 0, 1])
