"""Parameters with names of columns are taken by place, so their order must be X's."""

import numpy as np
import pandas as pd
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from privfeat import (
    DPFC,
    DPLeastSquares,
    DPLeastSquaresRegressor,
    DPRandomizedSearch,
)
from privfeat.selection import private_cross_val_score

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")
OPTIONS = {"classes": ["no", "yes"], "epsilon": 1.0, "random_state": 0}
OTHER_ORDER = ["b", "a", "c"]


@pytest.fixture
def table():
    X = np.random.default_rng(0).normal(size=(60, 3))
    y = np.where(X[:, 0] > 0, "yes", "no")
    return pd.DataFrame(X, columns=["a", "b", "c"]), y


def frozen(table, y):
    return FrozenEstimator(LogisticRegression().fit(table, y))


PARAMS = {
    "center": lambda X, y: X.mean() / 10.0,
    "prior": lambda X, y: pd.DataFrame(np.eye(2, 3), columns=X.columns),
    "prior of an estimator": frozen,
    "public": lambda X, y: X + 1.0,
}


@pytest.mark.parametrize("kind", PARAMS)
def test_fit_refuses_columns_in_another_order(kind, table):
    X, y = table
    clf, name = DPLeastSquares(**OPTIONS), kind.split()[0]
    clf.set_params(**{name: PARAMS[kind](X[OTHER_ORDER], y)})
    with pytest.raises(ValueError, match=f"{name} must have the columns of X"):
        clf.fit(X, y)
    clf.set_params(**{name: PARAMS[kind](X, y)}).fit(X, y)


def test_fit_takes_parameters_without_names_by_place(table):
    X, y = table
    named = DPLeastSquares(center=X.mean() / 10.0, **OPTIONS).fit(X, y)
    plain = DPLeastSquares(center=X.mean().to_numpy() / 10.0, **OPTIONS).fit(X, y)
    np.testing.assert_array_equal(named.coef_, plain.coef_)
    DPLeastSquares(center=(X.mean() / 10.0)[OTHER_ORDER], **OPTIONS).fit(
        X.to_numpy(), y
    )


def test_fit_refuses_an_intercept_before_the_columns(table):
    X, y = table
    prior = pd.DataFrame(np.eye(2, 4), columns=["const", *X.columns])
    with pytest.raises(ValueError, match="got 'a' at place 1 instead of 0"):
        DPFC(prior=prior, **OPTIONS).fit(X, y)


def test_fit_refuses_classes_of_a_prior_in_another_order(table):
    X, y = table
    prior = pd.DataFrame(np.eye(2, 3), index=["yes", "no"])
    with pytest.raises(ValueError, match="prior must have the classes in their order"):
        DPFC(prior=prior, **OPTIONS).fit(X, y)
    DPFC(prior=prior.loc[["no", "yes"]], **OPTIONS).fit(X, y)


def test_regressor_refuses_a_prior_in_another_order(table):
    X, _ = table
    model = DPLeastSquaresRegressor(target_bounds=(-3, 3), n_iter=2, random_state=0)
    model.set_params(prior=pd.Series({"b": 1.0, "a": 2.0, "c": 3.0}))
    with pytest.raises(ValueError, match="prior must have the columns of X"):
        model.fit(X, X["a"])


def test_refit_on_an_array_forgets_names(table):
    X, y = table
    clf = DPLeastSquares(**OPTIONS).fit(X, y)
    clf.set_params(center=(X.mean() / 10.0)[OTHER_ORDER]).fit(X.to_numpy(), y)


def test_search_and_folds_refuse_columns_in_another_order(table):
    """Their fits get arrays, which have no names."""
    X, y = table
    clf = DPLeastSquares(classes=["no", "yes"])
    search = DPRandomizedSearch(clf, {"center": [X[OTHER_ORDER].mean() / 10.0]})
    with pytest.raises(ValueError, match="center must have the columns of X"):
        search.fit(X, y)
    with pytest.raises(ValueError, match="center must have the columns of X"):
        private_cross_val_score(
            clf.set_params(center=X[OTHER_ORDER].mean() / 10.0), X, y, epsilon=1.0
        )


@pytest.mark.parametrize("param", ["class_weight", "prior"])
def test_lists_refuse_classes_in_an_order_of_their_own(table, param):
    """The first weight was that of the class that is sorted first."""
    X, y = table[0].to_numpy(), table[1]
    prior, names = np.eye(2, 3), ["no", "yes"]
    lists = [[1, 9]] if param == "class_weight" else [prior, pd.DataFrame(prior)]
    for values in lists:
        clf = DPFC(**OPTIONS, n_iter=1, **{param: values}).fit(X, y)
        clf.set_params(classes=names[::-1])
        with pytest.raises(ValueError, match=f"classes must be sorted beside {param}"):
            clf.fit(X, y)
    named = pd.DataFrame(prior, index=names) if param == "prior" else {"no": 9}
    clf.set_params(**{param: named}).fit(X, y)
