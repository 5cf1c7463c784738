"""What a fit or a scorer would refuse, found before other fits are charged."""

from collections.abc import Iterable, Mapping
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone, is_regressor
from sklearn.metrics import check_scoring

from privfeat._messages import array_of, without_warnings
from privfeat._warnings import warn
from privfeat.core.callers.candidates import copies_of
from privfeat.core.ledger.privacy_ledger import PrivacyLedger
from privfeat.core.statement.privacy_statement import PrivacyStatement
from privfeat.core.sums.processes import current_team
from privfeat.estimation.beside import own_rows
from privfeat.estimation.inputs import array_of_records
from privfeat.selection.inputs import classes_name
from privfeat.selection.runs import is_of_the_user

_SEARCHED = {"param_grid", "param_distributions"}
# What a fit to made-up records goes without, the length of a network's among it.
_LEFT_OUT = {
    *("checkpoint_dir", "epochs", "expected_batch_size", "max_group_size", "on_step"),
}
# Made-up records of each class.
_OF_EACH = 4
_NOTHING = "No fold was fitted and nothing was charged."


class _ReachedError(BaseException):
    """A fit has come to its charge; no handler of errors takes it for one."""


class _Rehearsed(PrivacyLedger):
    """Reads as the ledger that it is made of, and ends whatever would charge it."""

    def __init__(self, ledger: PrivacyLedger) -> None:
        vars(self).update(vars(ledger))

    def charge(self, statement: PrivacyStatement, *, estimator: str) -> int:
        """Charge nothing: the fit ends here."""
        raise _ReachedError


def rehearse(
    estimator: Any,
    candidates: Iterable[Mapping[str, Any]],
    X: Any,
    y: Any,
    fit_params: Mapping[str, Any],
    *,
    every: bool,
) -> None:
    """Raise what fits of all records refuse, before any fold of them is charged.

    Folds that hold a bad record out would be charged, and then the search be lost with
    the fit of all records. A copy of each candidate is fitted up to its charge, which
    is not made, until one comes so far; if none does, the first error is raised.
    ``every``: all must come so far, since one that does not ends the search, and the
    charges of those before it would be lost. Estimators without a ledger, searches
    within searches, and processes that fit together are left alone.
    """
    if current_team().size > 1:
        return
    refusal: Exception | None = None
    for copy in copies_of(estimator, candidates):
        params = copy.get_params(deep=True)
        ledgers = {n: v for n, v in params.items() if isinstance(v, PrivacyLedger)}
        last = {name: name.rpartition("__")[2] for name in params}
        if not ledgers or _SEARCHED & {*last.values()}:
            return
        rehearsed: dict[str, Any] = {n: _Rehearsed(v) for n, v in ledgers.items()}
        # one that was interrupted would go on, without a charge
        folders = [name for name in params if last[name] == "checkpoint_dir"]
        copy.set_params(**rehearsed, **dict.fromkeys(folders))
        try:
            copy.fit(own_rows(X), y, **fit_params)
        except _ReachedError:
            if not every:
                return
        except Exception as error:  # noqa: BLE001 - whatever the fits would raise
            refusal = refusal or error
        else:  # it charges nothing
            if not every:
                return
    if refusal is not None:
        refusal.add_note(_NOTHING)
        raise refusal


def try_scorer(estimator: Any, names: Mapping[str, Any]) -> None:
    """Raise ValueError if a scorer of scikit-learn cannot score such an estimator.

    All folds would be charged, and every score be NaN. A copy is fitted to made-up
    records of all classes, or of targets within public bounds, and scored on them. Of
    regressors, and of a function of the user, which may want more of its records, there
    is a warning alone.
    ``names`` are those of the function of scikit-learn.
    """
    around = names if "scoring" in names else vars(names.get("self", object))
    targets, y = _made_up_targets(estimator), array_of(names.get("y"))
    if "scoring" not in around or targets is None or y.ndim != 1:
        return
    rows = _made_up_rows(names["X"], len(targets))
    if rows is None:
        return
    with without_warnings():
        try:
            fitted = quick_copy(estimator).fit(rows, targets)
        except Exception:  # noqa: BLE001 - what fits refuse is said by `rehearse`
            return
        try:
            found = check_scoring(fitted, scoring=around["scoring"])(
                fitted, rows, targets
            )
            scores = [*found.values()] if isinstance(found, dict) else found
            why = "" if np.isfinite(scores).all() else "NaN"
        except Exception as error:  # noqa: BLE001 - whatever the folds would meet
            why = f"{type(error).__name__}: {error}"
    if not why:
        return
    # some scorers want targets that are positive, which bounds do not say
    if is_regressor(estimator) or is_of_the_user(around["scoring"]):
        warn(
            f"scoring failed on made-up records, got {why}. If it fails in the folds "
            "as well, their charges are lost."
        )
        return
    refusal = ValueError(
        "scoring must be for the classes or targets of the estimator, got one that "
        f"cannot score made-up records ({why}). Pass another, such as the default."
    )
    refusal.add_note(_NOTHING)
    raise refusal


def _made_up_targets(estimator: Any) -> Any:
    """Return public labels, or targets within public bounds; None if none is known."""
    params = estimator.get_params(deep=True)
    if (classes := params.get(classes_name(estimator))) is not None:
        return np.tile(np.asarray(classes), _OF_EACH)
    bounds = params.get(classes_name(estimator).replace("classes", "target_bounds"))
    if bounds is None:
        return None
    low, high = bounds
    return np.linspace(low, high, 2 * _OF_EACH)


def _made_up_rows(X: Any, n: int) -> Any:
    """Return units in the place of an array of numbers, or of a table; None of texts.

    Of X the shape and the names of columns are read, and no record: what a scorer is
    given here is not paid for, and it may keep it.
    """
    own = X if hasattr(X, "shape") else array_of_records(X)
    table = hasattr(X, "iloc")
    kind = getattr(getattr(own, "dtype", None), "kind", "f")
    if (table and own.ndim != 2) or kind not in "biuf":
        return None
    rows = np.zeros((n, *own.shape[1:]), np.float32)
    if rows.ndim == 2:
        rows[np.arange(n), np.arange(n) % max(rows.shape[1], 1)] = 1.0
    return type(X)(rows, columns=X.columns) if table else rows


def quick_copy(estimator: Any) -> Any:
    """Return a copy that is fitted in one step, says nothing, and charges nobody."""
    copy, changed = clone(estimator), dict[str, Any]()
    params = copy.get_params(deep=True)
    for name, value in params.items():
        prefix, _, last = name.rpartition("__")
        network = f"{prefix}__expected_batch_size".lstrip("_") in params
        if isinstance(value, PrivacyLedger) or last in _LEFT_OUT:
            changed[name] = None
        elif last == "n_iter" and (network or isinstance(value, Integral)):
            changed[name] = 1
        elif last == "verbose":
            changed[name] = False if isinstance(value, bool) else 0
    return copy.set_params(**changed)
