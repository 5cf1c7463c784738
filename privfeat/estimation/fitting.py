"""Around every fit: a copy of its parameters, its announcement, and compiled code."""

import math
import os
from collections.abc import Callable, Iterator, Mapping, MappingView, Set
from contextlib import AbstractContextManager, contextmanager
from functools import cache, wraps
from inspect import signature
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, cast

from sklearn.base import BaseEstimator

from privfeat._progress import hidden, progress
from privfeat._types import STAYS_AT_HOME
from privfeat.core.ledger.privacy_ledger import PrivacyLedger
from privfeat.core.statement.privacy_statement import PrivacyStatement
from privfeat.estimation.bases import OF_FIT, cost_of
from privfeat.estimation.beside import try_what_stands_beside
from privfeat.exceptions import PrivacyError

if TYPE_CHECKING:
    from privfeat.core.sums.processes import Team

E = TypeVar("E", bound=BaseEstimator)
P = ParamSpec("P")
T = TypeVar("T")
_REMEDIES = {
    "groups": "It protects each record on its own; other estimators protect users.",
    "sample_weight": "Weights of records change what one record can do. Leave them "
    "out, or pass class_weight to an estimator that has it.",
}
_NOT_KEPT = {*STAYS_AT_HOME, "steps", "verbose"}
VARIABLE = "PRIVFEAT_COMPILATION_CACHE"
_FOLDER = "jax_compilation_cache_dir"
# The least time that a kept compilation took.
_LEAST_SECONDS = "jax_persistent_cache_min_compile_time_secs"

_lock = Lock()
# Bodies whose code is kept, and parts of them whose code is not; and the setting that
# stands around all of them.
_open = {"kept": 0, "apart": 0}
_around = [math.inf]


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

    With a ledger, what scikit-learn will fit beside the estimator is tried first.
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
        if isinstance(getattr(self, "ledger", None), PrivacyLedger):
            try_what_stands_beside()
        try:
            fit(copied, *args, **kwargs)
        except BaseException:
            if vars(copied).get("privacy_") is not before:
                _take_over(self, copied)
            raise
        keep_params(copied)
        _take_over(self, copied)
        return self

    return fitted


