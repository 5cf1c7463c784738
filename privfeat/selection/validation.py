"""Cross-validation whose scores are private: its fits and its scores are one charge."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone, is_classifier

from privfeat._checks import check_int, check_real
from privfeat._messages import check_columns, refuse_altered
from privfeat._types import Unit
from privfeat.core.accounting.calibration import plan_releases
from privfeat.core.accounting.plan import Query
from privfeat.core.ledger.privacy_ledger import PrivacyLedger
from privfeat.core.noise.keys import KeyStream
from privfeat.core.private_steps import private_steps
from privfeat.core.shares import shares_of_rho
from privfeat.core.sums.processes import check_alone
from privfeat.estimation.inputs import check_users, known_features, seed_of
from privfeat.metrics.intervals import Width
from privfeat.selection.folds import HashKFold
from privfeat.selection.inputs import (
    assumed,
    budget_of,
    budgeted,
    check_public,
    check_validated,
    checked_plan,
    fewest_records,
    read_records,
)
from privfeat.selection.scoring import (
    Accuracies,
    CrossValidation,
    Errors,
    ScoreRelease,
    chosen,
)

# Part of rho of the scores, where the fits share the rest.
SCORE_SHARE = 0.2


class PrivateCrossValidation(BaseEstimator):
    """What is charged: a ledger shows it under this name."""

    def __init__(self, estimator: Any, ledger: PrivacyLedger | None = None) -> None:
        self.estimator, self.ledger = estimator, ledger


def private_cross_val_score(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    max_group_size: int | None = None,
    n_splits: int = 5,
    epsilon: float | None = None,
    delta: float = 1e-5,
    confidence: float = 0.95,
    ledger: PrivacyLedger | None = None,
    random_state: Any = None,
) -> CrossValidation:
    """Return private accuracies, or R squared, of an estimator in folds of the records.

    Parameters
    ----------
    estimator : private classifier or regressor, or PrivatePipeline that ends in one
        With its own budget not set: it is replaced. Its ``adjacency`` holds. A
        regressor has ``target_bounds``.
    X : table or array-like of shape (n_samples, n_features)
        As ``estimator.fit`` takes it. Sensitive. At least `fewest_records` rows: 40 in
        2 folds, 18 in 5.
    y : array-like of shape (n_samples,)
        Labels or targets, one for each record. Sensitive.
    groups : array-like of shape (n_samples,), optional
        The user of each record, a whole number or a text. All records of a user are
        then protected together, and are in one fold.
    max_group_size : int, optional
        With ``groups``: at most so many records of a user count, in each fit and in the
        scores.
    n_splits : int, default=5
        Number of folds, in [2, 100]: each is predicted by a fit to all others. Default:
        5, as in scikit-learn.
    epsilon : float, optional
        Budget of all fits and scores together, > 0. Default: 1, since no fit may be
        without noise unasked.
    delta : float, default=1e-5
        Default: 1e-5, as in the papers.
    confidence : float, default=0.95
        Of the intervals, in [0.5, 1). Default: 0.95, as is usual.
    ledger : PrivacyLedger, optional
        Charged once, before the first fit.
    random_state : int, RandomState or None, default=None
        Of the noise; a seed warns. Default: None, since noise protects only while
        nobody can guess it. Folds are drawn afresh whatever it is.

    Returns
    -------
    found : CrossValidation

    Raises
    ------
    TypeError, ValueError, UnsupportedEventError, BudgetExceededError, LedgerError
        As `DPRandomizedSearch.fit`, or for too few records; nothing was charged.

    Notes
    -----
    **Guarantee.** Each record is dealt into a fold by its own secret coin
    (`HashKFold`), and with ``groups`` each user. The fits get four fifths of rho, in
    equal parts, and all scores together the rest, as one release. Of a classifier these
    are ``outcomes``: the numbers of records that were predicted right, and wrong, in
    each fold. A record is in one fold, so in one of these ``2 n_splits`` cells; the
    sensitivity of the vector is 1, and ``sqrt(2)`` under replace-one
    (`privfeat.core.bounds.replacement.class_counts`). Of a regressor, ``errors``: in
    each fold the eight sums of `private_evaluation`, to which a record adds in one
    fold: their sensitivity is that of one fold (`replacement.box_sums`). With
    ``groups`` both are ``max_group_size`` times as large.

    *Proof.* Fix the coins. Then the training set of a fold is a rule for each record,
    or each user, by itself, so neighbouring data sets become neighbouring training
    sets, or equal ones, and a fit costs what it costs there. Given the fits, a
    prediction follows from its own record, and which records of a user count from that
    user and a key. Neighbours differ in the sums of one fold: a record that takes the
    place of another has its coin, and a user its name, as `HashKFold` says. Of a user
    at most ``max_group_size`` records count, and the triangle inequality bounds what
    they add. The vector is one Gaussian release. All compose adaptively as in
    ``privfeat.core.private_steps``, and the guarantee is an average over the coins,
    which come from no record.

    The fits are forgotten: what they released counts in the cost all the same.

    **Empty folds.** One without records has a score out of noise like any other. If it
    has all of them, its fit gets none, and fails, after the charge of a fold before.
    The coins do so once in ``1e12`` folds of `fewest_records`, which the statement says
    are there.

    **Intervals** hold sampling and noise (`privfeat.metrics`), as if the folds were
    independent; with ``groups`` the variance of sampling is multiplied by
    ``max_group_size``. They are of fits to ``1 - 1 / n_splits`` of the records, at the
    part of the budget that such a fit had here, which is less than that of a fit alone.

    **Public.** The estimator and its parameters but ``random_state``, the classes, the
    number of features, ``n_splits``; that there are `fewest_records`.

    **Not protected.** Timing; a seed that somebody guesses.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from privfeat import DPLeastSquares
    >>> from privfeat.selection import private_cross_val_score
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = DPLeastSquares(classes=range(10))
    >>> found = private_cross_val_score(clf, X, y, epsilon=8)
    >>> found.accuracy.low <= found.accuracy.value <= found.accuracy.high
    True
    >>> found.privacy.epsilon
    8.0
    """
    check_alone("private_cross_val_score")
    check_validated(estimator)
    n_splits = check_int("n_splits", n_splits, low=2, high=100)
    confidence = check_real(
        "confidence", confidence, low=0.5, high=1.0, include_high=False
    )
    if max_group_size is not None:
        check_int("max_group_size", max_group_size, low=1)
    validated = PrivateCrossValidation(clone(estimator), ledger)
    refuse_altered(X)
    check_columns(y=y)
    if not hasattr(estimator, "steps"):  # a first step may read dates
        check_columns(X=X)
    rows, labels = read_records(validated, X, y)
    users = check_users(groups, max_group_size, len(labels), X, y, ledger=ledger)
    n_units = len(labels) if users is None else users.n_users
    most = 1 if users is None else users.max_group_size
    width = Width.of(confidence, most)
    unit: Unit = "record" if users is None else "user"
    fewest = fewest_records(1 / n_splits)
    if n_units < fewest:
        raise ValueError(
            f"X must have at least {fewest} {unit}s in {n_splits} folds, so that no "
            "fit is without any, got fewer."
        )
    scored: Accuracies | Errors = (
        Accuracies(estimator, labels)
        if is_classifier(estimator)
        else Errors(estimator, labels, confidence)
    )
    adjacency = estimator.adjacency
    arithmetic: Any = getattr(estimator, "arithmetic", "float64")
    keys = KeyStream(seed_of(random_state))
    whole = plan_releases(
        [Query("all", 1.0)], epsilon=epsilon, delta=delta, adjacency=adjacency
    )
    names = [f"fit{fold}" for fold in range(n_splits)]
    weights = dict.fromkeys(names, (1.0 - SCORE_SHARE) / n_splits)
    rhos = shares_of_rho(whole, weights | {"scores": SCORE_SHARE})
    budget = {**budget_of(rhos[names[0]]), "delta": whole.delta}
    fit = budgeted(estimator, scored.params, max_group_size=max_group_size, **budget)
    check_public({}, estimator, X)
    n_features = getattr(validated, "n_features_in_", 1)  # texts have none
    plan = checked_plan(fit, rows, labels, n_features)
    query = scored.query(adjacency)
    query = query if users is None else query.per_user(most)
    scores = ScoreRelease(query, arithmetic, budget_of(rhos["scores"]), whole)
    public = [
        known_features(validated),
        *scored.public,
        "the estimator, and all its constructor parameters but random_state",
        f"that there are {n_splits} folds",
        f"that there are at least {fewest} {unit}s",
        *assumed({}, estimator),
    ]
    if users is not None:
        public.append(f"that of a user's records at most {most} count")
    if adjacency == "replace_one":
        public.append(f"the number of {unit}s")
    begun = private_steps(
        validated,
        whole,
        {**dict.fromkeys(names, plan), "scores": scores.plan},
        keys,
        public=tuple(public),
        n_units=n_units,
        forget=(),
        unit=unit,
        arithmetic=arithmetic,
        classes_read=scored.read,
    )
    ids = None if users is None else users.ids
    counted = np.ones(len(labels), bool)
    if users is not None:
        counted = users.kept_records(keys.draw_integer())
    folds = HashKFold(n_splits).split(rows, groups=ids)
    sums = []
    with begun.charging():
        for name, (train, test) in zip(names, folds, strict=True):
            fitted = clone(fit).set_params(random_state=_seed(keys))
            of_users = {} if ids is None else {"groups": ids[train]}
            with begun.turn(name) as part:
                fitted.set_params(ledger=part)
                fitted.fit(chosen(rows, train), labels[train], **of_users)
            given = chosen(rows, test), scored.targets[test], counted[test]
            sums.append(scored.exact(fitted, *given))
        with begun.turn("scores") as part:
            noisy, stddev = scores.release(part, sums, unit, _seed(keys))
    return scored.found(noisy, stddev, width, begun.statement)


def _seed(keys: KeyStream) -> int | None:
    return keys.draw_integer() if keys.seeded else None
