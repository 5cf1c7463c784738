"""Fits whose parameters nobody changes, and whose attributes are of one fit."""

from collections.abc import Callable, Iterator, MappingView, Set
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from inspect import signature
from typing import Any, Concatenate, ParamSpec, TypeVar

from sklearn.base import BaseEstimator

E = TypeVar("E", bound=BaseEstimator)
P = ParamSpec("P")
# Whether the records are those of a run that was charged before it began.
_CHARGED: ContextVar[bool] = ContextVar("charged", default=False)
_REMEDIES = {
    "groups": "It protects each record on its own; other estimators protect users.",
    "sample_weight": "Weights of records change what one record can do. Leave them "
    "out, or pass class_weight to an estimator that has it.",
}


def fitted_apart(
    fit: Callable[Concatenate[E, P], E],
) -> Callable[Concatenate[E, P], E]:
    """Return ``fit`` of a copy, whose attributes the estimator gets at the end.

    Another thread may call ``set_params`` while a fit runs, or fit the same object.
    A clip norm that changes between the plan of a fit and its sums would make the
    stated sensitivity untrue, and two fits would leave the coefficients of one beside
    the statement of the other. The copy has the parameters that the fit began with, and
    no other thread knows it. What a fit that fails has set, ``privacy_`` above all, is
    handed over as well, once it is charged; one that is refused before has fitted
    nothing, and leaves the estimator as it was.
    """
    known = signature(fit).parameters

    @wraps(fit)
    def fitted(self: E, /, *args: P.args, **kwargs: P.kwargs) -> E:
        for name in kwargs.keys() - known.keys():
            remedy = _REMEDIES.get(name, "Leave it out.")
            raise TypeError(f"{type(self).__name__}.fit has no {name}. {remedy}")
        check_readable(self)
        copied = object.__new__(type(self))
        vars(copied).update(vars(self))
        before = vars(copied).get("privacy_")
        try:
            fit(copied, *args, **kwargs)
        except BaseException:
            if vars(copied).get("privacy_") is not before:
                _take_over(self, copied)
            raise
        _take_over(self, copied)
        return self

    return fitted


def check_readable(estimator: Any) -> None:
    """Raise TypeError for a parameter that gives its values once, or in no order.

    A fit reads its parameters when it plans, and again after it is charged.

    >>> from privfeat.preprocessing import DPStandardScaler
    >>> check_readable(DPStandardScaler(bounds=zip((0, 1), (2, 3))))
    Traceback (most recent call last):
    TypeError: bounds must be a list, an array or a tuple, got zip. Pass list(bounds).
    """
    for name, value in estimator.get_params().items():
        if isinstance(value, Iterator | MappingView | Set):
            ordered = isinstance(value, Iterator | MappingView)
            kind, remedy = type(value).__name__, "list" if ordered else "sorted"
            raise TypeError(
                f"{name} must be a list, an array or a tuple, got {kind}. Pass "
                f"{remedy}({name})."
            )


def _take_over(estimator: Any, copied: Any) -> None:
    """Give an estimator what a fit of its copy has set, and take away the rest."""
    params = estimator.get_params(deep=False)
    after = {n: v for n, v in vars(copied).items() if n not in params}
    for name in vars(estimator).keys() - after.keys() - {*params}:
        vars(estimator).pop(name, None)
    vars(estimator).update(after)  # all at once


@contextmanager
def charged_before() -> Iterator[None]:
    """Let no public step refuse a number in the body: errors would tell of records."""
    token = _CHARGED.set(True)
    try:
        yield
    finally:
        _CHARGED.reset(token)


def is_charged() -> bool:
    """Return whether this is within `charged_before`."""
    return _CHARGED.get()
