"""What `fit` warns of and refuses before it reads a value."""

import math
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import cross_val_score
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from privfeat import (
    DPFC,
    DPLeastSquares,
    DPLeastSquaresRegressor,
    DPRandomizedSearch,
    DPSGDClassifier,
    HashKFold,
    PrivacyLedger,
    PrivacyWarning,
    open_features,
)
from privfeat.core.statement.weak_choices import LARGE_DELTA
from privfeat.data import write_features

DELTA = "delta should be well below one over the number of records"


@pytest.fixture
def rows():
    y = np.arange(60) % 3
    return np.eye(4)[y] + 0.1 * np.random.default_rng(0).normal(size=(60, 4)), y


@pytest.fixture
def table(rows):
    frame = pd.DataFrame(rows[0], columns=list("abcd"))
    frame["admitted"] = pd.date_range("2020-01-01", periods=60)
    return frame


def heard(estimator, *args, **named):
    """Return what a fit warns of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator.fit(*args, **named)
    return [str(entry.message) for entry in caught]


def test_statement_names_the_columns_that_a_model_keeps(rows):
    """Those of ``get_dummies`` tell of a rare value."""
    frame, y = pd.DataFrame(rows[0], columns=list("abcd")), rows[1]
    fit = DPLeastSquares(classes=range(3))
    for estimator in (fit, DPRandomizedSearch(fit, {"ridge": [1.0]})):
        named, plain = (estimator.fit(X, y).privacy_.public for X in (frame, rows[0]))
        assert "the number and the names of features (4)" in named
        assert "the number of features (4)" in plain


@pytest.mark.parametrize(("n_rows", "warned"), [(20_000, False), (20_001, True)])
def test_fit_warns_of_a_delta_above_one_over_the_records(n_rows, warned):
    y = np.arange(n_rows) % 2
    clf = DPLeastSquares(epsilon=1.0, delta=5e-5, classes=[0, 1])
    found = heard(clf, np.eye(2)[y], y)
    assert found == ([f"{DELTA}, got 5e-05. Pass a smaller one."] if warned else [])
    assert "below one" not in clf.privacy_.to_json()


def test_the_warning_of_a_large_delta_tells_nothing_more(rows):
    """Where delta is large by itself, few records and many hear the same words."""
    clf = DPLeastSquares(epsilon=1.0, delta=0.02, classes=range(3))
    X, y = rows
    said = f"{DELTA}, got 0.02. Pass a smaller one."
    assert heard(clf, X[:10], y[:10]) == heard(clf, X, y) == [said]


def test_users_count_where_users_are_protected(rows):
    X, y = (np.tile(part.T, 600).T for part in rows)
    options = {"epsilon": 1.0, "delta": 5e-5, "classes": range(3)}
    assert 36_000 * 5e-5 > 1 > 9_000 * 5e-5
    assert 5e-5 < LARGE_DELTA
    assert heard(DPLeastSquares(**options), X, y)
    users = np.arange(36_000) // 4
    assert not heard(DPLeastSquares(**options, max_group_size=4), X, y, groups=users)


@pytest.mark.parametrize(
    "estimator",
    [
        DPLeastSquares(classes=range(3)),
        DPRandomizedSearch(
            DPLeastSquares(classes=range(3)), {"alpha": [1.0]}, epsilon=1.0
        ),
    ],
)
def test_fit_tells_of_groups_that_it_does_not_use(estimator, rows, tmp_path):
    path = tmp_path / "users.h5"
    write_features(path, {"train": (*rows, np.arange(60) // 2), "plain": rows})
    file = open_features(path)
    with pytest.warns(PrivacyWarning, match="says whose each row is"):
        estimator.fit(file["train"].X, file["train"].y)
    assert not heard(estimator, file["plain"].X, file["plain"].y)


def test_a_pipeline_tells_of_groups_that_its_first_step_loses(rows, tmp_path):
    path, users = tmp_path / "users.h5", np.arange(60) // 2
    write_features(path, {"train": (*rows, users), "plain": rows})
    file, clf = open_features(path), DPLeastSquares(classes=range(3))
    pipe = make_pipeline(FunctionTransformer(np.positive), clf)
    with pytest.warns(PrivacyWarning, match="says whose each row is.*STEP__groups"):
        pipe.fit(file["train"].X, file["train"].y)
    for split, given in (
        ("plain", {}),
        ("train", {"dpleastsquares__groups": file["train"].groups}),
    ):
        clf.set_params(max_group_size=2 if given else None)
        with warnings.catch_warnings(record=True, action="always") as caught:
            pipe.fit(file[split].X, file[split].y, **given)
        assert not [w for w in caught if "says whose" in str(w.message)]


def test_folds_tell_of_groups_that_their_fits_do_not_see(rows, tmp_path):
    """A fold is an array, which does not say whose its rows are."""
    path = tmp_path / "users.h5"
    write_features(path, {"train": (*rows, np.arange(60) // 2), "plain": rows})
    file, clf = open_features(path), DPLeastSquares(classes=range(3))
    for split, is_told in ((file["train"], True), (file["plain"], False)):
        with warnings.catch_warnings(record=True, action="always") as caught:
            cross_val_score(clf, split.X, split.y, cv=HashKFold(2))
        told = [w for w in caught if "says whose each row is" in str(w.message)]
        assert bool(told) is is_told


@pytest.mark.parametrize("cls", [DPLeastSquares, DPLeastSquaresRegressor])
def test_a_split_without_records_is_refused(cls, rows, tmp_path):
    path = tmp_path / "rows.h5"
    write_features(path, {"train": rows, "none": (rows[0][:0], rows[1][:0])})
    none = open_features(path)["none"]
    with pytest.raises(ValueError, match="X must have at least 1 row, got 0"):
        cls(epsilon=1.0).fit(none.X, none.y)


def test_a_fit_whose_classes_are_read_has_no_plan_before(rows):
    with pytest.raises(ValueError, match="classes must be given to plan a fit"):
        DPFC(epsilon=1.0).planned(4)
    clf = DPFC(epsilon=1.0, classes=range(3))
    assert clf.planned(4).records == clf.fit(*rows).privacy_.releases


def test_a_plan_knows_of_several_labels(rows):
    """As many labels of a record as count make the sums of the classes longer."""
    X, y = rows
    clf = DPLeastSquares(epsilon=1.0, classes=["a", "b", "c"], max_labels=2)
    found = clf.planned(4, multilabel=True)
    assert found.records != clf.planned(4).records
    assert found.records == clf.fit(X, np.eye(3)[y]).privacy_.releases


def test_fit_with_its_groups_is_silent(rows, tmp_path):
    path = tmp_path / "users.h5"
    write_features(path, {"train": (*rows, np.arange(60) // 2)})
    train = open_features(path)["train"]
    clf = DPLeastSquares(classes=range(3), max_group_size=2)
    assert not heard(clf, train.X, train.y, groups=train.groups)


@pytest.mark.parametrize("others", [["a"], []])
def test_columns_of_dates_are_refused_by_name(table, rows, others):
    """A column of dates alone would become numbers, nanoseconds, without a word."""
    with pytest.raises(TypeError, match="got dates in column 'admitted'"):
        DPLeastSquares(classes=range(3)).fit(table[[*others, "admitted"]], rows[1])


def test_dates_are_refused_wherever_they_stand(table, rows):
    X, y = rows
    stayed = (dates := table[["admitted"]]) - table["admitted"].iloc[0]
    days, waits = dates.to_numpy().ravel(), stayed.to_numpy().ravel()
    zoned = dates.apply(lambda column: column.dt.tz_localize("UTC"))
    listed = [[day] for day in days], [[0.5, wait] for wait in waits]
    objects = pd.DataFrame({"a": [*waits]}, dtype=object)
    kind = stayed.astype("category")
    for wrong in (dates.to_numpy(), stayed, zoned, *listed, objects, kind):
        with pytest.raises(TypeError, match="X must hold numbers, got dates"):
            DPLeastSquares(classes=range(3)).fit(wrong, y)
    hours = [np.timedelta64(1, "h")] * (len(X) - 1) + [np.timedelta64(61, "m")]
    # of one minute NumPy makes minutes of all
    for wrong in (table["admitted"], hours, pd.Series(hours, dtype=object)):
        with pytest.raises(TypeError, match="y must hold numbers, got dates"):
            DPLeastSquaresRegressor(target_bounds=(0, 1)).fit(X, wrong)
    with pytest.raises(TypeError, match="X must hold numbers, got dates"):
        DPLeastSquares(classes=range(3)).fit(X, y).predict(table)


@pytest.mark.parametrize("wrap", [OneVsRestClassifier, OneVsOneClassifier])
@pytest.mark.parametrize("names", [[0, 1, 2], ["a", "b", "c"]])
def test_one_vs_rest_explains_itself(wrap, names, rows):
    X, y = rows
    inner = make_pipeline(FunctionTransformer(), DPFC(classes=names, n_iter=1))
    for clf in (DPFC(classes=names, n_iter=1), inner):
        with pytest.raises(ValueError, match="Fit this estimator itself"):
            wrap(clf).fit(X, np.array(names)[y])


def test_one_vs_rest_of_two_classes_fits_and_says_that_it_reads_the_labels(rows):
    """Two classes given are no answer to that: a rare label is a fit of its own."""
    clf = OneVsRestClassifier(DPLeastSquares(epsilon=9.0, classes=[0, 1]))
    with pytest.warns(PrivacyWarning, match="read the set of labels from y, whatever"):
        clf.fit(*rows)
    assert clf.predict(rows[0]).shape == (60,)
    with pytest.warns(PrivacyWarning, match="classes=None reads"):
        clf.set_params(estimator__classes=None).fit(*rows)


def test_interrupt_says_what_the_ledger_holds(rows, tmp_path, plant):
    """Before the charge nothing is noted; after it, the number of the charge."""
    ledger = PrivacyLedger(tmp_path / "x.ledger", dataset="x", epsilon=3, delta=1e-5)
    clf = DPLeastSquares(classes=range(3), ledger=ledger)

    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    def notes(seam, target=DPLeastSquares):
        with plant.context() as patch:
            patch(seam, interrupt, of=target)
            with pytest.raises(KeyboardInterrupt) as caught:
                clf.fit(*rows)
        return getattr(caught.value, "__notes__", [])

    assert notes("problem of a linear fit") == []
    assert notes("charge of a ledger", PrivacyLedger) == [
        "Whether it was charged, the history of its ledger says."
    ]
    assert not ledger.history
    assert notes("solution of a linear fit") == [
        "The fit was charged, as number 1 of its ledger: its budget is spent."
    ]
    assert len(ledger.history) == 1
    clf.set_params(ledger=None)
    assert notes("solution of a linear fit") == [
        "The fit had drawn noise: its budget is spent."
    ]


def test_a_refusal_of_text_or_of_gaps_names_a_public_remedy(rows):
    """A mean of the records would be a release of its own."""
    X, y = rows
    frame = pd.DataFrame(X, columns=list("abcd"))
    clf = DPLeastSquares(epsilon=1.0, classes=range(3))
    with pytest.raises(ValueError, match=r"got text\. Leave such columns out"):
        clf.fit(frame.assign(ward="north"), y)
    with pytest.raises(ValueError, match="Fill gaps with a public constant"):
        clf.fit(frame.assign(a=np.nan), y)


def hidden(values):
    """Return the values as a masked array that hides the last one."""
    mask = np.zeros(np.shape(values), bool)
    mask[-1] = True
    return np.ma.array(values, mask=mask)


@pytest.mark.parametrize("which", ["X", "y", "X in a list"])
@pytest.mark.parametrize(
    "estimator",
    [
        DPLeastSquares(classes=range(3)),
        DPLeastSquaresRegressor(target_bounds=(0, 2)),
        DPRandomizedSearch(DPFC(classes=range(3)), {"n_iter": [1]}),
        DPSGDClassifier(model="mlp", classes=range(3)),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_fit_refuses_what_a_mask_hides(estimator, which, rows):
    """NumPy and scikit-learn drop the mask, so a record left out would count."""
    X, y = rows
    X = {"X": hidden, "y": lambda X: X, "X in a list": lambda X: [*hidden(X)]}[which](X)
    with pytest.raises(TypeError, match="must not be masked arrays with hidden"):
        estimator.fit(X, hidden(y) if which == "y" else y)


@pytest.mark.filterwarnings("ignore:epsilon should be at most 20")
def test_a_mask_that_hides_nothing_is_taken(rows):
    clf = DPLeastSquares(epsilon=math.inf, classes=range(3))
    coef = clf.fit(*rows).coef_.copy()
    X, y = map(np.ma.array, rows)
    np.testing.assert_array_equal(clf.fit(X, y).coef_, coef)
    with pytest.raises(TypeError, match="must not be masked arrays"):
        clf.predict(hidden(X))


@pytest.mark.parametrize("column", range(3))
def test_write_features_refuses_what_a_mask_hides(column, rows, tmp_path):
    """Of a hidden user what lies under the mask would be another one."""
    columns = [*rows, np.arange(60)]
    columns[column] = hidden(columns[column])
    with pytest.raises(TypeError, match="must not be masked arrays"):
        write_features(tmp_path / "rows.h5", {"train": tuple(columns)})
