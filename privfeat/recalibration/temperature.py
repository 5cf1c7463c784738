"""Temperature scaling of a fitted classifier, private or on public records."""

import math
from dataclasses import field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax
from sklearn.base import MetaEstimatorMixin
from sklearn.utils.validation import check_is_fitted

from privfeat._checks import check_bool, check_int
from privfeat._messages import array_of, without_data, without_warnings
from privfeat._types import Adjacency
from privfeat.core.accounting.calibration import plan_releases
from privfeat.core.accounting.plan import Query, ReleasePlan
from privfeat.core.noise.gaussian_mechanism import GaussianMechanism
from privfeat.core.noise.keys import KeyStream
from privfeat.core.private_fit import private_fit
from privfeat.core.sums.confidence import confidence_gap, exact_confidence_gap
from privfeat.core.sums.processes import check_alone
from privfeat.core.sums.records import check_number
from privfeat.data import LazyFeatures
from privfeat.estimation.bases import PrivateEstimator, ScoredClassifier
from privfeat.estimation.fitting import fitted_apart
from privfeat.estimation.inputs import check_given, check_labels, seed_of
from privfeat.metrics.predictions import (
    assumed_of,
    codes_of,
    record_by_record,
    rows_of,
)

# Base-2 logarithms of the temperatures to choose from.
LOG_RANGE = (-4.0, 4.0)
_SMALLEST = 1e-12


class TemperatureScaling(ScoredClassifier, MetaEstimatorMixin, PrivateEstimator):
    """Make a fitted classifier as confident as it is accurate.

    Probabilities ``p`` become ``p**(1/T)``, normalized: for a softmax, its scores are
    divided by the temperature ``T`` [1]_. Predicted classes do not change.

    Parameters
    ----------
    estimator : fitted classifier
        With ``predict_proba`` and ``classes_``. It is used as it is, never fitted; in a
        scikit-learn ``FrozenEstimator`` it stays fitted under ``clone``. One that is
        not of privfeat gets private records one at a time: see Notes.
    public : bool, default=False
        Whether the records of ``fit`` are **public**: then ``T`` minimizes their
        negative log-likelihood, at no cost and with no protection. Default: False,
        since only you can know.
    epsilon, delta : float
        Budget for the records of ``fit``, if they are private. Default: epsilon 1,
        since no fit may be without noise unasked, and delta 1e-5, as in the papers.
    adjacency : {"add_remove", "replace_one"}, default="add_remove"
        Default: add/remove, since it hides the number of records as well.
    n_iter : int, default=6
        Halvings of the range ``[1/16, 16]`` of temperatures; in [1, 20]. Each is a
        release. Default: 6, as the temperature is then known to 5 %, and of more
        halvings each has more noise.
    ledger : PrivacyLedger, optional
        Charged before noise is drawn; of the records of ``fit``, if they are private.
    random_state : None or int
        Default: None, since noise protects only while nobody can guess it. An integer
        makes it reproducible: **not private** against who guesses it.

    Attributes
    ----------
    temperature_ : float
    classes_ : array of shape (n_classes,)
    privacy_ : PrivacyStatement
        Cost of ``fit`` alone, for its records; only if they are private. For records
        that the estimator was trained on as well, compose both statements.

    Notes
    -----
    **Guarantee.** ``n_iter`` adaptive releases of the query ``confidence_gap``: the
    sum over records of the confidence at a temperature, minus 1 where the prediction is
    correct; sensitivity 1, and under replace-one 2 minus one over the number of classes
    (`privfeat.core.sums.confidence.confidence_gap`). What is computed of a record must
    depend on that record alone: estimators of privfeat predict so, on one core, and all
    others are called with one row at a time.

    Confidence falls as ``T`` grows and correctness stays, so the sign of the sum says
    on which side of ``T`` mean confidence equals accuracy, the condition of [2]_. A
    wrong sign costs little: it happens where the two are nearly equal.

    **Public.** ``estimator``, ``classes_``, that all labels are among them and all
    values finite, all parameters but ``random_state``; and of an ``estimator`` that is
    not of privfeat, that a prediction does not depend on the calls before it.

    **Not protected.** Timing; a fit whose seed somebody guesses; the low bits of the
    noise; records that the estimator was trained on without privacy.

    References
    ----------
    .. [1] Guo et al. On Calibration of Modern Neural Networks. ICML 2017. Section 4.2.
    .. [2] Clarté et al. Expectation Consistency for Calibration of Neural Networks.
       UAI 2023.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from privfeat import DPLeastSquares
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = DPLeastSquares(epsilon=1, classes=range(10)).fit(X[::2], y[::2])
    >>> scaled = TemperatureScaling(clf, epsilon=1).fit(X[1::2], y[1::2])
    >>> scaled.privacy_.epsilon
    1.0
    """

    estimator: Any = field(kw_only=False)
    public: bool = False
    adjacency: Adjacency = "add_remove"
    n_iter: int = 6

    @fitted_apart
    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Choose the temperature on ``(X, y)``.

        Parameters
        ----------
        X : array-like or LazyFeatures of shape (n_samples, n_features)
            Records for ``estimator.predict_proba``, which gets dense arrays: of 1,024
            rows, the last filled up with zeros, if it is of privfeat or the records are
            public, and of one row otherwise. Sensitive unless public.
        y : array-like of shape (n_samples,)
            Their labels. Sensitive unless public.

        Raises
        ------
        TypeError, ValueError
            If a parameter is out of range, the records are both public and given a
            budget, a label is not among the classes, or columns have other names than
            those that ``estimator`` was fitted to. Nothing has been released.
        BudgetExceededError, LedgerError
            If ``ledger`` has too little left, or cannot be used. Nothing was charged.
        """
        check_alone(type(self).__name__)
        check_is_fitted(self.estimator)
        public = check_bool("public", self.public)
        for name in ("epsilon", "ledger"):
            if public and (got := getattr(self, name)) is not None:
                raise ValueError(
                    f"{name} must be None for public records, got {got!r}."
                )
        if public and isinstance(X, LazyFeatures) and X.chosen_by:
            raise ValueError(
                "X must not be chosen by private records where public=True, got rows "
                "from which their near-duplicates were taken. Pass the whole split."
            )
        keys = KeyStream(seed_of(self.random_state))
        plan = None if public else self._plan()
        features, codes = labelled_rows(self.estimator, X, y)
        if plan is None:
            log_p = self._log_probabilities(features)
            self.__dict__.pop("privacy_", None)
            self.temperature_ = _likeliest_temperature(log_p, codes)
        else:
            check_given(X, y, None, self.ledger)
            check_number(len(features))
            made = self.estimator, "predict_proba", features
            log_p = record_by_record(*made, self._logarithms)
            known = [
                "the classifier, its classes, and all constructor parameters but "
                "random_state",
                "that all values are finite and all labels among the classes",
            ]
            known += ["the number of records"] * (self.adjacency == "replace_one")
            known += assumed_of(self.estimator)
            fit = private_fit(
                self,
                plan,
                keys,
                public=tuple(known),
                n_units=len(features),
                forget=("temperature_",),
            )
            with fit.drawing() as mechanism:
                self.temperature_ = self._noisy_bisection(log_p, codes, mechanism)
        self.classes_ = np.asarray(self.estimator.classes_)
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return scaled probabilities, of shape (n_samples, n_classes).

        A model that is not of privfeat gets all rows at once, and may round each by how
        many there are: a private evaluation of them is `private_evaluation`'s.
        """
        check_is_fitted(self, "temperature_")
        return np.asarray(
            softmax(self._log_probabilities(X) / self.temperature_, axis=1)
        )

    def predict(self, X: Any) -> NDArray[Any]:
        """Return what the estimator predicts; the temperature does not change it."""
        check_is_fitted(self, "temperature_")
        return np.asarray(self.estimator.predict(X))

    def _plan(self) -> ReleasePlan:
        """Return the plan: the gap of confidence and accuracy, once in each step."""
        n_iter = check_int("n_iter", self.n_iter, low=1, high=20)
        gap = confidence_gap(self.adjacency, len(self.estimator.classes_))
        return plan_releases(
            [Query("confidence_gap", gap, count=n_iter)],
            epsilon=self.epsilon,
            delta=self.delta,
            adjacency=self.adjacency,
        )

    def _log_probabilities(self, X: Any) -> NDArray[np.float64]:
        with without_warnings(UserWarning):  # the names of columns were compared
            return self._logarithms(without_data(self.estimator.predict_proba, X))

    def _logarithms(self, predicted: Any) -> NDArray[np.float64]:
        """Return the logarithms of probabilities, row by row."""
        given = probabilities_of(self.estimator, predicted)
        return np.asarray(np.log(np.maximum(given, _SMALLEST)))

    def _noisy_bisection(
        self,
        log_p: NDArray[np.float64],
        codes: NDArray[np.intp],
        mechanism: GaussianMechanism,
    ) -> float:
        """Return the temperature at which the released gap changes its sign."""
        correct = log_p.argmax(axis=1) == codes
        n_classes = len(self.estimator.classes_)
        low, high = LOG_RANGE
        for _ in range(int(self.n_iter)):
            middle = 0.5 * (low + high)
            confidence = softmax(log_p / 2.0**middle, axis=1).max(axis=1)
            gap = mechanism.release(
                "confidence_gap",
                exact_confidence_gap(confidence, correct, codes >= 0, n_classes),
            )
            low, high = (middle, high) if gap.value > 0.0 else (low, middle)
        return float(2.0 ** (0.5 * (low + high)))


