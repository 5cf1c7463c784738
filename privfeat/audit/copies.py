"""Fits of audits, which are thrown away and must not spend the budget of the data."""

from typing import Any

from sklearn.base import clone

from privfeat._messages import without_warnings
from privfeat.exceptions import PrivacyWarning


def fit_copy(estimator: Any, *data: Any, **params: Any) -> Any:
    """Return a fitted clone that charges no ledger, and keeps and shows no step.

    ``data`` is what ``fit`` takes; None is left out. ``params`` are set where the
    estimator has them. Warnings of weak privacy mean nothing to such a fit.
    """
    model = clone(estimator, safe=False)
    apart = {"ledger": None, "checkpoint_dir": None, "on_step": None}
    for name, value in (apart | params).items():
        if hasattr(model, name):
            setattr(model, name, value)
    with without_warnings(PrivacyWarning):
        model.fit(*(part for part in data if part is not None))
    return model


def parameters_of(estimator: Any) -> dict[str, Any]:
    """Return the parameters of an estimator that audits can fit to neighbours.

    Raises
    ------
    TypeError
        If it does not say what neighbours are.
    """
    params = estimator.get_params(deep=False)
    if "adjacency" not in params:
        raise TypeError(
            "estimator must have the parameter adjacency, got "
            f"{type(estimator).__name__} without it. Derive it from a base class of "
            "privfeat, such as privfeat.linear.DPLinearClassifier."
        )
    return dict(params)
