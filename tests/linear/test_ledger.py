"""Fits that are charged to a ledger, however they are started and however they end."""

import pickle

import numpy as np
import optax
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from privfeat import (
    DPFC,
    BudgetExceededError,
    DPAdamLinear,
    DPLeastSquares,
    DPLeastSquaresRegressor,
    DPRandomizedSearch,
    HashKFold,
    LedgerError,
    PrivacyError,
    PrivacyLedger,
    compose,
    load,
    save,
)
from privfeat.exceptions import PrivacyWarning
from tests.core.ledgers import exit_code
from tests.linear.dying import STEPS, fit_until_killed

# of exact scores, by every search in folds of HashKFold: test_search_warnings.py
pytestmark = pytest.mark.filterwarnings("ignore:the scores of a search")
FOLDS = HashKFold(3, key=0)


@pytest.fixture
def ledger(tmp_path):
    return PrivacyLedger(tmp_path / "x.ledger", dataset="x", epsilon=3.0, delta=1e-5)


def test_fit_is_charged_as_its_statement_says(estimator, ledger, three_classes):
    clf = estimator(epsilon=1.0, classes=range(3), ledger=ledger).fit(*three_classes)
    (charge,) = ledger.history
    assert charge.statement == clf.privacy_
    assert charge.estimator == estimator.__name__
    assert charge.status == "fitted"
    assert ledger.spent.epsilon == 1.0


def test_regressor_is_charged_as_its_statement_says(ledger, three_classes):
    model = DPLeastSquaresRegressor(epsilon=1.0, target_bounds=(0, 2), ledger=ledger)
    model.fit(*three_classes)
    assert [charge.statement for charge in ledger.history] == [model.privacy_]


@pytest.mark.parametrize("assume_finite", [False, True])
def test_nan_is_refused_before_the_charge_whatever_scikit_learn_assumes(
    ledger, three_classes, assume_finite
):
    X, y = (values.copy() for values in three_classes)
    X[0, 0] = np.nan
    targets = np.where(np.arange(len(y)) == 0, np.inf, 0.0)
    for model in (
        DPLeastSquares(classes=range(3), ledger=ledger),
        DPRandomizedSearch(
            DPLeastSquares(classes=range(3)), {"ridge": [1, 10]}, ledger=ledger
        ),
        DPLeastSquaresRegressor(target_bounds=(0, 2), ledger=ledger),
    ):
        with (
            config_context(assume_finite=assume_finite),
            pytest.raises(ValueError, match="X and y must be finite"),
        ):
            model.fit(X, y)
    with (
        config_context(assume_finite=assume_finite),
        pytest.raises(ValueError, match="X and y must be finite"),
    ):
        model.fit(three_classes[0], targets)
    assert ledger.history == []


def test_fit_may_have_just_what_is_left(estimator, ledger, three_classes):
    clf = estimator(epsilon=1.0, classes=range(3), ledger=ledger).fit(*three_classes)
    left = ledger.remaining
    clf.set_params(epsilon=left.epsilon, delta=left.delta).fit(*three_classes)
    assert ledger.spent.epsilon <= 3.0
    assert ledger.remaining.epsilon < 1e-3
    assert (
        ledger.spent.epsilon == compose([c.statement for c in ledger.history]).epsilon
    )


def test_fit_that_overspends_draws_nothing_and_changes_nothing(
    estimator, ledger, three_classes, spy
):
    clf = estimator(epsilon=2.5, classes=range(3), ledger=ledger).fit(*three_classes)
    history, state = ledger.history, dict(vars(clf))
    spy.start()
    with pytest.raises(BudgetExceededError, match="One more fit may have epsilon"):
        clf.fit(*three_classes)
    assert spy.calls == []
    assert ledger.history == history
    for name in ("privacy_", "coef_", "intercept_", "center_"):
        assert vars(clf)[name] is state[name]


