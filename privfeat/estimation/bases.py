"""The bases of estimators: parameters, a view of their privacy, and scores."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from html import escape
from typing import Any, Concatenate, ParamSpec, TypeVar, dataclass_transform

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone

from privfeat._messages import without_data
from privfeat._types import STAYS_AT_HOME
from privfeat._warnings import warn
from privfeat.core.ledger.budget import check_covered
from privfeat.core.ledger.privacy_ledger import PrivacyLedger
from privfeat.core.ledger.room import left_of
from privfeat.core.statement.privacy_statement import PrivacyStatement
from privfeat.core.statement.rounding import rounded_down, rounded_up

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")
# Where an estimator keeps the parameters of its last fit.
OF_FIT = "_params_of_fit"


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(field,))
class Parameters(BaseEstimator):
    """An estimator whose constructor takes what its classes declare.

    An annotated attribute of a class is a parameter, by keyword, with that default: its
    own and those that it inherits. One that is ``= field(kw_only=False)`` may be given
    by its place, and has a default only if ``field`` names one. Values are stored as
    they are given, and checked by ``fit``, as scikit-learn wants it. Annotate anything
    else as `typing.ClassVar`.

    >>> class Shrinking(Parameters):
    ...     shrinkage: float = 0.5
    >>> Shrinking(shrinkage=0.1)
    Shrinking(shrinkage=0.1)
    """

    def __init_subclass__(cls, **options: Any) -> None:
        """Make the constructor; here, so that no class can forget to ask for it."""
        super().__init_subclass__(**options)
        dataclass(kw_only=True, eq=False, repr=False)(cls)


def described(estimator: Any) -> str:
    """Return how an estimator was made, without what stays at home.

    >>> from privfeat import DPFC
    >>> described(DPFC(epsilon=2.0, random_state=7))
    'DPFC(epsilon=2.0)'
    """
    params = estimator.get_params()
    shown = clone(estimator).set_params(
        **{name: None for name in STAYS_AT_HOME if name in params}
    )
    return repr(shown)


def params_of_fit(estimator: Any) -> dict[str, Any]:
    """Return the parameters, those that the last fit had in the place of later ones."""
    return {**estimator.get_params(deep=False), **vars(estimator).get(OF_FIT, {})}


def with_params_of_fit(
    method: Callable[Concatenate[S, P], R],
) -> Callable[Concatenate[S, P], R]:
    """Return a method of a fitted estimator that `set_params` since changes nothing in.

    What was released is in the units of the parameters that the fit had.
    """

    @wraps(method)
    def asked(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        copied = object.__new__(type(self))
        vars(copied).update(vars(self) | params_of_fit(self))
        return method(copied, *args, **kwargs)

    return asked


def cost_of(statement: PrivacyStatement, ledger: Any) -> str:
    """Return the cost of a fit, its releases, and what it leaves of a ledger."""
    drawn = " + ".join(f"{r.count} x {r.name}" for r in statement.releases)
    cost = (
        f"epsilon = {rounded_up(statement.epsilon)} at delta = {statement.delta:g} for "
        f"{drawn}"
    )
    if ledger is None:
        return f"{cost}; no ledger is charged"
    budget = ledger.budget
    check_covered(budget, statement)  # as the charge will
    told = f"{cost}; to be charged to {budget.dataset!r}"
    whole = f"epsilon = {rounded_down(budget.epsilon)}"
    fits = [*(charge.statement for charge in ledger.history), statement]
    if any(fit.mu is None for fit in fits):  # what is left would take minutes
        return f"{told}, whose whole budget is {whole}"
    left = rounded_down(left_of(budget, fits).epsilon)
    return f"{told}, which then has epsilon = {left} left of {whole}"


def warn_of_extremes(
    name: str, low: ArrayLike, high: ArrayLike, values: NDArray[np.float64]
) -> None:
    """Warn if bounds look as if they were taken from the records.

    Many records reach both ends of a scale such as 1 to 5, but one in a hundred at most
    its least and its greatest value elsewhere. Bounds of columns warn if all are the
    ends of their column, and few records reach those of one column at least. The answer
    depends on the records: it goes to stderr of their owner, and into no statement or
    model.
    """
    if not len(values):
        return
    few = max(1, len(values) // 100)
    ends = values.min(axis=0), values.max(axis=0)
    if np.any(low != ends[0]) or np.any(high != ends[1]):
        return
    at_ends = [np.sum(values == end, axis=0) <= few for end in ends]
    if not np.any(np.logical_and(*at_ends)):
        return
    warn(
        f"{name} should be known without the records, got the least and the greatest "
        "of their values: bounds are public, and are saved with the model. Pass the "
        "range of the quantity, as a code book or the unit has it."
    )


class ShowsPrivacy:
    """Adds the privacy statement to scikit-learn's view of a fitted estimator.

    Stands left of ``BaseEstimator``. Both protocols of IPython are extended by their
    public names; ``repr`` and unfitted estimators stay as they are.
    """

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        bundle: dict[str, Any] = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] += self._privacy_html()
        return bundle

    @property
    def _repr_html_(self) -> Callable[[], str]:
        # For viewers that do not read bundles. Raises AttributeError where
        # scikit-learn is set to show text, which IPython takes for "no HTML".
        inner: Callable[[], str] = super()._repr_html_  # type: ignore[misc]
        return lambda: inner() + self._privacy_html()

    def _privacy_html(self) -> str:
        """Return the statement as HTML, empty before a fit."""
        statement = getattr(self, "privacy_", None)
        if statement is None:
            return ""
        first, _, rest = str(statement).partition("\n")
        return (
            f"<details open><summary><b>{escape(first)}</b></summary>"
            f"<pre>{escape(rest)}</pre></details>"
        )


class PrivateEstimator(ShowsPrivacy, Parameters):
    """What has a budget, the ledger that pays for it, and a seed for tests."""

    epsilon: float | None = None
    delta: float = 1e-5
    ledger: PrivacyLedger | None = None
    random_state: Any = None


class ScoredClassifier(ClassifierMixin):
    """Has the accuracy as its score, and shows no data if that fails."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy on ``(X, y)``; no statement covers it."""
        from sklearn.metrics import accuracy_score

        predicted = self.predict(X)
        return float(
            without_data(accuracy_score, y, predicted, sample_weight=sample_weight)
        )


class ScoredRegressor(RegressorMixin):
    """Has R squared as its score, and shows no data if that fails."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R squared on ``(X, y)``; no statement covers it."""
        from sklearn.metrics import r2_score

        predicted = self.predict(X)
        return float(without_data(r2_score, y, predicted, sample_weight=sample_weight))
