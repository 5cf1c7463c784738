"""Seeds, scores, warnings, and what is assumed public."""

import json
import warnings
from collections.abc import Mapping
from numbers import Integral
from typing import Any

import jax
import numpy as np
from numpy.random import RandomState  # noqa: TID251
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score

from privfeat._encoding import encode
from privfeat._messages import without_data
from privfeat._types import Adjacency
from privfeat._version import __version__
from privfeat.core.plan import ReleasePlan
from privfeat.core.processes import Team
from privfeat.core.records import CHUNK_ROWS, MAX_ROWS
from privfeat.core.statement import PrivacyStatement
from privfeat.exceptions import PrivacyError, PrivacyWarning
from privfeat.linear._groups import Users
from privfeat.linear._problem import Problem

LARGE_DELTA = 1e-4
LARGE_EPSILON = 20.0


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


# How the types of dates, times and durations begin in NumPy, pandas, polars, Arrow.
_DATES = ("date", "time", "period", "duration")


def refuse_dates(name: str, table: Any) -> None:
    """Raise TypeError for columns of dates, which would become numbers unnoticed.

    The message names the column: names are part of the public schema.
    """
    column = without_data(_column_of_dates, table)
    if column is not None:
        where = column and f" in column {column}"
        raise TypeError(
            f"{name} must hold numbers, got dates{where}. Leave them out, or pass "
            "the days since a public date."
        )


def _column_of_dates(table: Any) -> str | None:
    """Return the first column of dates, "" if it has no name, None if there is none."""
    types = getattr(table, "dtypes", getattr(table, "dtype", ()))
    columns = getattr(table, "columns", None)
    if columns is None:
        return "" if str(types).lower().startswith(_DATES) else None
    for column, kind in zip(columns, types, strict=False):
        if str(kind).lower().startswith(_DATES):
            return repr(column)
    return None


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


def is_large_delta(delta: float, n_units: int) -> bool:
    """Return whether ``delta`` promises little to ``n_units`` records, or users.

    From one over their number on, it allows to give one of them away whole.

    Notes
    -----
    Under add/remove the answer tells of a secret number. It is for whoever runs the
    fit and holds the records: ``fit`` says it as a warning, on stderr, in the words of
    the warning of any large delta, and writes it into no statement, report or model.
    That a fit is refused tells as much.
    """
    return delta > LARGE_DELTA or delta * n_units > 1.0


def count_units(n_samples: int, users: Users | None, team: Team) -> int:
    """Return the number of records, or of users, of all processes. Sensitive."""
    # asked first: every process takes part, whether or not it has users
    n_records = sum(team.each(n_samples)) if team.rows == "own" else n_samples
    return n_records if users is None else len(set(users.ids.tolist()))


def warn_of_weak_choices(
    plan: ReleasePlan, *, classes_read: bool, seeded: bool, n_units: int
) -> None:
    """Warn of what is legal and weakens privacy; called by ``fit``."""
    messages = []
    if plan.epsilon > LARGE_EPSILON:
        messages.append(
            f"epsilon should be at most {LARGE_EPSILON:g} to promise anything, got "
            f"{plan.epsilon:.6g}."
        )
    if not plan.private:
        classes_read = seeded = False
    if classes_read:
        messages.append(
            "classes=None reads the set of labels from y and treats it as public. "
            "Pass classes= to keep a rare label from showing."
        )
    if seeded:
        messages.append(
            "random_state makes the noise reproducible: not private against anyone who "
            "knows or guesses the seed. Pass None for a real release."
        )
    if plan.private and is_large_delta(plan.delta, n_units):
        messages.append(
            f"delta should be well below one over the number of records, got "
            f"{plan.delta!r}."
        )
    for message in messages:
        warnings.warn(message, PrivacyWarning, stacklevel=3)


def warn_of_unused_groups(X: Any, groups: ArrayLike | None) -> None:
    """Warn if ``X`` is of a file that says whose each row is, and nobody asked.

    A warning and no error: to protect each row on its own is a choice, and the
    statement names the unit.
    """
    if groups is None and getattr(X, "has_groups", False):
        warnings.warn(
            "X is of a file that says whose each row is, but groups is None: each row "
            "is protected on its own, not all rows of a user. Pass groups=split.groups "
            "and max_group_size.",
            PrivacyWarning,
            stacklevel=3,
        )


def check_team(
    team: Team,
    estimator: BaseEstimator,
    seed: int | None,
    statement: PrivacyStatement,
    problem: Problem,
    features: Any,
    grouped: bool,
) -> None:
    """Refuse what would count a record or a user in more than one process.

    Of features only the first chunk is compared, of targets all: rows that a process
    shuffled or drew for itself have their targets in another order.

    Raises
    ------
    PrivacyError, ValueError
        If the processes do not run the same fit; if they hold different rows that they
        should share; or with rows of their own: if classes are not given, there are
        groups, or two processes hold the same rows.
    """
    description = f"{statement.to_json()} {problem.shape} {team.rows} {seed}"
    team.check_same("fit", f"{description} {_described(estimator)}".encode())
    first = np.ascontiguousarray(features[:CHUNK_ROWS])
    content = first.tobytes() + problem.targets.tobytes()
    if team.rows == "shared":
        team.check_same("rows", f"{features.shape} {first.dtype}".encode() + content)
        return
    if problem.classes_read:
        raise ValueError(
            "classes must be given if every process has its own rows, got None: each "
            "would read others."
        )
    if grouped:
        raise PrivacyError(
            "groups must be None if every process has its own rows: a user may have "
            "records in several. Pass the same rows to all processes."
        )
    if sum(team.each(features.shape[0])) > MAX_ROWS:
        raise ValueError(f"all processes together must have at most {MAX_ROWS} rows.")
    team.check_distinct("rows", content)


# Seeds are compared as they were read, a ledger by what it charges; progress bars are
# for one process.
_NOT_COMPARED = ("random_state", "ledger", "verbose")
_SETTINGS = ("jax_enable_x64", "jax_default_matmul_precision")


def _described(estimator: BaseEstimator) -> str:
    """Return, as text, all that decides what a fit computes, beside its records."""
    params = estimator.get_params(deep=True)
    ledger = params.get("ledger")
    content = [
        f"{type(estimator).__module__}.{type(estimator).__qualname__}",
        {
            name: _comparable(name, value)
            for name, value in params.items()
            if name not in _NOT_COMPARED
        },
        None if ledger is None else ledger.budget.uid,
        [__version__, jax.__version__, np.__version__, jax.default_backend()],
        [str(jax.config.values[name]) for name in _SETTINGS],
    ]
    return json.dumps(content, sort_keys=True)


def _comparable(name: str, value: Any) -> Any:
    """Return a parameter as JSON; what has no such form cannot be compared."""
    if hasattr(value, "__array__"):
        value = np.asarray(value)
    elif isinstance(value, Mapping):
        value = dict(value)
    try:
        return encode(name, value)
    except TypeError as error:
        raise PrivacyError(
            f"{name} must be made of numbers, strings, their lists or arrays with "
            f"several processes, which compare it, got {type(value).__name__}."
        ) from error


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