def test_refusal_says_that_another_delta_costs_more(tmp_path, three_classes):
    ledger = PrivacyLedger(tmp_path / "a", dataset="a", epsilon=3.0, delta=1e-6)
    clf = DPLeastSquares(epsilon=3.0, classes=range(3), ledger=ledger)
    with pytest.raises(BudgetExceededError) as refused:
        clf.fit(*three_classes)
    assert "This one has delta = 1e-05 (1e-05 unless another is given)" in str(
        refused.value
    )
    assert "pass delta = 1e-06." in str(refused.value)
    clf.set_params(delta=1e-6, epsilon=3.1)
    with pytest.raises(BudgetExceededError) as refused:
        clf.fit(*three_classes)
    assert "This one has delta" not in str(refused.value)


def test_fit_is_charged_before_its_first_draw(ledger, three_classes, spy, plant):
    genuine = plant.genuine("charge of a ledger")

    def charge(self, *args, **kwargs):
        assert spy.calls == []
        return genuine(self, *args, **kwargs)

    plant("charge of a ledger", charge)
    DPFC(n_iter=2, classes=range(3), ledger=ledger).fit(*three_classes)
    assert len(spy.calls) == 4
    assert len(ledger.history) == 1


def test_fit_draws_nothing_where_the_ledger_fails(ledger, three_classes, spy, plant):
    def full(*_, **__):
        raise LedgerError("database or disk is full")

    plant("row of a charge", full)
    clf = DPLeastSquares(classes=range(3), ledger=ledger)
    with pytest.raises(LedgerError, match="full"):
        clf.fit(*three_classes)
    assert spy.calls == []
    assert not hasattr(clf, "privacy_")


def test_fit_that_fails_stays_charged(ledger, three_classes, plant):
    def fail(*_):
        raise MemoryError

    plant("solution of a linear fit", fail, of=DPLeastSquares)
    with pytest.raises(MemoryError):
        DPLeastSquares(classes=range(3), ledger=ledger).fit(*three_classes)
    assert [charge.status for charge in ledger.history] == ["asked"]
    assert ledger.spent.epsilon == 1.0


def test_fit_that_is_refused_is_not_charged(ledger, three_classes):
    X, y = three_classes
    with pytest.raises(ValueError, match="classes"):
        DPLeastSquares(classes=range(2), ledger=ledger).fit(X, y)
    with pytest.raises(TypeError, match="from a gradient and coefficients alone"):
        DPAdamLinear(optimizer=optax.lbfgs(), classes=range(3), ledger=ledger).fit(X, y)
    assert ledger.history == []


@pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": np.inf}, "finite epsilon"),
        ({"random_state": 0}, "no random_state"),
        ({"adjacency": "replace_one"}, "adjacency must be 'add_remove'"),
    ],
)
def test_fit_must_be_covered_by_the_budget(ledger, three_classes, options, message):
    clf = DPLeastSquares(classes=range(3), ledger=ledger, **options)
    with pytest.raises((PrivacyError, ValueError), match=message):
        clf.fit(*three_classes)
    assert ledger.history == []
    assert not hasattr(clf, "coef_")


