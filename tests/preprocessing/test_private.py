"""What holds for every private step of preprocessing."""

import math
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import check_estimator

from privfeat import PrivacyLedger, load, save
from privfeat.audit import recording, replay
from privfeat.data import open_features, write_features
from privfeat.exceptions import BudgetExceededError, PrivacyError, PrivacyWarning
from privfeat.persistence import load_statement
from privfeat.preprocessing import DPQuantiles, DPStandardScaler

pytestmark = pytest.mark.filterwarnings("ignore:epsilon should be at most 20")

USERS = np.arange(60) // 4


def fitted_values(step):
    return {
        name: np.asarray(value)
        for name, value in vars(step).items()
        if name.endswith("_") and name != "privacy_"
    }


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_step_passes_every_check_of_sklearn(step):
    one = step()
    one = one.set_params(classes=None) if hasattr(one, "classes") else one
    results = check_estimator(one, on_fail=None, on_skip=None)
    failed = {r["check_name"]: r["exception"] for r in results if r["exception"]}
    assert failed.keys() <= {"check_array_api_input"}, failed


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_neighbours_move_sums_by_their_sensitivity_at_most(step, records, adjacency):
    """Removed, or replaced by its negative; nothing else may change."""
    for record in (0, 1, 2, 3, 30):
        found = replay(step(adjacency=adjacency), *records, record=record)
        assert found.ok, str(found)


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_users_move_sums_by_their_sensitivity_at_most(step, records, adjacency):
    step = step(adjacency=adjacency, max_group_size=3)
    for user in (0, 5):
        found = replay(step, *records, user=user, groups=USERS)
        assert found.ok, str(found)


def test_an_attack_notices_half_of_the_sensitivity(step, records, plant):
    """So that the tests above can fail: half of a bound is too little for record 0."""
    genuine = plant.genuine("plan of a fit")

    def halved(queries, **budget):
        bounds = [query.l2_sensitivity / 2 for query in queries]
        return genuine(
            [
                replace(q, l2_sensitivity=b)
                for q, b in zip(queries, bounds, strict=True)
            ],
            **budget,
        )

    plant("plan of a fit", halved)
    assert not replay(step(), *records, record=0).ok


def test_plan_is_what_is_released(step, records):
    for params in (
        {"epsilon": 0.7},
        {"rho": 0.01, "adjacency": "replace_one"},
        {"noise_multiplier": 3.0, "arithmetic": "exact"},
        {"max_group_size": 2},
        {"epsilon": math.inf},
    ):
        one = step(**params)
        plan = one.planned(3)
        groups = USERS if "max_group_size" in params else None
        with recording() as recorder:
            one.fit(*records, groups=groups)
        assert one.privacy_.releases == plan.records
        assert one.privacy_.epsilon == plan.epsilon
        noise = {call.name: call.release.noise_stddev for call in recorder.calls}
        assert noise == {each.name: each.noise_stddev for each in plan.records}


def test_users_cost_their_number_of_records(step):
    one, two = step().planned(3), step(max_group_size=5).planned(3)
    for alone, together in zip(one.releases, two.releases, strict=True):
        bound = alone.query.l2_sensitivity
        assert together.query.l2_sensitivity == pytest.approx(5 * bound)


@pytest.fixture
def ledger(tmp_path):
    return PrivacyLedger(tmp_path / "x", dataset="x", epsilon=1.0, delta=1e-5)


def test_ledger_is_charged_once_and_refuses_what_is_spent(step, records, ledger):
    one = step(epsilon=0.8, ledger=ledger).fit(*records)
    (entry,) = ledger.history
    assert entry.estimator == type(one).__name__
    before = fitted_values(one)
    with pytest.raises(BudgetExceededError):
        one.fit(*records)
    assert len(ledger.history) == 1
    after = fitted_values(one)
    assert after.keys() == before.keys()
    for name, value in after.items():
        assert np.array_equal(value, before[name])


def test_bad_records_are_refused_before_the_charge(step, records, ledger):
    X, y = records
    one = step(ledger=ledger)
    if not hasattr(one, "transform"):
        pytest.skip("reads labels alone")
    for bad in (np.nan, np.inf):
        rows = X.copy()
        rows[7, 1] = bad
        with pytest.raises(ValueError, match="finite"):
            one.fit(rows, y)
    for rows, groups in ((X[:0], None), (X[0], None), (X, USERS)):
        with pytest.raises(ValueError, match=r"X must|max_group_size must"):
            one.fit(rows, y, groups=groups)
    assert not ledger.history
    assert not hasattr(one, "privacy_")


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"epsilon": 0.0}, "epsilon must be"),
        ({"delta": 1.5}, "delta must be"),
        ({"adjacency": "swap"}, "adjacency must be"),
        ({"arithmetic": "float"}, "arithmetic must be"),
        ({"epsilon": 1.0, "rho": 1.0}, "at most one budget"),
        ({"max_group_size": 0}, "max_group_size must be"),
        ({"max_group_size": 2}, "groups must be given"),
        ({"ledger": "path"}, "ledger must be"),
        ({"random_state": "a"}, "random_state must be"),
    ],
)
def test_bad_parameters_are_refused(step, records, params, message):
    with pytest.raises((TypeError, ValueError), match=message):
        step(**params).fit(*records)