def probabilities_of(estimator: Any, predicted: Any) -> NDArray[np.float64]:
    """Return what a classifier predicts, (n_samples, n_classes), if it is that."""
    given = array_of(predicted, np.float64)
    shape = (len(estimator.classes_),)
    if given.shape[1:] != shape or not np.all(np.isfinite(given)):
        raise ValueError(
            "estimator must predict finite probabilities, one for each class."
        )
    return given


def labelled_rows(estimator: Any, X: Any, y: Any) -> tuple[Any, NDArray[np.intp]]:
    """Return the rows of a classifier, and the place of each label in its classes."""
    check_labels(y, X)
    rows = rows_of(estimator, X)
    codes = codes_of("y", array_of(y), np.asarray(estimator.classes_))
    if len(codes) != len(rows) or not len(codes):
        raise ValueError("X and y must have the same number of rows, at least 1.")
    return rows, codes


def _likeliest_temperature(
    log_p: NDArray[np.float64], codes: NDArray[np.intp]
) -> float:
    """Return the temperature of the smallest log loss, which has no noise."""
    rows = np.flatnonzero(codes >= 0)

    def loss(log_temperature: float) -> float:
        scaled = log_softmax(log_p / math.exp(log_temperature), axis=1)
        return -float(scaled[rows, codes[rows]].mean())

    bounds = [math.log(2.0) * end for end in LOG_RANGE]
    return math.exp(float(minimize_scalar(loss, bounds=bounds, method="bounded").x))
