"""Folds of which one record moves itself alone, and fits in them and in others."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joblib import parallel_config
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import BaggingClassifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    KFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
    TunedThresholdClassifierCV,
    cross_val_predict,
    cross_val_score,
    learning_curve,
    permutation_test_score,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler, scale

from privfeat import (
    DPLeastSquares,
    DPLeastSquaresRegressor,
    HashKFold,
    PrivacyLedger,
    search_cost,
)
from privfeat.exceptions import PrivacyError, PrivacyWarning

N = 24
IDS = [f"image-{i}.png" for i in range(N)]
IDS_OF_MANY = range(9000, 18000)
FOLDS = HashKFold(3, key=0)
GRID = {"ridge": [1.0, 10.0]}


@pytest.fixture
def data():
    rng = np.random.default_rng(1)
    y = np.arange(N) % 2
    return rng.normal(size=(N, 3)) + y[:, None], y


@pytest.fixture
def ledger(tmp_path):
    return PrivacyLedger(tmp_path / "x.ledger", dataset="x", epsilon=5.0, delta=1e-5)


@pytest.fixture
def fit(ledger):
    return DPLeastSquares(rho=0.005, classes=[0, 1], ledger=ledger)


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
        st.one_of(st.integers(), st.text()).filter(lambda one: str(one) != "1"),
        min_size=1,
        unique_by=str,
    ),
    st.integers(2, 7),
    st.integers(0, 2**128 - 1),
    st.data(),
)
def test_a_record_more_moves_no_other(ids, n_splits, key, data):
    """Whatever the others are, and wherever it stands."""
    splitter = HashKFold(n_splits, key=key)
    gone = data.draw(st.sampled_from(ids))
    rest = [one for one in data.draw(st.permutations(ids)) if one != gone]
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
@pytest.mark.parametrize("ids", [[1.0, 2.0], [1, None], [True, False], [b"a", b"b"]])
def test_split_refuses_ids_whose_text_may_depend_on_others(ids):
    with pytest.raises(TypeError, match="groups must hold whole numbers or strings"):
        next(FOLDS.split(np.zeros((2, 1)), None, ids))


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


@pytest.mark.parametrize("n_jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_ledger_charges_what_search_cost_says(fit, ledger, data, n_jobs):
    search = GridSearchCV(fit, GRID, cv=FOLDS, n_jobs=n_jobs, error_score="raise")
    search.fit(*data, groups=IDS)
    with pytest.warns(PrivacyWarning, match="no privacy guarantee"):
        cost = search_cost(search)
    assert len(ledger.history) == cost.n_fits == 7
    assert ledger.spent.epsilon == pytest.approx(cost.epsilon, rel=1e-9)


@pytest.mark.parametrize(
    "cv", [3, StratifiedKFold(3), StratifiedShuffleSplit(3), KFold(3), "a list"]
)
def test_ledger_refuses_fits_in_folds_that_search_cost_calls_infinite(
    fit, ledger, data, cv
):
    cv = list(StratifiedKFold(3).split(*data)) if cv == "a list" else cv
    search = GridSearchCV(fit, GRID, cv=cv, error_score="raise")
    with pytest.warns(PrivacyWarning, match="no privacy guarantee"):
        assert search_cost(search).epsilon == math.inf
    with pytest.raises(PrivacyError, match=r"Pass cv=privfeat\.HashKFold"):
        search.fit(*data)
    assert ledger.history == []


def test_ledger_refuses_what_scikit_learn_does_with_parts_of_covered_folds(
    fit, ledger, data
):
    """Parts by place, and labels of other records."""
    X, y = data
    options = {"groups": IDS, "cv": FOLDS}
    for refused in (
        lambda: HalvingGridSearchCV(
            fit, GRID, cv=FOLDS, min_resources=8, error_score="raise"
        ).fit(X, y, groups=IDS),
        lambda: learning_curve(
            fit, X, y, train_sizes=[0.5], error_score="raise", **options
        ),
        lambda: permutation_test_score(fit, X, y, n_permutations=1, **options),
    ):
        with pytest.raises(PrivacyError, match="one record more can move many"):
            refused()
    assert ledger.history == []


@pytest.mark.filterwarnings("ignore:random_state makes the noise")  # of bagging
@pytest.mark.parametrize(
    "around",
    [
        lambda fit: BaggingClassifier(fit, n_estimators=2),
        lambda fit: CalibratedClassifierCV(fit, cv=2),
        lambda fit: TunedThresholdClassifierCV(fit, cv=2),
    ],
)
def test_ledger_refuses_what_else_chooses_records(fit, ledger, data, around):
    with pytest.raises(PrivacyError, match="one record more can move many"):
        around(fit).fit(*data)
    assert ledger.history == []


@pytest.mark.filterwarnings("ignore:OneVsRestClassifier and its like read")
def test_ledger_charges_what_hands_on_all_records(fit, ledger, data):
    OneVsRestClassifier(make_pipeline(FunctionTransformer(), fit)).fit(*data)
    OneVsOneClassifier(fit).fit(*data)
    assert len(ledger.history) == 2


@pytest.mark.filterwarnings("ignore:OneVsRestClassifier and its like read")
def test_ledger_refuses_pairs_of_classes_under_replace_one(tmp_path, data):
    """A record replaced by one of another class changes public sizes."""
    ledger = PrivacyLedger(
        tmp_path / "r", dataset="x", epsilon=5, delta=1e-5, adjacency="replace_one"
    )
    fit = DPLeastSquares(
        rho=0.005, classes=[0, 1], adjacency="replace_one", ledger=ledger
    )
    with pytest.raises(PrivacyError, match="_fit_ovo_binary"):
        OneVsOneClassifier(fit).fit(*data)
    OneVsRestClassifier(fit).fit(*data)


def test_ledger_looks_at_the_outer_folds_as_well(fit, ledger, data):
    inner = GridSearchCV(fit, GRID, cv=HashKFold(2), error_score="raise")
    with pytest.raises(PrivacyError, match="one record more can move many"):
        cross_val_score(inner, *data, cv=2, error_score="raise")
    assert ledger.history == []


@pytest.mark.filterwarnings("ignore:OneVsRestClassifier and its like read")
@pytest.mark.parametrize(
    "inner",
    [
        lambda fit: OneVsRestClassifier(fit, n_jobs=2),
        lambda fit: GridSearchCV(
            fit, GRID, cv=HashKFold(2), n_jobs=2, error_score="raise"
        ),
    ],
)
def test_ledger_refuses_jobs_sent_from_folds_that_they_do_not_show(
    fit, ledger, data, inner
):
    """A thread of joblib has another stack than the folds that it belongs to."""
    with (
        parallel_config("threading"),
        pytest.raises(PrivacyError, match="one record more can move many"),
    ):
        cross_val_score(
            inner(fit),
            *data,
            cv=StratifiedKFold(2),
            scoring=lambda *_: 0.0,
            error_score="raise",
        )
    assert ledger.history == []


def test_ledger_charges_jobs_in_folds_that_are_marked(fit, ledger, data):
    nested = GridSearchCV(fit, GRID, cv=HashKFold(2), n_jobs=2, refit=False)
    with parallel_config("threading"):
        cross_val_score(
            nested, *data, cv=HashKFold(2), scoring=lambda *_: 0.0, error_score="raise"
        )
    assert len(ledger.history) == 2 * 2 * len(GRID["ridge"])


@pytest.mark.parametrize(
    "step",
    [
        StandardScaler(),
        make_pipeline(Normalizer(), StandardScaler()),
        make_union(Normalizer(), StandardScaler()),
        ColumnTransformer([("scaled", StandardScaler(), [0])]),
        ColumnTransformer([("all", "passthrough", [0])], remainder=StandardScaler()),
        ColumnTransformer(
            [("some", "passthrough", lambda X: [X.var(axis=0).argmax()])]
        ),
        FunctionTransformer(scale),
    ],
)
def test_ledger_refuses_fits_after_steps_that_learn(fit, ledger, data, step):
    """Each row that comes out of them depends on every record."""
    pipeline = make_pipeline(step, Normalizer(), fit)
    with pytest.raises(PrivacyError, match=r"learned from all.*FrozenEstimator"):
        pipeline.fit(*data)
    assert ledger.history == []
    search = GridSearchCV(pipeline, {"dpleastsquares__ridge": [1.0]}, cv=FOLDS)
    with pytest.warns(PrivacyWarning, match="no privacy guarantee"):
        cost = search_cost(search)
    assert cost.epsilon == math.inf
    assert "earlier steps" in cost.method
    with pytest.warns(PrivacyWarning, match="one record more can move or change"):
        pipeline.set_params(dpleastsquares__ledger=None).fit(*data)


def test_ledger_charges_fits_after_steps_that_learn_nothing(fit, ledger, data):
    scaler = FrozenEstimator(make_pipeline(StandardScaler()).fit(np.eye(3)))
    step = make_union(make_pipeline(scaler, Normalizer()), "passthrough")
    columns = ColumnTransformer([("all", FunctionTransformer(np.tanh), [0, 1, 2])])
    vouched = FrozenEstimator(FunctionTransformer(lambda X: X / 255))
    make_pipeline(step, columns, None, vouched, fit).fit(*data)
    assert len(ledger.history) == 1


def test_ledger_refuses_targets_that_were_scaled_by_all(ledger, data):
    target = data[0][:, 0]
    fit = DPLeastSquaresRegressor(rho=0.005, target_bounds=(-9, 9), ledger=ledger)
    with pytest.raises(PrivacyError, match="StandardScaler learned"):
        TransformedTargetRegressor(fit, transformer=StandardScaler()).fit(
            data[0], target
        )
    assert ledger.history == []
    centred = {"func": lambda y: y - y.mean(), "inverse_func": lambda y: y}
    with pytest.raises(PrivacyError, match="FunctionTransformer learned"):
        TransformedTargetRegressor(fit, check_inverse=False, **centred).fit(
            data[0], target
        )
    assert ledger.history == []
    functions = {"func": np.arcsinh, "inverse_func": np.sinh}
    TransformedTargetRegressor(fit, **functions).fit(data[0], target)
    assert len(ledger.history) == 1


def test_fit_without_a_ledger_warns_in_other_folds_alone(data):
    fit = DPLeastSquares(rho=0.005, classes=[0, 1])
    with pytest.warns(PrivacyWarning, match="does not compose"):
        cross_val_score(fit, *data, cv=2)
    for ours in (cross_val_score, cross_val_predict):  # warnings are errors here
        ours(fit, *data, groups=IDS, cv=FOLDS)
    with pytest.warns(PrivacyWarning, match="to promise anything") as caught:
        cross_val_score(fit.set_params(rho=None, epsilon=math.inf), *data, cv=2)
    assert not any("compose" in str(one.message) for one in caught)
