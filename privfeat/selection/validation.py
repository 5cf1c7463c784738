"""Cross-validation whose scores are private: its fits and its scores are one charge."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone

from privfeat._checks import check_int, check_real
from privfeat._messages import array_of, without_data
from privfeat.core.accounting.calibration import plan_releases
from privfeat.core.accounting.plan import Query
from privfeat.core.ledger.privacy_ledger import PrivacyLedger
from privfeat.core.noise.keys import KeyStream
from privfeat.core.private_steps import private_steps
from privfeat.core.shares import shares_of_rho
from privfeat.core.statement.privacy_statement import PrivacyStatement
from privfeat.core.sums.processes import check_alone
from privfeat.estimation.inputs import (
    known_features,
    seed_of,
    warn_of_unused_groups,
)
from privfeat.estimation.labels import encode_labels
from privfeat.metrics.intervals import Estimate, Width, proportion
from privfeat.metrics.predictions import are_right, codes_of
from privfeat.selection.fold_scores import FoldScores
from privfeat.selection.folds import HashKFold
from privfeat.selection.inputs import (
    assumed,
    budget_of,
    budgeted,
    check_estimator,
    check_public_rows,
    checked_plan,
    classes_name,
    read_records,
)

# Part of rho of the scores, where the fits share the rest.
SCORE_SHARE = 0.2
# How often a fit may get no record: in 100 folds less often than any delta.
_RARELY = 1e-12


@dataclass(frozen=True)
class CrossValidation:
    """What cross-validation found; every figure is released.

    Attributes
    ----------
    scores : Estimate of arrays of shape (n_splits,)
        Accuracy in each fold, with its interval; NaN where the noise hides it.
    accuracy : Estimate
        Accuracy in all folds together, with its interval.
    privacy : PrivacyStatement
        The cost of all fits and scores.
    """

    scores: Estimate
    accuracy: Estimate
    privacy: PrivacyStatement

    def __str__(self) -> str:
        """Return the figures and their cost, for people."""
        folds = [f"  fold {i}: {one}" for i, one in enumerate(self.scores.each())]
        return "\n".join([f"accuracy: {self.accuracy}", *folds, str(self.privacy)])


class PrivateCrossValidation(BaseEstimator):
    """What is charged: a ledger shows it under this name."""

    def __init__(self, estimator: Any, ledger: PrivacyLedger | None = None) -> None:
        self.estimator, self.ledger = estimator, ledger


def private_cross_val_score(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    *,
    n_splits: int = 5,
    epsilon: float | None = None,
    delta: float = 1e-5,
    confidence: float = 0.95,
    ledger: PrivacyLedger | None = None,
    random_state: Any = None,
) -> CrossValidation:
    """Return private accuracies of an estimator in folds of the records.

    Parameters
    ----------
    estimator : private classifier, or PrivatePipeline that ends in one
        With its own budget not set: it is replaced. Its ``adjacency`` holds.
    X : table or array-like of shape (n_samples, n_features)
        As ``estimator.fit`` takes it. Sensitive. At least `fewest_records` rows: 40 in
        2 folds, 18 in 5.
    y : array-like of shape (n_samples,)
        Labels, one for each record. Sensitive.
    n_splits : int, default=5
        Number of folds, in [2, 100]: each is predicted by a fit to all others.
    epsilon : float, optional
        Budget of all fits and scores together, > 0; 1 by default.
    delta : float, default=1e-5
    confidence : float, default=0.95
        Of the intervals, in [0.5, 1).
    ledger : PrivacyLedger, optional
        Charged once, before the first fit.
    random_state : int, RandomState or None, default=None
        Of the noise; a seed warns. Folds are drawn afresh whatever it is.

    Returns
    -------
    found : CrossValidation

    Raises
    ------
    TypeError, ValueError, UnsupportedEventError, BudgetExceededError, LedgerError
        As `DPRandomizedSearch.fit`, or for too few records; nothing was charged.

    Notes
    -----
    **Guarantee.** Each record is dealt into a fold by a secret coin of its own
    (`HashKFold`). The fits get four fifths of rho, in equal parts, and all scores
    together the rest, as one release of ``outcomes``: the numbers of records that were
    predicted right, and wrong, in each fold. A record is in one fold, so in one of
    these ``2 n_splits`` cells; the sensitivity of the vector is 1, and ``sqrt(2)``
    under replace-one (`privfeat.core.bounds.replacement.class_counts`).

    *Proof.* Fix the coins. Then the training set of a fold is a rule for each record by
    itself, so neighbouring records become neighbouring training sets, or equal ones,
    and a fit costs what it costs there. Given the fits, a prediction follows from its
    own record, and the vector is one Gaussian release. All compose adaptively as in
    ``privfeat.core.private_steps``, and the guarantee is an average over the coins,
    which come from no record.

    The fits are forgotten: what they released counts in the cost all the same.

    **Empty folds.** One without records has a score out of noise like any other. If it
    has all of them, its fit gets none, and fails after the charge. The coins do so once
    in ``1e12`` folds of `fewest_records`, which the statement says are there.

    **Intervals** hold sampling and noise (`privfeat.metrics`), as if the folds were
    independent. They are of fits to ``1 - 1 / n_splits`` of the records, at the part of
    the budget that such a fit had here, which is less than that of a fit alone.

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
    check_estimator(estimator)
    n_splits = check_int("n_splits", n_splits, low=2, high=100)
    check_real("confidence", confidence, low=0.5, high=1.0, include_high=False)
    width = Width.of(confidence)
    validated = PrivateCrossValidation(clone(estimator), ledger)
    rows, labels = read_records(validated, X, y)
    warn_of_unused_groups(X, None)
    if len(labels) < fewest_records(n_splits):
        raise ValueError(
            f"X must have at least {fewest_records(n_splits)} records in {n_splits} "
            "folds, so that no fit is without any, got fewer."
        )
    given = estimator.get_params()[classes_name(estimator)]
    classes = np.asarray(encode_labels(labels, given).classes)
    codes_of("y", array_of(labels), classes)  # all are among the classes
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
    fit = budgeted(estimator, classes, **budget)
    check_public_rows({}, estimator, X)
    n_features = getattr(validated, "n_features_in_", 1)  # texts have none
    plan = checked_plan(fit, rows, labels, n_features)
    scores = FoldScores(whole, rhos["scores"], arithmetic)
    source = "read from y" if given is None else "given"
    public = [
        known_features(validated),
        f"the set of {len(classes)} classes ({source})",
        "the estimator, and all its constructor parameters but random_state",
        f"that there are {n_splits} folds",
        f"that there are at least {fewest_records(n_splits)} records",
        "that all values are finite and all labels are among the classes",
        *assumed({}, estimator),
    ]
    if adjacency == "replace_one":
        public.append("the number of records")
    begun = private_steps(
        validated,
        whole,
        {**dict.fromkeys(names, plan), "scores": scores.plan},
        keys,
        public=tuple(public),
        n_units=len(labels),
        forget=(),
        arithmetic=arithmetic,
        classes_read=given is None,
    )
    cells = np.zeros((n_splits, 2), np.int64)
    with begun.charging():
        folds = HashKFold(n_splits).split(rows)
        for place, (train, test) in enumerate(folds):
            fitted = clone(fit).set_params(random_state=_seed(keys))
            with begun.turn(names[place]) as part:
                fitted.set_params(ledger=part)
                fitted.fit(_chosen(rows, train), labels[train])
            right = are_right(fitted, _chosen(rows, test), labels[test])
            cells[place] = np.count_nonzero(~right), np.count_nonzero(right)
        with begun.turn("scores") as part:
            noisy, stddev = scores.release(part, cells, _seed(keys))
    no, yes = noisy.T
    variance = stddev**2
    return CrossValidation(
        proportion(yes, no, (variance, variance, 0.0), width),
        proportion(
            yes.sum(), no.sum(), (n_splits * variance, n_splits * variance, 0.0), width
        ),
        begun.statement,
    )


def fewest_records(n_splits: int) -> int:
    """Return how many records must be there, lest all are dealt into one fold.

    >>> fewest_records(2), fewest_records(5)
    (40, 18)
    """
    return math.ceil(-math.log(_RARELY) / math.log(n_splits))


def _seed(keys: KeyStream) -> int | None:
    return keys.draw_integer() if keys.seeded else None


def _chosen(rows: Any, places: NDArray[np.int64]) -> Any:
    if hasattr(rows, "iloc"):
        return without_data(lambda: rows.iloc[places])
    return rows[places]