def test_several_processes_are_refused(step, records, plant):
    from privfeat.core.sums.processes import Team

    plant("team of this process", lambda: Team(0, 2, "shared"))
    with pytest.raises(PrivacyError, match="one process"):
        step().fit(*records)


def test_seeds_are_warned_of_and_repeat(step, records):
    with pytest.warns(PrivacyWarning, match="random_state"):
        one = step(random_state=3).fit(*records)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        two = clone(one).fit(*records)
    for name, value in fitted_values(one).items():
        assert np.array_equal(value, fitted_values(two)[name])


def test_statement_names_what_is_public(step, records):
    one = step(adjacency="replace_one", max_group_size=2).fit(*records, groups=USERS)
    said = " ".join(one.privacy_.public)
    assert one.privacy_.unit == "user"
    for words in ("all constructor", "at most 2 count", "number of users"):
        assert words in said


def test_saved_step_is_loaded_as_it_was(step, records, tmp_path):
    one = step(epsilon=2.0).fit(*records)
    save(one, tmp_path / "step")
    two = load(tmp_path / "step")
    assert type(two) is type(one)
    assert two.get_params() == one.get_params()
    assert two.privacy_ == one.privacy_ == load_statement(tmp_path / "step")
    assert fitted_values(two).keys() == fitted_values(one).keys()
    for name, value in fitted_values(one).items():
        assert np.array_equal(value, fitted_values(two)[name])
    if hasattr(one, "transform"):
        assert np.array_equal(one.transform(records[0]), two.transform(records[0]))


def test_transform_needs_a_fit(step, records):
    one = step()
    if hasattr(one, "transform"):
        with pytest.raises(NotFittedError):
            one.transform(records[0])


def test_too_many_rows_are_refused(step, records, plant):
    plant("most rows of a private step", 59)
    with pytest.raises(ValueError, match="at most 59 rows"):
        step().fit(*records)


def test_rows_of_a_feature_file_are_read(step, records, tmp_path):
    X, y = records[0][4:].astype(np.float32), records[1][4:]
    write_features(tmp_path / "x.h5", {"train": (X, y)})
    split = open_features(tmp_path / "x.h5")["train"]
    one, two = step(epsilon=math.inf), step(epsilon=math.inf)
    one.fit(split.X, y)
    two.fit(X, y)
    for name, value in fitted_values(one).items():
        assert np.array_equal(value, fitted_values(two)[name])
    if hasattr(one, "n_outputs"):
        assert one.n_outputs(3) == one.transform(X).shape[1]


@pytest.mark.parametrize("kind", [DPStandardScaler, DPQuantiles])
@pytest.mark.filterwarnings("ignore:random_state makes")
def test_bounds_refuse_columns_in_another_order(kind, records):
    """They were taken by place: each column got the bounds of another."""
    X = pd.DataFrame(records[0], columns=["a", "b", "c"])
    low = pd.Series({"b": -1.0, "a": -2.0, "c": -3.0})
    with pytest.raises(ValueError, match="bounds must have the columns of X"):
        kind(bounds=(low, -low), random_state=0).fit(X)
    low = low[["a", "b", "c"]]
    kind(bounds=(low, -low), random_state=0).fit(X)


@pytest.mark.parametrize("kind", [DPStandardScaler, DPQuantiles])
@pytest.mark.parametrize(
    "bounds",
    [
        {0: [0, 50], 1: [120, 250]},
        pd.DataFrame([[0, 120], [50, 250]]),
        "09",
        ("0", "9"),
        (False, True),
    ],
    ids=str,
)
def test_bounds_that_are_no_pair_of_numbers_are_refused(kind, bounds, records):
    """The keys of a mapping, and the names of columns, were taken for bounds."""
    with pytest.raises(ValueError, match=r"bounds must be \(lowest, highest\) value"):
        kind(bounds=bounds).fit(records[0])


@pytest.mark.parametrize("kind", [DPStandardScaler, DPQuantiles])
@pytest.mark.filterwarnings("ignore:random_state makes")
def test_transform_is_of_the_bounds_of_the_fit(kind, records):
    X = records[0]
    made = kind(bounds=(-2.0, 2.0), random_state=0).fit(X)
    expected = made.transform(X), made.inverse_transform(X)
    made.set_params(bounds=(-1.0, 9.0))
    np.testing.assert_array_equal(made.transform(X), expected[0])
    np.testing.assert_array_equal(made.inverse_transform(X), expected[1])
