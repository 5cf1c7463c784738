"""What a ledger holds of fits and searches: rows 5 and 30."""

import itertools
import math
import os
import shutil
from functools import partial

import joblib
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from privfeat import (
    DPFC,
    DPAdamLinear,
    DPLeastSquares,
    DPRandomizedSearch,
    HashKFold,
    PrivacyLedger,
    compose,
)
from privfeat.core.ledger.runs import finish
from tests.pitfalls.conftest import prices
from tests.pitfalls.killed import KilledError, noise_before_a_kill

FOLDS = HashKFold(3, key=0)
# of exact scores: tests/selection/test_search_warnings.py
pytestmark = pytest.mark.filterwarnings("ignore:the scores of a search")

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")
EVERY_FIT = [DPLeastSquares, DPFC, DPAdamLinear]


@pytest.fixture
def new_ledger(tmp_path):
    """Return a function that makes a ledger with a budget of its own."""
    numbers = itertools.count()

    def make_ledger():
        path = tmp_path / f"{next(numbers)}.ledger"
        return PrivacyLedger(path, dataset="x", epsilon=30.0, delta=1e-5)

    return make_ledger


# 5 -- the fits of a search were not charged, because each clone had its own accountant


def check_05(make, data, ledger, n_jobs=1):
    """Two candidates in three folds, the refit, and a clone in each of two jobs."""
    fit = make(rho=0.01, epsilon=None, random_state=None, ledger=ledger)
    grid = GridSearchCV(fit, {"alpha": [0.1, 1.0]}, cv=FOLDS, n_jobs=n_jobs)
    best = grid.fit(*data, groups=range(101, 132)).best_estimator_
    jobs = (joblib.delayed(clone(fit).fit)(*data) for _ in range(2))
    joblib.Parallel(n_jobs=n_jobs)(jobs)
    assert [charge.number for charge in ledger.history] == list(range(1, 10))
    total = compose([best.privacy_] * 9, delta=1e-5)
    assert ledger.spent.epsilon == total.epsilon
    assert ledger.spent.rho == pytest.approx(0.09)


def test_05_copies_of_an_estimator_are_charged_to_one_ledger(
    make, three_classes, new_ledger
):
    check_05(make, three_classes, new_ledger())


@pytest.mark.slow
def test_05_copies_in_other_processes_are_charged_to_one_ledger(
    make, three_classes, new_ledger
):
    check_05(make, three_classes, new_ledger(), n_jobs=2)


def test_05_notices_a_ledger_that_is_copied_with_its_estimator(
    make, three_classes, new_ledger, plant
):
    plant("copy of a ledger", lambda self, protocol: (new_ledger, ()))
    with pytest.raises(AssertionError):
        check_05(make, three_classes, new_ledger())


# 30 -- what was spent was written down after training, so a crash under-reported


def check_30(make, data, new_ledger, plant):
    """However many draws were made before a crash, the ledger holds their cost."""
    for cls, n_before in itertools.product(EVERY_FIT, range(3)):
        ledger = new_ledger()
        clf = make(cls, random_state=None, ledger=ledger)
        drawn = noise_before_a_kill(plant, n_before, partial(clf.fit, *data))
        assert len(drawn) == n_before
        costs = prices(clf.privacy_)
        assert math.fsum(costs[stddev] for stddev in drawn) <= ledger.spent.rho
        assert [charge.status for charge in ledger.history] == ["asked"]


def test_30_the_ledger_holds_a_fit_that_crashed(make, three_classes, new_ledger, plant):
    check_30(make, three_classes, new_ledger, plant)


def late(ledger, statement, *, estimator, **_):
    """Charge when the body has ended well."""

    class Late:
        def __enter__(self):
            return lambda: (None, statement)

        def __exit__(self, kind, *_):
            if kind is None and ledger is not None:
                number = ledger.charge(statement, estimator=estimator)
                finish(ledger, number, (None,))

    return Late()


def test_30_notices_a_charge_after_training(make, three_classes, new_ledger, plant):
    plant("charge around a fit", late)
    with pytest.raises(AssertionError):
        check_30(make, three_classes, new_ledger, plant)


def test_30_notices_a_charge_that_a_crash_takes_back(
    make, three_classes, new_ledger, plant, tmp_path
):
    genuine, copy = plant.genuine("charge around a fit"), tmp_path / "copy"

    def forgiving(ledger, statement, *, estimator, **_):
        class Forgiving:
            def __enter__(self):
                shutil.copy(ledger._store.path, copy)
                self.whole = genuine(ledger, statement, estimator=estimator)
                return self.whole.__enter__()

            def __exit__(self, kind, *_):
                os.replace(copy, ledger._store.path)

        return Forgiving()

    plant("charge around a fit", forgiving)
    with pytest.raises(AssertionError):
        check_30(make, three_classes, new_ledger, plant)


def check_30_search(make, data, ledger, plant):
    """The search is charged whole before any of its runs draws."""

    def dying(*_):
        raise KilledError

    search = DPRandomizedSearch(
        make(DPFC, random_state=None, epsilon=None), {"ridge": [1.0, 2.0]}, epsilon=2.0
    )
    with plant.context() as patch:
        patch("Gaussian noise", dying)
        with pytest.raises(KilledError):
            search.set_params(ledger=ledger).fit(*data)
    assert ledger.spent.epsilon == 2.0


def test_30_the_ledger_holds_a_search_that_crashed(
    make, three_classes, new_ledger, plant
):
    check_30_search(make, three_classes, new_ledger(), plant)


def test_30_notices_a_search_that_is_charged_at_its_end(
    make, three_classes, new_ledger, plant
):
    plant("charge around a fit", late)
    with pytest.raises(AssertionError):
        check_30_search(make, three_classes, new_ledger(), plant)
