"""Fits to sparse rows and their predictions are those of the same rows, dense."""

import math
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from scipy import sparse
from sklearn.utils.estimator_checks import parametrize_with_checks

from privfeat import (
    DPFC,
    DPAdamLinear,
    DPLeastSquares,
    DPLeastSquaresRegressor,
    DPNearestMean,
    DPNewton,
    DPRandomizedSearch,
)
from privfeat.estimation.team import check_team
from tests.linear.conftest import passes

pytestmark = pytest.mark.filterwarnings(
    "ignore::privfeat.exceptions.PrivacyWarning",
    "ignore::sklearn.exceptions.SkipTestWarning",
)

# Clipped gradients are rounded to a grid, and Adam divides by small ones.
CLOSE = 3e-3
TAKE_SPARSE = {"adam": DPAdamLinear, "ls": DPLeastSquares, "nearest": DPNearestMean}


@pytest.fixture(params=TAKE_SPARSE)
def taker(request):
    return TAKE_SPARSE[request.param]


@pytest.fixture
def texts():
    """1,100 rows, in two chunks, of twelve counts, most of them zero; one is empty."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 1100)
    X = rng.poisson(0.2, (1100, 12)) + rng.poisson(2.0, (1100, 12)) * np.eye(3, 12)[y]
    X[5] = 0.0
    return X.astype(float), y


OPTIONS = [
    {},
    {"epsilon": math.inf},
    {"epsilon": math.inf, "row_scaling": "clip", "clip_norm": 100.0},
    {"epsilon": math.inf, "fit_intercept": False},
    {"row_scaling": "clip", "clip_norm": 2.0, "intercept_scaling": 0.5},
    {"fit_intercept": False},
    {"adjacency": "replace_one"},
    {"arithmetic": "exact"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_fit_and_predictions_are_those_of_dense_rows(taker, texts, options):
    """The same noise: a seed draws it alike for both."""
    X, y = texts
    options = {"epsilon": 4.0, "classes": range(3), "random_state": 0, **options}
    found, expected = (
        taker(center=False, **options).fit(rows, y) for rows in (sparse.csr_array(X), X)
    )
    for clf in (found, expected):
        assert not clf.center_.any()
        np.testing.assert_allclose(clf.coef_, expected.coef_, atol=CLOSE)
        np.testing.assert_allclose(clf.intercept_, expected.intercept_, atol=CLOSE)
    assert found.privacy_ == expected.privacy_
    rows = sparse.csr_array(X)
    np.testing.assert_allclose(
        found.decision_function(rows), found.decision_function(X), atol=1e-9
    )
    np.testing.assert_allclose(
        found.predict_proba(rows), found.predict_proba(X), atol=1e-9
    )
    np.testing.assert_array_equal(found.predict(rows), found.predict(X))
    assert found.score(rows, y) == found.score(X, y)
    assert found.score(rows, y) > 0.6


@pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")
def test_rows_without_privacy_and_constant_are_as_they_are(texts):
    X, y = texts
    options = {"epsilon": np.inf, "row_scaling": "clip", "fit_intercept": False}
    found, expected = (
        DPAdamLinear(classes=range(3), center=False, random_state=0, **options).fit(
            rows, y
        )
        for rows in (sparse.csr_array(X), X)
    )
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-4)


@pytest.mark.parametrize("options", [{"class_gram": True}, {"gram_noise": "full"}])
def test_least_squares_takes_sparse_rows_in_all_its_forms(texts, options):
    X, y = texts
    options = {"epsilon": 4.0, "classes": range(3), "random_state": 0, **options}
    found, expected = (
        DPLeastSquares(center=False, **options).fit(rows, y).coef_
        for rows in (sparse.csr_array(X), X)
    )
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.slow
def test_adam_samples_sparse_rows(texts):
    X, y = texts
    clf = DPAdamLinear(
        epsilon=4.0, classes=range(3), center=False, sampling_prob=0.5, n_iter=5
    ).set_params(accounting="pld", random_state=0)
    found = clf.fit(sparse.csr_array(X), y).coef_
    np.testing.assert_allclose(found, clf.fit(X, y).coef_, atol=CLOSE)


@pytest.mark.slow
def test_sparse_rows_stay_on_the_host_of_an_accelerator(
    taker, texts, monkeypatch, plant
):
    """Bit for bit: their sums have no slices, and their chunks are as on a CPU."""
    X, y = texts
    clf = taker(center=False, epsilon=4.0, classes=range(3), random_state=0)
    expected = clf.fit(sparse.csr_array(X), y).coef_
    plant("choice of slices", lambda: True)
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    np.testing.assert_array_equal(clf.fit(sparse.csr_array(X), y).coef_, expected)


def test_records_beyond_those_of_a_user_that_count_add_nothing(taker, texts):
    X, y = texts
    users = np.arange(1100) // 4
    clf = taker(
        epsilon=4.0, classes=range(3), center=False, max_group_size=1, random_state=0
    )
    found = clf.fit(sparse.csr_array(X), y, groups=users).coef_.copy()
    expected = clf.fit(X, y, groups=users).coef_
    np.testing.assert_allclose(found, expected, atol=CLOSE)


@pytest.mark.parametrize("taker", [DPAdamLinear, DPLeastSquares])
def test_sparse_rows_may_carry_several_labels(taker, texts):
    X, _ = texts
    Y = sparse.csr_array((X[:, :3] > 1).astype(int))
    clf = taker(epsilon=9.0, classes=list("abc"), center=False, random_state=0)
    found = clf.fit(sparse.csr_array(X), Y).coef_.copy()
    np.testing.assert_allclose(found, clf.fit(X, Y).coef_, atol=CLOSE)
    predicted = clf.predict(sparse.csr_array(X))
    np.testing.assert_array_equal(predicted, clf.predict(X))


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix])
def test_fit_leaves_a_sparse_matrix_alone(taker, texts, kind):
    """Though it stores zeros, one entry in two parts, and columns in any order."""
    X, y = texts
    given = kind(X)
    given.data = np.r_[given.data, 0.0, 0.25, -0.25]
    given.indices = np.r_[given.indices, 3, 1, 1].astype(np.int64)
    given.indptr = given.indptr.astype(np.int64)
    given.indptr[-1] += 3
    before = [part.copy() for part in (given.data, given.indices, given.indptr)]
    clf = taker(epsilon=4.0, classes=range(3), center=False, random_state=0)
    found = clf.fit(given, y).coef_.copy()
    clf.predict(given)
    for part, old in zip(
        (given.data, given.indices, given.indptr), before, strict=True
    ):
        np.testing.assert_array_equal(part, old)
    np.testing.assert_array_equal(found, clf.fit(sparse.csr_array(X), y).coef_)


@pytest.mark.parametrize("center", [True, np.zeros(12), np.True_])
def test_fit_refuses_to_centre_sparse_rows(taker, texts, center):
    X, y = texts
    clf = taker(center=center, classes=range(3))
    with pytest.raises(TypeError, match=r"sparse rows to .* with center=False, since"):
        clf.fit(sparse.csr_array(X), y)
    assert not hasattr(clf, "privacy_")


@pytest.mark.parametrize(
    "estimator",
    [
        DPFC(center=False, classes=range(3)),
        DPNewton(center=False, classes=range(3)),
        DPLeastSquaresRegressor(target_bounds=(0, 2)),
        DPRandomizedSearch(
            DPLeastSquares(center=False, classes=range(3)), {"alpha": [1.0]}
        ),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_others_refuse_sparse_rows_and_name_who_takes_them(estimator, texts):
    X, y = texts
    with pytest.raises(TypeError, match="DPLeastSquares or DPNearestMean with center"):
        estimator.fit(sparse.csr_array(X), y)


def test_predictions_of_a_centred_model_refuse_sparse_rows(taker, texts):
    X, y = texts
    clf = taker(classes=range(3)).fit(X, y)
    with pytest.raises(TypeError, match="centred rows are dense"):
        clf.predict(sparse.csr_array(X))
    clf.set_params(center=False)  # after the fit: what was released is still its center
    with pytest.raises(TypeError, match="centred rows are dense"):
        clf.predict(sparse.csr_array(X))


@pytest.mark.parametrize("where", ["fit", "predict"])
def test_damaged_matrices_and_gaps_are_refused_before_a_charge(taker, texts, where):
    X, y = texts
    clf = taker(center=False, classes=range(3))
    if where == "predict":
        clf.fit(X, y)
    damaged, gaps = sparse.csr_array(X), sparse.csr_array(X)
    damaged.indices[7] = -3
    gaps.data[3] = np.nan
    for matrix, text in ((damaged, "indices are in range"), (gaps, "NaN")):
        with pytest.raises(ValueError, match=text):
            clf.fit(matrix, y) if where == "fit" else clf.predict(matrix)
    assert hasattr(clf, "privacy_") == (where == "predict")
    with pytest.raises(ValueError, match="X has 5 features"):
        clf.fit(X, y).predict(sparse.csr_array(X[:, :5]))


@pytest.mark.slow
@parametrize_with_checks([cls(center=False) for cls in TAKE_SPARSE.values()])
def test_estimator_passes_every_check_of_sklearn_for_sparse_rows(estimator, check):
    passes(estimator, check)


@pytest.mark.parametrize(
    ("cls", "center", "expected"),
    [
        (DPAdamLinear, False, True),
        (DPLeastSquares, np.False_, True),
        (DPLeastSquares, True, False),
        (DPAdamLinear, [0.0], False),
        (DPFC, False, False),
    ],
)
def test_the_tag_says_who_takes_sparse_rows(cls, center, expected):
    assert cls(center=center).__sklearn_tags__().input_tags.sparse is expected


def test_processes_compare_where_entries_stand_as_well_as_the_entries(texts):
    """Two matrices may store the same numbers at other places."""

    class Listener:
        size, rows = 2, "shared"

        def each(self, value):
            return [int(value)] * self.size

        def check_same(self, what, content):
            if what == "rows":
                heard.append(content)

    X, y = texts
    clf, heard = DPAdamLinear(center=False, classes=range(3), n_iter=1).fit(X, y), []
    problem = SimpleNamespace(targets=y)
    shifted = sparse.csr_array(np.roll(X, 1, axis=1))
    for rows in (sparse.csr_array(X), sparse.csr_array(X), shifted, X):
        team = Listener()
        check_team(team, clf, None, clf.privacy_, problem, rows, False, about="")
    assert heard[0] == heard[1] != heard[2]
    assert X[:1024].tobytes() in heard[3]
    assert heard[3].endswith(X[-1].tobytes() + y.tobytes())
