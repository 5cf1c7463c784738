"""Two fits on neighbouring data with the same releases, and how far the sums move.

This is the definition of adaptive composition, run: the second fit is handed the
releases of the first. So each of its exact sums may differ from the first fit's by the
declared sensitivity alone, and nothing that it stores may differ at all.
"""

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privfeat._messages import array_of
from privfeat.audit.copies import changed_attributes, fit_copy, parameters_of
from privfeat.audit.mirrored import mirrored
from privfeat.audit.random_numbers import make_rng, seed_from
from privfeat.audit.recorder import Recorded, recording
from privfeat.core.noise.observation import leave_out
from privfeat.core.statement.privacy_statement import PrivacyStatement
from privfeat.exceptions import PrivacyError


@dataclass(frozen=True)
class Movement:
    """How far the sum of a query moved between neighbours, at most over its releases.

    Both are in units of the statistic.
    """

    name: str
    declared: float  # L2 sensitivity
    observed: float  # ``inf`` where the sums differ in shape, or are not finite

    @property
    def ratio(self) -> float:
        """``observed / declared``."""
        return self.observed / self.declared

    @property
    def ok(self) -> bool:
        """Whether the sum moved by what is declared, or less."""
        return self.observed <= self.declared


@dataclass(frozen=True)
class ReplayResult:
    """What differed between two fits on neighbouring data.

    Attributes
    ----------
    movements : tuple of Movement
    changed : tuple of str
        Fitted attributes that differ although all releases are the same.
    """

    movements: tuple[Movement, ...]
    changed: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether only the sums moved, each by what is declared or less."""
        return not self.changed and all(movement.ok for movement in self.movements)

    def __str__(self) -> str:
        """Return a table, one line for each query."""
        lines = [f"{'release':<16}{'declared':>12}{'moved by':>12}{'ratio':>8}"]
        lines += [
            f"{move.name:<16}{move.declared:>12.5g}{move.observed:>12.5g}"
            f"{move.ratio:>8.3f}{_verdict(move)}"
            for move in self.movements
        ]
        lines += [f"{name} differs beside the releases" for name in self.changed]
        return "\n".join(lines)


def _verdict(move: Movement) -> str:
    """Return what a line ends with: a sum without the record says nothing of it."""
    if not move.ok:
        return "  TOO FAR"
    return "" if move.observed else "  (did not move)"


def replay(
    estimator: Any,
    X: ArrayLike,
    y: ArrayLike,
    *,
    record: int | None = None,
    user: Any = None,
    groups: ArrayLike | None = None,
    replacement: tuple[ArrayLike, ArrayLike] | None = None,
) -> ReplayResult:
    """Fit with and without a record (or a user), and compare.

    Parameters
    ----------
    estimator : estimator of privfeat
        Unfitted, and left so: clones without its ledger are fitted, and thrown away.
        A network needs a model that is named, or made by a function.
    X, y, groups : array-like
        What ``fit`` takes.
    record : int, optional
        The row to remove, or, under replace-one, to replace.
    user : object, optional
        Instead of ``record`` where ``groups`` are given: whose rows to remove or
        replace.
    replacement : (rows, labels), optional
        Under replace-one: what the chosen rows become. Default: their negatives, and in
        another replay what the center of the fit mirrors them to, with the labels that
        they have, which move class sums the most and Gram matrices little. Those move
        most for orthogonal rows.

    Raises
    ------
    ValueError
        If not exactly one of ``record`` and ``user`` is given, ``record`` is given with
        ``groups``, or the user has no rows.
    PrivacyError
        If the fit releases nothing that could be compared.

    Notes
    -----
    The chosen rows stand last in both data sets, so that under Poisson sampling every
    other row has the same coin. The sampling probability of networks depends on the
    number of records, or users, which is public: there the chosen rows are not removed,
    but take no part. Only a violation on *these* neighbours is found: try extreme rows
    (long, zero, the only one of a class).

    **Source.** Cebere et al., Privacy in Theory, Bugs in Practice, 2026
    (arXiv:2602.17454).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from privfeat import DPLeastSquares
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = DPLeastSquares(epsilon=1, classes=range(3))
    >>> replay(clf, X, y, record=7).ok
    True
    """
    rows, labels = array_of(X), array_of(y)
    users = None if groups is None else array_of(groups)
    chosen = _choose(len(rows), record, user, users)
    order = np.argsort(chosen, kind="stable")
    n_kept, missing = int(np.sum(~chosen)), None
    one = [part[order] for part in (rows, labels, users) if part is not None]
    params = parameters_of(estimator)
    further: Callable[[Any], Any] | None = None
    if params["adjacency"] == "add_remove" and "expected_batch_size" in params:
        two, missing = one, np.arange(len(rows)) >= n_kept
        if users is not None:  # which are what is sampled, in the order of their names
            missing = np.unique(users) == user
    elif params["adjacency"] == "add_remove":
        two = [part[:n_kept] for part in one]
    else:
        old = [part[n_kept:] for part in one]

        def replaced(new: Sequence[Any]) -> list[NDArray[Any]]:
            return [
                np.concatenate([part[:n_kept], np.reshape(value, part[n_kept:].shape)])
                for part, value in zip(one, [*new, *old[2:]], strict=True)
            ]

        def mirror(fitted: Any) -> Any:
            new = mirrored(old[0], fitted)
            return None if new is None else tuple(replaced([new, old[1]]))

        two = replaced([-old[0], old[1]] if replacement is None else replacement)
        further = mirror if replacement is None else None
    neighbours = tuple(one), tuple(two)
    return replay_neighbours(estimator, *neighbours, missing=missing, further=further)


def replay_neighbours(
    estimator: Any,
    one: tuple[Any, ...],
    two: tuple[Any, ...],
    *,
    missing: NDArray[np.bool_] | None = None,
    further: Callable[[Any], tuple[Any, ...] | None] | None = None,
) -> ReplayResult:
    """Fit two data sets that are neighbours, and compare; see `replay`.

    Parameters
    ----------
    estimator : estimator of privfeat
    one, two : (X, y) or (X, y, groups)
        What ``fit`` takes.
    missing : bool array of shape (n_samples,), optional
        Records of ``two`` that take no part, where the number of records is public.
    further : callable, optional
        Returns one more neighbour of ``one``, or None, for the estimator that was
        fitted to ``one``: without ``missing``.
    """
    parameters_of(estimator)
    seed = seed_from(make_rng(None))
    without = nullcontext() if missing is None else leave_out(missing)
    with recording() as recorder:
        first = fit_copy(estimator, *one, random_state=seed)
        calls = recorder.calls
        if not calls:
            raise PrivacyError("a fit must release something to be replayed.")
        more = None if further is None else further(first)
        moves, changed = [], set[str]()
        for other in (two,) if more is None else (two, more):
            recorder.start(answers=calls)
            with without:
                second = fit_copy(estimator, *other, random_state=seed)
            moves.append(movements(first.privacy_, calls, recorder.calls))
            changed |= {*changed_attributes(first, second)}
    farthest = [
        max(each, key=lambda move: move.observed) for each in zip(*moves, strict=True)
    ]
    return ReplayResult(tuple(farthest), tuple(sorted(changed)))


def movements(
    statement: PrivacyStatement,
    calls: Sequence[Recorded],
    other_calls: Sequence[Recorded],
) -> tuple[Movement, ...]:
    """Return the largest movement of each query, its blocks stacked.

    PrivacyError if two fits did not release the same queries in the same order, or
    others than their statement lists.
    """
    names = [call.name for call in calls]
    if names != [call.name for call in other_calls]:
        raise PrivacyError("neighbouring data must give the same releases.")
    if set(names) != {record.name for record in statement.releases}:
        raise PrivacyError("a fit must release what its statement lists.")
    found = []
    for record in statement.releases:
        moves = [
            _distance(one.exact, two.exact)
            for one, two in zip(calls, other_calls, strict=True)
            if one.name == record.name
        ]
        n_blocks = len(moves) // record.count
        if n_blocks * record.count != len(moves):
            raise PrivacyError("a fit must release as often as its statement says.")
        observed = max(
            math.hypot(*moves[start : start + n_blocks])
            for start in range(0, len(moves), n_blocks)
        )
        found.append(Movement(record.name, record.l2_sensitivity, observed))
    return tuple(found)


def _choose(
    n_rows: int, record: int | None, user: Any, users: NDArray[Any] | None
) -> NDArray[np.bool_]:
    """Return which rows to remove or replace."""
    if (record is None) == (user is None):
        raise ValueError("exactly one of record and user must be given.")
    chosen: NDArray[np.bool_] = np.zeros(n_rows, bool)
    if record is None:
        chosen |= users is not None and np.asarray(users == user, bool)
        if not np.any(chosen):
            raise ValueError(f"user must be one of groups, got {user!r}.")
        return chosen
    if users is not None:
        raise ValueError(f"user must be given for groups, got record={record!r}.")
    if not 0 <= record < n_rows:
        raise ValueError(f"record must be in [0, {n_rows}), got {record!r}.")
    chosen[record] = True
    return chosen


def _distance(one: NDArray[np.float64], two: NDArray[np.float64]) -> float:
    distance = float(np.linalg.norm(one - two)) if one.shape == two.shape else math.inf
    return distance if math.isfinite(distance) else math.inf
