"""Several processes that run the same fit, on records that each counts once.

What the first has, all have. Only public things pass here: parameters, states and
numbers that follow from releases, and, as sums do, the sample of a step (the network
between the processes is trusted).
"""

import json
from collections.abc import Mapping
from functools import partial
from importlib.metadata import version
from types import MappingProxyType
from typing import Any, TypeVar

import jax
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator

from privfeat._encoding import encode
from privfeat._process import processor, versions_of_blas
from privfeat._version import __version__
from privfeat.core.statement.privacy_statement import PrivacyStatement
from privfeat.core.sums.devices import flags_of_xla
from privfeat.core.sums.processes import Team
from privfeat.core.sums.records import CHUNK_ROWS, MAX_ROWS
from privfeat.estimation.fitting import agreed
from privfeat.estimation.labels import Problem
from privfeat.exceptions import PrivacyError

# Seeds are compared as they were read, a ledger by what it charges; progress bars are
# for one process.
_NOT_COMPARED = ("random_state", "ledger", "verbose")
_NOTHING: Mapping[str, Any] = MappingProxyType({})
_SPREAD = 32
T = TypeVar("T")
_ONE_KIND = "processors, devices and libraries: use hosts of one kind"
_HARMLESS_FLAGS = ("--xla_dump", "--xla_force_host_platform_device_count")
# Of JAX, by which code is compiled, or not.
_SETTINGS = (
    *("jax_enable_x64", "jax_default_matmul_precision", "jax_numpy_dtype_promotion"),
    *("jax_disable_jit", "jax_disable_most_optimizations", "jax_optimization_level"),
    *("jax_exec_time_optimization_effort", "jax_memory_fitting_effort"),
    *("jax_memory_fitting_level", "jax_allow_f16_reductions", "jax_enable_pgle"),
)


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
    compared: slice | NDArray[np.intp] | None = None,
) -> None:
    """Refuse what would count a record or a user in more than one process.

    Of the features the ``compared`` rows are compared, by default the first ones, some
    of all, and those where the part of a process begins; and all targets: rows that one
    process has shuffled have their targets in another order. ``about`` is what else a
    fit must have in common, and ``instead`` what stands for parameters that are
    compared by it.

    PrivacyError or ValueError if the processes do not run the same fit, or should share
    rows and hold different ones, or round them in two ways. Where each has its own
    rows: also if classes are not given, there are groups, or two processes hold the
    same rows.
    """
    described = agreed(
        team, "describe the fit", partial(_described, estimator, instead)
    )
    if team.rows == "shared":
        # One record more moves others to the next process.
        team.check_same(_ONE_KIND, _rounding().encode())
    description = f"{statement.to_json()} {about} {team.rows} {seed} {described}"
    team.check_same("fit", description.encode())
    some = features[_places(features.shape[0], team) if compared is None else compared]
    parts = [some.data, some.indices, some.indptr] if issparse(some) else [some]
    # numbers of columns have 32 or 64 bits, as it happens
    parts[1:] = [part.astype(np.int64) for part in parts[1:]]
    parts.append(problem.targets)
    content = b"".join(part.tobytes() for part in parts)
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


def spread(n: int) -> NDArray[np.intp]:
    """Return the places of some of ``n`` rows, from the first to the last."""
    return np.unique(np.rint(np.linspace(0, n - 1, _SPREAD)).astype(np.intp))


def _places(n: int, team: Team) -> NDArray[np.intp]:
    """Return the places of rows by which processes find that theirs differ.

    A row more or less moves all rows from there to where another makes up for it. If
    that counts one in two processes, it moves the rows where the part of one begins.
    """
    n_chunks = -(-n // CHUNK_ROWS)
    starts = [n_chunks * i // team.size * CHUNK_ROWS for i in range(1, team.size)]
    around = np.array([place + side for place in starts for side in (-1, 0)], np.intp)
    places = np.concatenate([np.arange(CHUNK_ROWS), spread(n), around])
    return np.unique(places[(places >= 0) & (places < n)])


def _rounding() -> str:
    """Return, as text, what decides how a record is rounded on this host.

    Compilers and BLAS choose instructions, and with them the order of a sum, by the
    processor and by what the environment says of it.
    """
    device = jax.local_devices()[0]
    flags = sorted(flags_of_xla().split())
    content = [
        processor(),
        [device.device_kind, device.client.platform_version],
        [f for f in flags if not f.startswith(_HARMLESS_FLAGS)],
        [version(package) for package in ("jax", "jaxlib", "numpy", "scipy")],
        versions_of_blas(),
        # those that NumPy found, unless it was told not to use them
        np.show_config(mode="dicts")["SIMD Extensions"],
    ]
    return json.dumps(content, sort_keys=True)


def _described(estimator: BaseEstimator, instead: Mapping[str, Any] = _NOTHING) -> str:
    """Return, as text, all that decides what a fit computes, beside its records."""
    params = estimator.get_params(deep=True)
    ledger = params.get("ledger")
    content = [
        f"{type(estimator).__module__}.{type(estimator).__qualname__}",
        {
            name: _comparable(name, value)
            for name, value in params.items()
            if name not in _NOT_COMPARED and name.split("__")[0] not in instead
        }
        | {name: _comparable(name, value) for name, value in instead.items()},
        None if ledger is None else ledger.budget.uid,
        [__version__, jax.__version__, np.__version__, jax.default_backend()],
        [str(getattr(jax.config, name, None)) for name in _SETTINGS],
    ]
    return json.dumps(content, sort_keys=True)


def _comparable(name: str, value: Any) -> Any:
    """Return a parameter as JSON; what has no such form cannot be compared."""
    if isinstance(value, Mapping):
        value = dict(value)
    try:
        return encode(name, value)
    except TypeError as error:
        raise PrivacyError(
            f"{name} must be made of numbers, strings, their lists or arrays with "
            f"several processes, which compare it, got {type(value).__name__}."
        ) from error