def test_users_have_a_budget_of_their_own(tmp_path, three_classes):
    budget = {"epsilon": 3.0, "delta": 1e-5, "adjacency": "replace_one"}
    ledger = PrivacyLedger(tmp_path / "u", dataset="u", unit="user", **budget)
    X, y = three_classes
    clf = DPLeastSquares(classes=range(3), adjacency="replace_one", ledger=ledger)
    with pytest.raises(ValueError, match="unit must be 'user'"):
        clf.fit(X, y)
    clf.set_params(max_group_size=2).fit(X, y, groups=np.arange(31) // 2)
    assert [charge.statement for charge in ledger.history] == [clf.privacy_]


@pytest.mark.parametrize("accounting", ["pld", "rdp"])
def test_sampled_fits_are_charged(ledger, three_classes, accounting):
    clf = DPAdamLinear(
        classes=range(3),
        n_iter=3,
        sampling_prob=0.5,
        accounting=accounting,
        noise_multiplier=4.0,
        ledger=ledger,
    ).fit(*three_classes)
    assert ledger.spent.epsilon == pytest.approx(clf.privacy_.epsilon)
    assert ledger.spent.rho is None


def test_clones_and_pickles_charge_the_same_budget(estimator, ledger, three_classes):
    clf = estimator(rho=0.01, classes=range(3), ledger=ledger)
    for copy in (clone(clf), pickle.loads(pickle.dumps(clf)), clone(clone(clf))):
        copy.fit(*three_classes)
    make_pipeline(FunctionTransformer(), clf).fit(*three_classes)
    assert len(ledger.history) == 4


def test_cross_validation_is_charged_for_every_fold(ledger, three_classes):
    clf = DPLeastSquares(rho=0.001, classes=range(3), ledger=ledger)
    cross_val_score(clf, *three_classes, groups=range(101, 132), cv=FOLDS)
    assert len(ledger.history) == 3


def check_grid_search(ledger, three_classes, n_jobs):
    """Two candidates in three folds, and the refit: seven fits."""
    clf = DPLeastSquares(rho=0.001, classes=range(3), ledger=ledger)
    search = GridSearchCV(
        clf, {"ridge": [1.0, 10.0]}, cv=FOLDS, n_jobs=n_jobs, error_score="raise"
    ).fit(*three_classes, groups=range(101, 132))
    assert [charge.number for charge in ledger.history] == list(range(1, 8))
    expected = compose([search.best_estimator_.privacy_] * 7)
    assert ledger.spent.epsilon == expected.epsilon
    assert {charge.status for charge in ledger.history} == {"fitted"}


@pytest.mark.slow
def test_grid_search_in_two_processes_is_charged_exactly(ledger, three_classes):
    check_grid_search(ledger, three_classes, n_jobs=2)


@pytest.mark.slow
def test_grid_search_in_four_processes_is_charged_exactly(ledger, three_classes):
    check_grid_search(ledger, three_classes, n_jobs=4)


def test_grid_search_that_the_budget_cannot_pay_for_is_not_begun(ledger, three_classes):
    clf = DPLeastSquares(rho=0.1, classes=range(3), ledger=ledger)
    search = GridSearchCV(clf, {"ridge": [1.0, 10.0]}, cv=FOLDS, error_score="raise")
    with pytest.raises(BudgetExceededError):
        search.fit(*three_classes, groups=range(101, 132))
    assert ledger.history == []


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
def test_a_killed_fit_is_charged_if_it_drew(ledger, tmp_path, step):
    noise = tmp_path / "noise"
    assert exit_code(fit_until_killed, ledger, str(noise), step) == -9
    n_draws = int(noise.read_text()) if noise.exists() else 0
    assert n_draws == {"draw 1": 1, "finish": 3}.get(step, 0)
    charges = ledger.history
    assert len(charges) == (step != "before charge")
    assert {charge.status for charge in charges} <= {"asked"}


def test_a_saved_model_has_no_ledger(ledger, three_classes, tmp_path):
    clf = DPLeastSquares(classes=range(3), ledger=ledger).fit(*three_classes)
    save(clf, tmp_path / "model")
    assert load(tmp_path / "model").ledger is None
    text = (tmp_path / "model" / "model.json").read_text()
    assert "x.ledger" not in text


def test_a_fit_whose_end_cannot_be_noted_is_not_lost(ledger, three_classes, plant):
    def full(*_):
        raise LedgerError("database or disk is full")

    plant("mark that a fit is done", full)
    clf = DPLeastSquares(classes=range(3), ledger=ledger)
    with pytest.warns(PrivacyWarning, match="is paid for") as caught:
        clf.fit(*three_classes)
    assert clf.coef_.shape == (3, 4)
    assert {warning.filename for warning in caught} == {__file__}


def test_the_ledger_shows_in_the_repr(ledger):
    text = repr(DPFC(ledger=ledger))
    assert text.startswith("DPFC(ledger=PrivacyLedger(")
