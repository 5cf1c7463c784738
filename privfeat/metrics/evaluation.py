"""Private evaluation of a model on test records, which are protected as well."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_regressor
from sklearn.utils.validation import check_is_fitted

from privfeat._checks import check_bool, check_int
from privfeat._messages import array_of
from privfeat._types import Adjacency
from privfeat.core.ledger.privacy_ledger import PrivacyLedger
from privfeat.core.sums.processes import check_alone
from privfeat.estimation.inputs import check_users
from privfeat.estimation.names import check_classes
from privfeat.metrics.budget import PrivateEvaluation
from privfeat.metrics.measuring import Evaluation, measured
from privfeat.metrics.predictions import assumed_of, record_by_record, rows_of

# Assumed of predictions that are handed over.
_APART = "that the prediction of a record depends on that record alone"


def private_evaluation(
    model: Any,
    X: Any,
    y: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    max_group_size: int | None = None,
    epsilon: float | None = None,
    delta: float = 1e-5,
    adjacency: Adjacency = "add_remove",
    target_bounds: tuple[float, float] | None = None,
    scores: bool = True,
    confidence: float = 0.95,
    ledger: PrivacyLedger | None = None,
    random_state: Any = None,
) -> Evaluation:
    """Measure a fitted classifier or regressor on private test records.

    Parameters
    ----------
    model : fitted estimator
        A classifier with ``classes_`` and one label a record, or a regressor. It is
        used as it is. One that is not of privfeat gets one record at a time: see Notes.
    X : array-like or LazyFeatures of shape (n_samples, n_features)
        Test records. Sensitive.
    y : array-like of shape (n_samples,)
        Their labels, or their targets. Sensitive.
    groups : array-like of shape (n_samples,), optional
        The user of each record: all records of a user are then protected together.
    max_group_size : int, optional
        With ``groups``: at most so many records of a user count, drawn at random. The
        noise is so many times as large: take 1 or 2, whatever the fit had.
    epsilon, delta : float
        Budget for the test records. Default: epsilon 1, since nothing may be without
        noise unasked, and delta 1e-5, as in the papers.
    adjacency : {"add_remove", "replace_one"}, default="add_remove"
        Default: add/remove, since it hides the number of records as well.
    target_bounds : (float, float), optional
        For a regressor, which needs them: lowest and highest target, known to everyone.
        Targets and predictions outside are cut to them. Default: none, which a
        regressor refuses, since those of the records would leak.
    scores : bool, default=True
        Whether to release a histogram of probabilities as well, for ROC and
        calibration, if ``model`` has ``predict_proba``. Default: True, since ROC and
        calibration need it; without, the whole budget is for accuracy, recall and
        confusion.
    confidence : float, default=0.95
        Of each interval by itself, in (0, 1). Default: 0.95, as is usual.
    ledger : PrivacyLedger, optional
        Of the test records; charged before noise is drawn.
    random_state : None or int
        Default: None, since noise protects only while nobody can guess it. An integer
        makes it reproducible: **not private** against who guesses it.

    Returns
    -------
    evaluation : ClassifierEvaluation or RegressorEvaluation
        Its ``privacy`` is what it cost the test records.

    Raises
    ------
    TypeError, ValueError
        If a parameter is out of range, a label is not among the classes, a target or a
        prediction is not finite. Nothing has been released.
    BudgetExceededError, LedgerError
        If ``ledger`` has too little left, or cannot be used. Nothing was charged.

    Notes
    -----
    **Guarantee.** Of a classifier, one release of ``outcomes`` and, with scores, one of
    ``scores``, which gets three quarters of the budget in zCDP. Both are numbers of
    records at three levels, of which each record is in one cell; their sensitivity is
    ``sqrt(3)``, and ``sqrt(6)`` under replace-one
    (`privfeat.core.bounds.replacement.level_counts`). Of a regressor, one release of
    ``errors``, eight sums of numbers in a box (`replacement.box_sums`). With ``groups``
    the noise is ``max_group_size`` times as large. All else follows from the releases.

    What is computed of a record must depend on that record alone: estimators of
    privfeat predict so, on one core, and all others are called with one row at a time.
    These get numbers as float64, or one text for each record, and nothing else: one
    word makes texts of all numbers, truth values or dates of its column.

    A classifier with ``predict_proba`` is taken to predict the most probable class.
    ROC and its area are of two classes; of more, evaluate one class against the rest by
    `evaluation_of_predictions`.

    **Intervals** are of the population that the test records are drawn from, by itself
    each: noise and sampling together. Records are taken to be independent; with
    ``groups`` the variance of sampling is multiplied by ``max_group_size``. Those of
    the ROC area and the ECE hold as well what the 64 cells of the histogram leave open
    (`privfeat.metrics.curves`), which no number of records takes away.

    **Public.** ``model``, its classes, all parameters but ``random_state``; that labels
    are among the classes and all values finite; and of a ``model`` that is not of
    privfeat, that a prediction does not depend on the calls before it.

    **Not protected.** Timing; a seed that somebody guesses; the low bits of the noise;
    records that the model was trained on without privacy.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from privfeat import DPLeastSquares
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = DPLeastSquares(epsilon=1, classes=range(10)).fit(X[::2], y[::2])
    >>> found = private_evaluation(clf, X[1::2], y[1::2], epsilon=1)
    >>> found.accuracy.low <= found.accuracy.value <= found.accuracy.high
    True
    >>> found.privacy.epsilon
    1.0
    """
    check_alone("private_evaluation")
    check_is_fitted(model)
    if getattr(model, "multilabel_", False):
        raise ValueError("model must predict one label a record, got several.")
    regressor = is_regressor(model)
    has_scores = check_bool("scores", scores) and hasattr(model, "predict_proba")
    method = "predict_proba" if has_scores and not regressor else "predict"
    rows = rows_of(model, X)
    users = _users(groups, max_group_size, len(rows), X, y, ledger=ledger)
    budget = PrivateEvaluation(epsilon, delta, adjacency, ledger, random_state, users)
    return measured(
        lambda shorten: record_by_record(model, method, rows, shorten),
        y,
        None if regressor else np.asarray(model.classes_),
        has_scores=has_scores,
        facts=["the model", *assumed_of(model)],
        target_bounds=target_bounds,
        confidence=confidence,
        budget=budget,
        n_records=len(rows),
    )


def evaluation_of_predictions(
    predictions: ArrayLike,
    y: ArrayLike,
    *,
    classes: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    max_group_size: int | None = None,
    epsilon: float | None = None,
    delta: float = 1e-5,
    adjacency: Adjacency = "add_remove",
    target_bounds: tuple[float, float] | None = None,
    scores: bool = True,
    confidence: float = 0.95,
    ledger: PrivacyLedger | None = None,
    random_state: Any = None,
) -> Evaluation:
    """Measure predictions of private test records, as `private_evaluation` does.

    The caller has to make sure that the prediction of a record depends on that record
    and the model alone: not on the other rows of a call, or on a scaler that was
    fitted to the test set. The statement assumes it.

    Parameters
    ----------
    predictions : array-like of shape (n_samples, n_classes), or (n_samples,)
        Probabilities, in the order of ``classes``, or a predicted class of each record;
        of a regressor, numbers. Sensitive.
    y : array-like of shape (n_samples,)
        Labels or targets. Sensitive.
    classes : array-like of shape (n_classes,), optional
        All labels that there can be, ascending. Default: None, as for a regressor.
    groups : array-like of shape (n_samples,), optional
        The user of each record. As of `private_evaluation`, like all that follow.
    max_group_size : int, optional
    epsilon, delta : float
    adjacency : {"add_remove", "replace_one"}, default="add_remove"
    target_bounds : (float, float), optional
    scores : bool, default=True
    confidence : float, default=0.95
    ledger : PrivacyLedger, optional
    random_state : None or int

    Returns
    -------
    evaluation : ClassifierEvaluation or RegressorEvaluation

    Raises
    ------
    TypeError, ValueError, BudgetExceededError, LedgerError
        As `private_evaluation`.

    Examples
    --------
    >>> p = [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]] * 500
    >>> found = evaluation_of_predictions(p, [0, 1, 1] * 500, classes=[0, 1])
    >>> found.roc_auc.low > 0.5
    True
    """
    check_alone("evaluation_of_predictions")
    if classes is not None:
        check_classes("predictions", predictions, np.asarray(classes).tolist())
    given = array_of(predictions)
    n_records = len(given) if given.ndim else 0
    users = _users(groups, max_group_size, n_records, predictions, y, ledger=ledger)
    budget = PrivateEvaluation(epsilon, delta, adjacency, ledger, random_state, users)
    return measured(
        lambda shorten: shorten(given),
        y,
        None if classes is None else np.asarray(classes),
        has_scores=check_bool("scores", scores) and given.ndim == 2,
        facts=[_APART],
        target_bounds=target_bounds,
        confidence=confidence,
        budget=budget,
        n_records=n_records,
    )


def _users(
    groups: Any, most: int | None, n_records: int, *given: Any, ledger: Any
) -> Any:
    if most is not None:
        check_int("max_group_size", most, low=1)
    return check_users(groups, most, n_records, *given, ledger=ledger)
