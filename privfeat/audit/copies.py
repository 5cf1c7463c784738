"""Fits of audits, which are thrown away and must not spend the budget of the data."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from privfeat._checks import check_int
from privfeat._messages import without_warnings
from privfeat.audit.random_numbers import Generator, make_rng, seed_from
from privfeat.audit.sanity_limits import allowed_rate
from privfeat.audit.scores import NearestLevel, predicts_numbers, target_levels
from privfeat.exceptions import PrivacyWarning

_APART = {"ledger", "checkpoint_dir", "on_step"}


def fit_copy(estimator: Any, *data: Any, **params: Any) -> Any:
    """Return a fitted clone that charges no ledger, and keeps and shows no step.

    Nor does anything within it. ``data`` is what ``fit`` takes; None is left out.
    ``params`` are set where the estimator, or the last step of a pipeline, has them.
    Warnings of weak privacy mean nothing to such a fit.
    """
    model = clone(estimator, safe=False)
    names = model.get_params() if hasattr(model, "get_params") else ()
    apart = [name for name in names if name.rpartition("__")[2] in _APART]
    if apart:
        model.set_params(**dict.fromkeys(apart))
    last = getattr(model, "last_step", model)
    for name, value in params.items():
        owner = model if hasattr(model, name) else last
        if hasattr(owner, name):
            setattr(owner, name, value)
    with without_warnings(PrivacyWarning):
        model.fit(*(part for part in data if part is not None))
    return model


def parameters_of(estimator: Any) -> dict[str, Any]:
    """Return the parameters of an estimator that audits can fit to neighbours.

    TypeError if it does not say what neighbours are.
    """
    params = estimator.get_params(deep=False)
    if "adjacency" not in params:
        raise TypeError(
            "estimator must have the parameter adjacency, got "
            f"{type(estimator).__name__} without it. Derive it from a base class of "
            "privfeat, such as privfeat.linear.DPLinearClassifier."
        )
    return dict(params)


def values_of_fits(
    trial: Callable[[Generator, Callable[..., Any]], float],
    estimator: Any,
    n_fits: int,
    n_classes: int,
    *,
    per_user: int,
    mu: float | None,
    seed: int | None,
) -> tuple[tuple[float, ...], float]:
    """Return the value of each trial, and the mean that the stated costs allow.

    ``trial(rng, fit)`` draws data, calls ``fit(X, y, users)`` and values the model.
    """
    check_int("n_fits", n_fits, low=1)
    check_int("n_classes", n_classes, low=2)
    rng, allowed = make_rng(seed), []
    grouped = getattr(estimator, "max_group_size", None) is not None
    levels = None
    if predicts_numbers(estimator):
        levels = target_levels(estimator, n_classes)

    def fit(X: NDArray[Any], y: NDArray[Any], users: NDArray[Any]) -> Any:
        model = fit_copy(
            estimator,
            X,
            y if levels is None else levels[y],
            users if grouped else None,
            classes=range(n_classes),
            random_state=seed_from(rng),  # with one seed all fits would share noise
        )
        allowed.append(allowed_rate(model, mu, per_user, 1.0 / n_classes))
        return model if levels is None else NearestLevel(model, levels)

    return tuple(trial(rng, fit) for _ in range(n_fits)), max(allowed)


def changed_attributes(one: Any, two: Any) -> list[str]:
    """Return the names of fitted attributes in which two estimators differ.

    Of a pipeline also those of its steps, as ``STEP.NAME``.
    """
    first, second = (
        {name: value for name, value in vars(fitted).items() if name.endswith("_")}
        for fitted in (one, two)
    )
    steps = zip(first.pop("steps_", ()), second.pop("steps_", ()), strict=True)
    inside = {
        f"{name}.{changed}"
        for (name, step), (_, other) in steps
        for changed in changed_attributes(step, other)
    }
    both = first.keys() & second.keys()
    changed = {name for name in both if not _same(first[name], second[name])}
    return sorted(inside | changed | (first.keys() ^ second.keys()))


def _same(one: Any, two: Any) -> bool:
    if isinstance(one, Mapping) and isinstance(two, Mapping):
        return one.keys() == two.keys() and all(_same(one[k], two[k]) for k in one)
    try:
        np.testing.assert_array_equal(one, two)
    except AssertionError:
        return False
    return True
