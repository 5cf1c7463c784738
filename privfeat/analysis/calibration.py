"""How well probabilities agree with outcomes, for any classifier.

The numbers are exact: of records that are not public, they are releases that no
statement covers.

References
----------
.. [1] Naeini, Cooper & Hauskrecht. Obtaining Well Calibrated Probabilities Using
   Bayesian Binning. AAAI 2015.
.. [2] Bu, Wang & Long. On the Convergence and Calibration of Deep Learning with
   Differential Privacy. TMLR 2023. Section 5.2.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privfeat._checks import check_int
from privfeat._messages import array_of, without_data
from privfeat.estimation.labels import places_of

_MAX_BINS = 10**4


@dataclass(frozen=True)
class CalibrationReport:
    """Accuracy and calibration of a set of predictions.

    Attributes
    ----------
    accuracy : float
    nll : float
        Mean negative log-likelihood, in nats.
    brier : float
        Mean squared distance of the probabilities to the label indicator, in [0, 2].
    ece, mce : float
        Mean (weighted by records) and largest distance between confidence and accuracy
        over the bins, in [0, 1].
    bin_edges : array of shape (n_bins + 1,)
        Equal parts of [0, 1].
    bin_counts : int array of shape (n_bins,)
    bin_confidence, bin_accuracy : array of shape (n_bins,)
        Means over the records of a bin; NaN in an empty one.
    confidence : array of shape (n_samples,)
        Largest probability of each record.
    true_class : array of shape (n_samples,)
        Probability of each record's own class.
    """

    accuracy: float
    nll: float
    brier: float
    ece: float
    mce: float
    bin_edges: NDArray[np.float64]
    bin_counts: NDArray[np.int64]
    bin_confidence: NDArray[np.float64]
    bin_accuracy: NDArray[np.float64]
    confidence: NDArray[np.float64]
    true_class: NDArray[np.float64]

    def __str__(self) -> str:
        """Return the numbers on one line."""
        return (
            f"accuracy {self.accuracy:.4f}, NLL {self.nll:.4f}, "
            f"Brier {self.brier:.4f}, ECE {self.ece:.4f}, MCE {self.mce:.4f}"
        )


def calibration_report(
    y_true: ArrayLike,
    probabilities: ArrayLike,
    *,
    classes: ArrayLike | None = None,
    n_bins: int = 15,
) -> CalibrationReport:
    """Return the calibration of predicted probabilities.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
    probabilities : array-like of shape (n_samples, n_classes)
        Rows sum to 1. As in scikit-learn, columns are classes in ascending order.
    classes : array-like of shape (n_classes,), optional
        The class of each column, ascending. Default: ``0 .. n_classes - 1``.
    n_bins : int, default=15
        Bins of the largest probability, up to 10,000.

    Raises
    ------
    TypeError, ValueError
        If something is no number, a shape does not fit, a row is no distribution, or a
        label is not among the classes.

    Notes
    -----
    A bin holds confidences in ``(a, b]``. A probability of exactly 0 for the true class
    counts as the smallest number of its type in the NLL, as in scikit-learn.

    Examples
    --------
    >>> report = calibration_report([0, 1, 1], [[0.8, 0.2], [0.4, 0.6], [0.6, 0.4]])
    >>> print(report)
    accuracy 0.6667, NLL 0.5501, Brier 0.3733, ECE 0.1333, MCE 0.2000
    """
    from sklearn.metrics import brier_score_loss, log_loss

    check_int("n_bins", n_bins, low=1, high=_MAX_BINS)
    given = array_of(probabilities)
    if given.dtype.kind not in "fiub":
        raise TypeError("probabilities must be real numbers, got another type.")
    given = given.astype(np.float64)
    if given.ndim != 2 or given.shape[1] < 2 or not len(given):
        raise ValueError(
            "probabilities must have shape (n_samples, n_classes >= 2), got another."
        )
    if not (np.all(given >= 0.0) and np.all(np.abs(given.sum(axis=1) - 1.0) < 1e-5)):
        raise ValueError("probabilities must be >= 0 with rows that sum to 1.")
    columns = np.arange(given.shape[1]) if classes is None else np.asarray(classes)
    labels = array_of(y_true)
    if columns.shape != given.shape[1:] or labels.shape != given.shape[:1]:
        raise ValueError(
            "y_true and classes must hold one entry for each row and each column of "
            "probabilities, got another number."
        )
    codes, found = without_data(places_of, labels, columns)
    if not found:
        raise ValueError("y_true must hold labels among classes, ascending.")

    confidence = given.max(axis=1)
    correct = given.argmax(axis=1) == codes
    edges = np.linspace(0.0, 1.0, n_bins + 1)
    bins = np.searchsorted(edges[1:-1], confidence)
    counts = np.bincount(bins, minlength=n_bins)
    with np.errstate(invalid="ignore"):
        mean_confidence = np.bincount(bins, confidence, n_bins) / counts
        mean_accuracy = np.bincount(bins, correct, n_bins) / counts
    gaps = np.abs(mean_confidence - mean_accuracy)[counts > 0]
    indices = np.arange(len(columns))
    normalized = given / given.sum(axis=1, keepdims=True)
    return CalibrationReport(
        accuracy=float(correct.mean()),
        nll=float(log_loss(codes, normalized, labels=indices)),
        brier=float(
            brier_score_loss(codes, normalized, labels=indices, scale_by_half=False)
        ),
        ece=float(gaps @ counts[counts > 0] / len(given)),
        mce=float(gaps.max()),
        bin_edges=edges,
        bin_counts=counts,
        bin_confidence=mean_confidence,
        bin_accuracy=mean_accuracy,
        confidence=confidence,
        true_class=given[np.arange(len(given)), codes],
    )


def report_of(
    estimator: Any, X: Any, y: ArrayLike, *, n_bins: int = 15
) -> CalibrationReport:
    """Return the calibration of a fitted classifier on ``(X, y)``."""
    return calibration_report(
        y, estimator.predict_proba(X), classes=estimator.classes_, n_bins=n_bins
    )
