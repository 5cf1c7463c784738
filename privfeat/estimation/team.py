"""Whether several processes run the same fit, on records that each counts once."""

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import jax
import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator

from privfeat._encoding import encode
from privfeat._version import __version__
from privfeat.core.statement.privacy_statement import PrivacyStatement
from privfeat.core.sums.processes import Team
from privfeat.core.sums.records import CHUNK_ROWS, MAX_ROWS
from privfeat.estimation.problem import Problem
from privfeat.exceptions import PrivacyError

# Seeds are compared as they were read, a ledger by what it charges; progress bars are
# for one process.
_NOT_COMPARED = ("random_state", "ledger", "verbose")
_NOTHING: Mapping[str, Any] = MappingProxyType({})
_FIRST_ROWS = slice(CHUNK_ROWS)
_SETTINGS = ("jax_enable_x64", "jax_default_matmul_precision")


def check_team(
    team: Team,
    estimator: BaseEstimator,
    seed: int | None,
    statement: PrivacyStatement,
    problem: Problem,
    features: Any,
    grouped: bool,
    *,
    about: str,
    instead: Mapping[str, Any] = _NOTHING,
    compared: Any = _FIRST_ROWS,
) -> None:
    """Refuse what would count a record or a user in more than one process.

    Of the features the ``compared`` rows are compared, and all targets: rows that one
    process has shuffled have their targets in another order. ``about`` is what
    else a fit must have in common, and ``instead`` what stands for parameters that are
    compared by it.

    Raises
    ------
    PrivacyError, ValueError
        If the processes do not run the same fit, or should share rows and hold
        different ones. Where each has its own rows: if classes are not given, there are
        groups, or two processes hold the same rows.
    """
    description = f"{statement.to_json()} {about} {team.rows} {seed}"
    team.check_same("fit", f"{description} {_described(estimator, instead)}".encode())
    some = features[compared]
    parts = [some.data, some.indices, some.indptr] if issparse(some) else [some]
    content = b"".join(part.tobytes() for part in (*parts, problem.targets))
    if team.rows == "shared":
        team.check_same("rows", f"{features.shape} {some.dtype}".encode() + content)
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


def _described(estimator: BaseEstimator, instead: Mapping[str, Any] = _NOTHING) -> str:
    """Return, as text, all that decides what a fit computes, beside its records."""
    params = estimator.get_params(deep=True) | dict(instead)
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