def check_readable(estimator: Any) -> None:
    """Raise TypeError for a parameter that gives its values once, or in no order.

    A fit reads its parameters when it plans, and again as it draws.

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


def keep_params(estimator: Any) -> None:
    """Keep the parameters of a fit, but what its owner may take out before it leaves.

    Such is what stays at home, of the estimator itself or of one in it.
    """
    vars(estimator)[OF_FIT] = {
        name: value
        for name, value in estimator.get_params(deep=False).items()
        if not (
            name in _NOT_KEPT
            or hasattr(value, "get_params")
            or callable(value)
            or isinstance(value, Mapping)
        )
    }


def announced(
    estimator: Any, statement: PrivacyStatement, team: "Team", *, charged: bool = True
) -> AbstractContextManager[None]:
    """Return what shows the cost and the progress of a fit that is ``verbose``.

    To be called, and entered, before the fit is charged, so that a ledger that cannot
    be read costs nothing. ``charged`` is False if the fit goes on from a
    checkpoint, at no cost. Of the processes of a ``team`` the first tells it.
    """

    def told() -> AbstractContextManager[None]:
        if not (estimator.verbose and team.index == 0):
            return hidden()  # a search that is shown would show each of its runs
        cost = cost_of(statement, estimator.ledger) if charged else None
        return _shown(type(estimator).__name__, cost)

    return agreed(team, "say what the fit costs", told)


@contextmanager
def _shown(name: str, told: str | None) -> Iterator[None]:
    with progress(name) as found:
        if told is not None:
            found.tell(told)
        yield


def agreed(
    team: "Team", what: str, act: Callable[[], T], *, who: str = "every process"
) -> T:
    """Return what ``act`` returns in this process, if it raises in none.

    PrivacyError if it raises in another process, which this one would wait for. What it
    raises here goes on.
    """
    if team.size == 1:
        return act()
    found, refusal = None, None
    try:
        found = act()
    except Exception as error:  # noqa: BLE001 - the others wait to hear of it
        refusal = error
    if any(team.each(refusal is not None)):
        raise refusal or PrivacyError(
            f"{who} must be able to {what}, but could not: see the outputs of all."
        )
    return cast(T, found)


def by_first(team: "Team", what: str, act: Callable[[], T]) -> T | None:
    """Return what ``act`` returns in the first process, None in the others.

    PrivacyError in the others, if the first raises. What it raises goes on there.
    """
    own = act if team.index == 0 else lambda: None
    return agreed(team, what, own, who="the first process")


def first_of(team: "Team", tree: T, what: str) -> T:
    """Return the arrays that the first process passes, bit for bit, to each process.

    All pass a tree of the same structure, with arrays of the same shapes and types;
    those of the others do not count.
    """
    if team.size == 1:
        return tree
    import jax  # for fits alone
    import numpy as np

    leaves, structure = jax.tree.flatten(tree)
    arrays = [np.asarray(leaf) for leaf in leaves]
    content = b"".join(array.tobytes() for array in arrays)
    padded = np.frombuffer(content + bytes(-len(content) % 8), np.int64)
    content, start, found = team.from_first(padded, what).tobytes(), 0, []
    for array in arrays:
        end = start + array.nbytes
        values = np.frombuffer(content[start:end], array.dtype)
        found.append(values.reshape(array.shape))
        start = end
    whole: T = jax.tree.unflatten(structure, found)
    return whole


def kept_compiled_code() -> AbstractContextManager[None]:
    """Let JAX keep what the body compiles in a folder of the user.

    ``PRIVFEAT_COMPILATION_CACHE`` names another folder, or is ``off``. A cache that
    JAX has already stays; without a folder nothing is kept.

    The body must compile nothing that holds data: compiled functions hold each array
    that they use without being passed it. What other threads compile while the body
    runs is kept as well, since JAX has one setting for all; nothing else is.
    """
    return _counted("kept")


def code_of_others() -> AbstractContextManager[None]:
    """Keep nothing that the body compiles, though it is part of one that is kept.

    A function of the user, such as ``on_step``, may hold private rows. What other
    threads compile meanwhile is not kept either.
    """
    return _counted("apart")


@contextmanager
def _counted(which: str) -> Iterator[None]:
    """Count this body as ``kept`` or ``apart`` while it runs."""
    with _lock:
        ours = _cache_is_ours() if which == "kept" else _open["kept"] > 0
        if ours:
            _count(which, 1)
    try:
        yield
    finally:
        if ours:
            with _lock:
                _count(which, -1)


def _count(which: str, by: int) -> None:
    if not any(_open.values()):
        _around[0] = _config().values[_LEAST_SECONDS]
    _open[which] += by
    least = math.inf if _open["apart"] else 0.0
    _set(_LEAST_SECONDS, least if any(_open.values()) else _around[0])


def folder_of_compiled_code() -> str | None:
    """Return where fits keep what they compile, None if nowhere."""
    _cache_is_ours()
    found: str | None = _config().values[_FOLDER]
    return found


@cache
def _cache_is_ours() -> bool:
    """Make the folder and give it to JAX, which keeps nothing in it yet."""
    chosen = os.environ.get(VARIABLE, "")
    if chosen == "off" or _config().values[_FOLDER]:
        return False
    try:
        root = chosen or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        folder = Path(root) if chosen else Path(root, "privfeat", "compiled")
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # the latter where nobody has a home
        return False
    _set(_LEAST_SECONDS, math.inf)
    _set(_FOLDER, str(folder))
    return True


def _set(name: str, value: float | str) -> None:
    _config().update(name, value)


def _config() -> Any:
    import jax  # for fits alone

    return jax.config
