"""Rows and labels as they are given, seeds, scores, warnings, and public facts."""

from numbers import Integral
from typing import Any

import numpy as np
from numpy.random import RandomState  # noqa: TID251
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import check_array
from sklearn.utils.validation import check_consistent_length, validate_data

from privfeat._messages import refuse_masked, without_data
from privfeat._types import Adjacency
from privfeat._warnings import warn
from privfeat.data import LazyFeatures
from privfeat.data.columns import refuse_dates

FLOATS = (np.float64, np.float32, np.float16)


class ScoredClassifier(ClassifierMixin):
    """Has the accuracy as its score, and shows no data if that fails."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy on ``(X, y)``; no statement covers it."""
        predicted = self.predict(X)
        return float(
            without_data(accuracy_score, y, predicted, sample_weight=sample_weight)
        )


class ScoredRegressor(RegressorMixin):
    """Has R squared as its score, and shows no data if that fails."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R squared on ``(X, y)``; no statement covers it."""
        predicted = self.predict(X)
        return float(without_data(r2_score, y, predicted, sample_weight=sample_weight))


def validated(estimator: Any, X: Any, y: Any) -> tuple[Any, Any]:
    """Return what ``fit`` was given as arrays, or a feature file as it is.

    Sets ``n_features_in_``, and ``feature_names_in_`` where columns have names.
    """
    refuse_dates("X", X)
    refuse_dates("y", y)
    refuse_masked(X, y)
    if not isinstance(X, LazyFeatures):
        X, y = without_data(
            validate_data, estimator, X, y, dtype=FLOATS, multi_output=True
        )
        return X, y
    y = without_data(
        check_array,
        y,
        accept_sparse="csr",
        dtype=None,
        ensure_2d=False,
        ensure_min_samples=0,
        input_name="y",
    )
    without_data(check_consistent_length, X, y)
    if not y.shape[0]:
        raise ValueError("X must have at least 1 row, got 0.")
    estimator.n_features_in_ = X.shape[1]
    return X, y


def seed_of(random_state: Any) -> int | None:
    """Return a seed for the key stream, or None for operating-system entropy.

    Raises
    ------
    TypeError, ValueError
        If ``random_state`` is not None, an integer in ``[0, 2**64)``, or a RandomState.
    """
    if random_state is None:
        return None
    if isinstance(random_state, Integral) and not isinstance(random_state, bool):
        seed = int(random_state)
        if not 0 <= seed < 2**64:
            raise ValueError(f"random_state must be in [0, 2**64), got {seed!r}.")
        return seed
    if not isinstance(random_state, RandomState):
        raise TypeError(
            "random_state must be None, an integer in [0, 2**64) or a RandomState, got "
            f"{random_state!r}."
        )
    words = random_state.randint(0, 2**16, size=4)
    return sum(int(word) << 16 * place for place, word in enumerate(words))


def warn_of_unused_groups(X: Any, groups: ArrayLike | None) -> None:
    """Warn if ``X`` is of a file that says whose each row is, and nobody asked.

    A warning and no error: to protect each row on its own is a choice, and the
    statement names the unit.
    """
    if groups is None and getattr(X, "has_groups", False):
        warn(
            "X is of a file that says whose each row is, but groups is None: each row "
            "is protected on its own, not all rows of a user. Pass groups=split.groups "
            "and max_group_size."
        )


def public_facts(
    n_features: int,
    of_targets: tuple[str, ...],
    max_group_size: int | None,
    adjacency: Adjacency,
) -> tuple[str, ...]:
    """Return what the guarantee of a fit assumes to be known to everyone."""
    users = max_group_size is not None
    facts: tuple[str, ...] = (
        f"the number of features ({n_features})",
        *of_targets,
        "all constructor parameters but random_state",
        "that all values are finite",
    )
    if users:
        facts += (f"that of a user's records at most {max_group_size} count",)
    if adjacency == "replace_one":
        facts += (f"the number of {'users' if users else 'records'}",)
    return facts
