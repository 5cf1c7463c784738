"""Scores in folds are released: one charge for all fits and scores together."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from privfeat import (
    BudgetExceededError,
    DPAdamLinear,
    DPLeastSquares,
    PrivacyLedger,
    PrivacyWarning,
    PrivatePipeline,
    PublicColumns,
)
from privfeat.audit import recording
from privfeat.exceptions import UnsupportedEventError
from privfeat.selection import private_cross_val_score
from privfeat.selection.inputs import fewest_records
from tests.linear.replaying import check_sensitivity
from tests.pipeline.conftest import columns, scaled

__all__ = ["columns"]


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 4))
    return X, (X[:, 0] > 0).astype(int)


def clf(**options):
    return DPLeastSquares(classes=[0, 1], **options)


def test_all_fits_and_scores_are_one_charge(tmp_path, data):
    ledger = PrivacyLedger(tmp_path / "l", dataset="d", epsilon=3.0, delta=1e-5)
    found = private_cross_val_score(clf(), *data, epsilon=3.0, ledger=ledger)
    (charge,) = ledger.history
    assert (charge.estimator, charge.status) == ("PrivateCrossValidation", "fitted")
    assert charge.statement == found.privacy
    assert charge.statement.charge == found.privacy.charge is not None
    with pytest.raises(BudgetExceededError):
        private_cross_val_score(clf(), *data, epsilon=3.0, ledger=ledger)
    assert len(ledger.history) == 1


def test_the_statement_holds_each_release_and_their_total(data):
    said = private_cross_val_score(clf(), *data, n_splits=3, epsilon=2.0).privacy
    assert {r.name.split(".")[0] for r in said.releases} == {
        *("fit0", "fit1", "fit2", "scores")
    }
    spent = sum(r.count / r.noise_multiplier**2 for r in said.releases)
    assert spent <= said.mu**2
    assert spent == pytest.approx(said.mu**2, rel=1e-6)


def test_without_privacy_the_scores_are_those_of_the_folds(data, plant):
    plant("folds of private scores", ByPlace)
    X, y = data
    with pytest.warns(PrivacyWarning, match="epsilon should be at most"):
        found = private_cross_val_score(clf(), X, y, n_splits=3, epsilon=math.inf)
    for (train, test), score in zip(
        ByPlace(3).split(X), found.scores.value, strict=True
    ):
        with pytest.warns(PrivacyWarning):
            fitted = clf(epsilon=math.inf).fit(X[train], y[train])
        assert score == pytest.approx(fitted.score(X[test], y[test]), abs=1e-12)


def test_intervals_hold_the_noise(data):
    """At a small budget they are wide, or the whole range."""
    wide = private_cross_val_score(clf(), *data, epsilon=0.3).accuracy
    narrow = private_cross_val_score(clf(), *data, epsilon=20.0).accuracy
    assert wide.high - wide.low > 2.0 * (narrow.high - narrow.low)
    assert 0.0 <= wide.low <= wide.high <= 1.0


@pytest.mark.slow
def test_noise_is_that_of_the_plan(data, plant):
    """Chi-square of forty releases of six cells: fails once in a million keys."""
    plant("folds of private scores", ByPlace)
    drawn = []
    for _ in range(40):
        with recording() as spy:
            spy.start()
            found = private_cross_val_score(clf(), *data, n_splits=3, epsilon=2.0)
            call = spy.calls[-1]
        record = found.privacy.releases[-1]
        noise = call.release.value - call.exact
        drawn.append(noise.ravel() / record.noise_stddev)
    square = float(np.sum(np.square(drawn)))
    low, high = stats.chi2.ppf([5e-7, 1 - 5e-7], df=240)
    assert low < square < high


def test_an_empty_fold_tells_nothing(data, plant):
    plant("folds of private scores", AllInTheFirst)
    found = private_cross_val_score(clf(), *data, n_splits=2, epsilon=8.0)
    assert found.scores.low[1] == 0.0
    assert found.scores.high[1] == 1.0
    assert "fold 1: unknown (0 to 1)" in str(found)


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_too_few_records_are_refused_before_the_charge(tmp_path, data, adjacency):
    X, y = (part[:40] for part in data)
    budget = {"epsilon": 3.0, "delta": 1e-5, "adjacency": adjacency}
    ledger = PrivacyLedger(tmp_path / "l", dataset="d", **budget)
    options = {"n_splits": 2, "ledger": ledger}
    model = clf(adjacency=adjacency)
    with pytest.raises(ValueError, match="at least 40 records in 2 folds") as refused:
        private_cross_val_score(model, X[1:], y[1:], **options)
    assert "39" not in str(refused.value)
    assert ledger.history == []
    found = private_cross_val_score(model, X, y, **options)
    assert "that there are at least 40 records" in found.privacy.public


@pytest.mark.parametrize("n_splits", [2, 3, 5, 99, 100])
def test_all_records_share_a_fold_less_often_than_any_delta(n_splits):
    fewest = fewest_records(1 / n_splits)
    assert n_splits * n_splits**-fewest <= 1e-10
    assert n_splits ** (1 - fewest) > 1e-12  # of one less it is not rare


def test_a_pipeline_is_fitted_in_every_fold(columns):
    found = private_cross_val_score(scaled(epsilon=None), *columns, epsilon=8.0)
    names = [release.name for release in found.privacy.releases]
    assert "fit0.scale.moments" in names
    assert found.accuracy.value > 0.9


def test_a_table_goes_through_a_pipeline():
    declared = {"clinic": {"kind": "category", "categories": ["Bonn", "Kiel"]}}
    table = pd.DataFrame({"clinic": ["Bonn", "Kiel"] * 400})
    model = PrivatePipeline([("columns", PublicColumns(declared)), ("clf", clf())])
    found = private_cross_val_score(model, table, [0, 1] * 400, epsilon=20.0)
    assert found.accuracy.value > 0.9


def test_classes_that_are_read_are_said(data):
    with pytest.warns(PrivacyWarning, match="classes=None"):
        found = private_cross_val_score(DPLeastSquares(), *data)
    assert "the set of 2 classes (read from y)" in found.privacy.public


def test_exact_arithmetic_is_that_of_all_releases(data):
    found = private_cross_val_score(clf(arithmetic="exact"), *data, n_splits=2)
    assert found.privacy.arithmetic == "exact"


def test_a_seed_is_stated(data):
    with pytest.warns(PrivacyWarning, match="random_state"):
        found = private_cross_val_score(clf(), *data, random_state=3)
    assert found.privacy.seeded


def test_sampled_records_are_refused(data):
    step = DPAdamLinear(classes=[0, 1], sampling_prob=0.5, accounting="pld")
    with pytest.raises(UnsupportedEventError):
        private_cross_val_score(step, *data)


@pytest.mark.validation
@pytest.mark.parametrize(
    "options",
    [
        {"n_splits": 1},
        {"n_splits": 2.5},
        {"epsilon": 0},
        {"delta": 2},
        {"confidence": 1.0},
        {"estimator": "clf"},
    ],
)
def test_parameters_are_checked_before_anything_is_charged(tmp_path, options, data):
    ledger = PrivacyLedger(tmp_path / "l", dataset="d", epsilon=3.0, delta=1e-5)
    options = {"estimator": clf(), "ledger": ledger} | options
    with pytest.raises((TypeError, ValueError)):
        private_cross_val_score(options.pop("estimator"), *data, **options)
    assert ledger.history == []


class ByPlace:
    """Folds of places: those of all common records stay when one is added last."""

    def __init__(self, n_splits):
        self.n_splits = n_splits

    def split(self, X, groups=None):
        folds = np.arange(len(X)) % self.n_splits
        for fold in range(self.n_splits):
            yield np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)


class AllInTheFirst(ByPlace):
    """Half of the records are in fold 0, and none in fold 1."""

    def split(self, X, groups=None):
        yield np.arange(len(X) // 2), np.arange(len(X) // 2, len(X))
        yield np.arange(len(X)), np.arange(0)


@pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")
@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_no_sum_moves_beyond_its_bound_under_equal_releases(adjacency, data, plant):
    plant("folds of private scores", ByPlace)
    X, y = (part[:60] for part in data)
    model, options = clf(adjacency=adjacency), {"n_splits": 3, "random_state": 5}
    with recording() as spy:
        spy.start()
        statement = private_cross_val_score(model, X, y, **options).privacy
        calls = spy.calls
        for other in others(X, y, adjacency):
            spy.start(answers=calls)
            private_cross_val_score(model, *other, **options)
            for part, one, two in parts(statement, calls, spy.calls):
                check_sensitivity(part, one, two)


def others(X, y, adjacency):
    for row in ([1e6, -1e6, 1e6, 0.0], [0.0, 0.0, 0.0, 0.0], [-9.0, 0.1, 0.0, 1.0]):
        for label in (0, 1):
            if adjacency == "add_remove":
                yield np.vstack([X, row]), np.append(y, label)
            else:
                yield np.vstack([row, X[1:]]), np.append(label, y[1:])
    if adjacency == "add_remove":
        yield X[:-1], y[:-1]


def parts(statement, calls, other_calls):
    """Yield the statement of each fit, and of the scores, with what each drew."""
    from dataclasses import replace

    for name in ("fit0", "fit1", "fit2", "scores"):
        mine = [r for r in statement.releases if r.name.split(".")[0] == name]
        part = replace(statement, releases=tuple(mine))
        yield (
            part,
            *(
                [call for call in found if call.name.split(".")[0] == name]
                for found in (calls, other_calls)
            ),
        )
