"""Public rows are read in parts, stated, compared, and never those of the fit."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

import privfeat
from privfeat import DPFC, DPAdamLinear, DPLeastSquares, open_features
from privfeat.data import join_features, write_features
from privfeat.data.sharing import check_apart
from privfeat.estimation.predictor import scaled_rows
from privfeat.estimation.team import _described
from privfeat.linear.parameters.public import PublicRows, read_public

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")
TAKE_PUBLIC_ROWS = [DPFC, DPAdamLinear, DPLeastSquares]
OPTIONS = {"classes": [0, 1, 2], "random_state": 0, "epsilon": 1.0}
FACT = (
    "the 50 public rows, which the guarantee does not cover, and that they hold no "
    "record of the fit"
)


@pytest.fixture
def public():
    return np.random.default_rng(3).normal(size=(50, 4)) + 2.0 * np.eye(4)[0]


@pytest.fixture
def public_file(public, tmp_path):
    path = tmp_path / "public.h5"
    write_features(path, {"train": (public.astype(np.float32), np.zeros(50, int))})
    return privfeat.open_features(path)


@pytest.mark.parametrize("cls", TAKE_PUBLIC_ROWS)
def test_public_rows_cost_nothing_and_are_stated(cls, public, three_classes):
    one, other = (
        cls(public=rows, **OPTIONS).fit(*three_classes) for rows in (public, None)
    )
    assert one.privacy_.releases == other.privacy_.releases
    assert FACT in one.privacy_.public
    assert FACT not in other.privacy_.public
    assert np.any(one.coef_ != other.coef_)
    assert cls(public=public, **OPTIONS).planned(4) == cls(**OPTIONS).planned(4)


@pytest.mark.parametrize("cls", TAKE_PUBLIC_ROWS)
def test_without_noise_public_rows_change_nothing_but_by_rounding(cls, three_classes):
    public = np.random.default_rng(3).normal(size=(50, 4))
    options = OPTIONS | {"epsilon": np.inf}
    one, other = (
        cls(public=rows, **options).fit(*three_classes) for rows in (public, None)
    )
    # rows are float32: another rounding of the mean is another rounding of all
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-3, atol=1e-4)


@pytest.fixture(scope="module")
def kinds():
    """Records of three classes, test rows, and public rows: theirs, and turned."""
    rng = np.random.default_rng(0)
    scale = 1.0 / np.sqrt(np.arange(1, 201))
    rows = (rng.normal(size=(3000, 200)) + 3.0) * scale
    y = np.argmax((rows / scale)[:, :3], axis=1)
    turn = np.linalg.qr(rng.normal(size=(200, 200)))[0]
    public = {"same": rows[300:1500].copy(), "other": rows[300:1500] @ turn}
    return (rows[:300], y[:300]), (rows[1500:], y[1500:]), public | {"none": None}


@pytest.mark.slow
@pytest.mark.parametrize("cls", TAKE_PUBLIC_ROWS)
def test_public_rows_help_and_those_of_another_kind_do_not_harm(cls, kinds):
    train, test, public = kinds
    found = {
        name: np.mean(
            [
                cls(public=rows, **OPTIONS | {"random_state": seed})
                .fit(*train)
                .score(*test)
                for seed in range(3)
            ]
        )
        for name, rows in public.items()
    }
    assert found["same"] > found["none"] + 0.02
    assert found["other"] > found["none"] - 0.01


@pytest.mark.parametrize("row_scaling", ["unit", "clip"])
def test_moments_are_those_of_bounded_rows(row_scaling, public):
    public = np.concatenate([public * size for size in range(1, 101)])  # two parts
    found = PublicRows(public, public, row_scaling, 1.5)
    center = np.array([0.5, 0.0, 0.1, 0.0])

    def bounded(center):
        rows = scaled_rows(public, center, row_scaling)
        if row_scaling == "unit":
            return rows
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        return rows * np.minimum(1.0, 1.5 / norms)

    np.testing.assert_allclose(found.mean, bounded(np.zeros(4)).mean(axis=0))
    wanted = bounded(center).T @ bounded(center) / len(public)
    np.testing.assert_allclose(found.second_moment(center), wanted, atol=1e-6)


def test_file_gives_the_fit_of_its_array(public, public_file, three_classes):
    split = public_file["train"]
    coefs = [
        DPFC(public=given, **OPTIONS).fit(*three_classes).coef_
        for given in (split, split.X, split.X[:])
    ]
    np.testing.assert_array_equal(coefs[0], coefs[1])
    np.testing.assert_array_equal(coefs[0], coefs[2])


@pytest.mark.parametrize(
    ("public", "kind", "words"),
    [
        (np.ones((3, 5)), ValueError, r"public must have shape \(n_public, 4\), got"),
        (np.ones((0, 4)), ValueError, "at least 1 row"),
        (np.ones(4), ValueError, "two dimensions"),
        (np.ones((2, 4), complex), TypeError, "made of numbers"),
        ("file.h5", TypeError, "made of numbers"),
        (csr_array(np.eye(4)), TypeError, "must be dense"),
    ],
)
def test_rows_that_do_not_fit_are_refused_before_a_fit(public, kind, words):
    with pytest.raises(kind, match=words):
        DPFC(public=public, classes=[0, 1, 2]).planned(4)


@pytest.mark.parametrize("n_public", [1, 2])
def test_one_row_and_rows_of_zeros_are_rows(n_public, three_classes):
    for cls in TAKE_PUBLIC_ROWS:
        for rows in (np.zeros((n_public, 4)), np.ones((n_public, 4), int)):
            assert np.all(
                np.isfinite(cls(public=rows, **OPTIONS).fit(*three_classes).coef_)
            )


def test_nan_is_refused_before_anything_is_charged(public, three_classes, tmp_path):
    public[7, 2] = np.nan
    ledger = privfeat.PrivacyLedger(
        tmp_path / "a.ledger", dataset="a", epsilon=2.0, delta=1e-5
    )
    with pytest.raises(ValueError, match="public must be finite"):
        DPFC(public=public, ledger=ledger, **OPTIONS).fit(*three_classes)
    assert ledger.history == []


def test_records_of_the_fit_are_no_public_rows(public_file, three_classes):
    X, y = three_classes
    for given in (X, X[3:7]):
        with pytest.raises(ValueError, match="public must not be the records"):
            DPFC(public=given, **OPTIONS).fit(X, y)
    for given in (X.tolist(), pd.DataFrame(X).astype({0: np.float32})):  # not views
        with pytest.raises(ValueError, match="public must not be the records"):
            DPFC(public=given, **OPTIONS).fit(given, y)
    DPFC(public=X.copy(), **OPTIONS).fit(X, y)  # nobody can know
    rows = public_file["train"]
    y = np.arange(50) % 3
    with pytest.raises(ValueError, match="public must not be the records"):
        DPFC(public=rows, **OPTIONS).fit(rows.X, y)


@pytest.mark.parametrize("way", ["symbolic link", "hard link", "shard", "other"])
def test_records_are_known_by_every_path_of_their_file(way, public_file, tmp_path):
    again = tmp_path / "again.h5"
    if way == "symbolic link":
        again.symlink_to(public_file.path)
    elif way == "hard link":
        again.hardlink_to(public_file.path)
    else:
        write_features(tmp_path / "b.h5", {"train": (np.eye(4, dtype="f4"), range(4))})
        others = ["b.h5"] if way == "other" else ["b.h5", "public.h5"]
        join_features(again, [tmp_path / name for name in others])
    rows = open_features(again)["train"].X
    if way == "other":
        check_apart(public_file["train"], rows)
        return
    with pytest.raises(ValueError, match="public must not be the records"):
        check_apart(public_file["train"], rows)


def test_records_that_folds_are_cut_of_are_no_public_rows(tmp_path, three_classes):
    """Refused at the first fold, before anything is charged."""
    X, y = three_classes
    write_features(tmp_path / "a.h5", {"train": (np.asarray(X, np.float32), y)})
    rows = open_features(tmp_path / "a.h5")["train"]
    ledger = privfeat.PrivacyLedger(tmp_path / "l", dataset="d", epsilon=9, delta=1e-5)
    clf = DPLeastSquares(classes=range(3), public=rows.X, ledger=ledger)
    folds = privfeat.HashKFold(2)
    with pytest.raises(ValueError, match="public must not be the records of the fit"):
        cross_val_score(clf, rows.X, rows.y, cv=folds, error_score="raise")
    assert not ledger.history


def test_public_rows_are_not_saved(public, three_classes, tmp_path):
    fitted = DPFC(public=public, **OPTIONS).fit(*three_classes)
    privfeat.save(fitted, tmp_path / "model")
    loaded = privfeat.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.coef_, fitted.coef_)
    assert loaded.public is None
    assert FACT in loaded.privacy_.public


@pytest.mark.slow
def test_public_rows_are_cloned_shown_and_searched(public, public_file, three_classes):
    for given in (public, public_file["train"]):
        estimator = DPFC(public=given, **OPTIONS)
        once, twice = (e.fit(*three_classes) for e in (estimator, clone(estimator)))
        np.testing.assert_array_equal(once.coef_, twice.coef_)
        assert "public=" in repr(estimator)
    found = GridSearchCV(DPFC(**OPTIONS), {"public": [None, public]}, cv=2)
    assert np.all(np.isfinite(found.fit(*three_classes).cv_results_["mean_test_score"]))


def test_processes_compare_the_mean_of_public_rows(public):
    def described(rows):
        estimator = DPFC(public=rows)
        parts = read_public(estimator, 4).parts
        return _described(estimator, {"public": parts})

    assert described(public) == described(public.copy())
    assert described(public) != described(public[:-1])


def test_public_rows_and_a_prior_go_together(public, three_classes):
    for cls in TAKE_PUBLIC_ROWS:
        both = cls(public=public, prior=np.eye(3, 4), **OPTIONS)
        assert np.all(np.isfinite(both.fit(*three_classes).coef_))


@pytest.mark.parametrize("cls", [DPAdamLinear, DPLeastSquares])
def test_public_rows_that_would_change_nothing_are_refused(cls, public, three_classes):
    for center in (False, np.zeros(4)):
        with pytest.raises(ValueError, match="center must be True with public"):
            cls(public=public, center=center, **OPTIONS).fit(*three_classes)
