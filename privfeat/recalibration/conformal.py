"""Conformal prediction sets of a fitted classifier, calibrated privately."""

import math
from dataclasses import field
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri
from sklearn.base import MetaEstimatorMixin
from sklearn.utils.validation import check_is_fitted

from privfeat._checks import check_between
from privfeat._messages import without_data
from privfeat._types import Adjacency
from privfeat._warnings import warn, warnings_shown
from privfeat.core.accounting.plan import Query
from privfeat.core.bounds import replacement
from privfeat.core.noise.release import Release
from privfeat.core.sums.confidence import exact_level_counts
from privfeat.core.sums.processes import check_alone
from privfeat.core.sums.totals import ExactSum
from privfeat.estimation.bases import PrivateEstimator, ScoredClassifier
from privfeat.estimation.fitting import fitted_apart
from privfeat.estimation.inputs import check_users
from privfeat.metrics.budget import PrivateEvaluation
from privfeat.metrics.predictions import assumed_of, record_by_record
from privfeat.metrics.tables import UnitGrid
from privfeat.recalibration.temperature import labelled_rows, probabilities_of
from privfeat.solvers.levels import agreed

GRID = UnitGrid((4, 16, 64, 256))


class ConformalClassifier(ScoredClassifier, MetaEstimatorMixin, PrivateEstimator):
    """Predict sets of classes that hold the true one as often as is asked.

    A set holds each class whose probability is at least one minus a threshold, which is
    chosen on private records that the classifier has not seen (split conformal
    prediction, [1]_, by the score of [2]_).

    Parameters
    ----------
    estimator : fitted classifier
        With ``predict_proba`` and ``classes_``, and one label a record. It is used as
        it is, never fitted. One that is not of privfeat gets private records one at a
        time.
    alpha : float, default=0.1
        Sets miss the true class with at most this probability; in (0, 1). Default: 0.1,
        as is usual.
    failure_prob : float, default=0.01
        Probability that the noise makes them miss it more often; in (0, 1). Default:
        0.01, since it then adds little to ``alpha``; others were not measured.
    epsilon, delta : float
        Budget for the records of ``fit``. Default: epsilon 1, since no fit may be
        without noise unasked, and delta 1e-5, as in the papers.
    adjacency : {"add_remove", "replace_one"}, default="add_remove"
        Default: add/remove, since it hides the number of records as well.
    ledger : PrivacyLedger, optional
        Charged before noise is drawn; of the records of ``fit``.
    random_state : None or int
        Default: None, since noise protects only while nobody can guess it. An integer
        makes it reproducible: **not private** against who guesses it.

    Attributes
    ----------
    threshold_ : float
        One minus the least probability of a class in a set; infinite if there were too
        few records for the noise. From 1 on every set holds every class: ``fit`` warns.
    classes_ : array of shape (n_classes,)
    privacy_ : PrivacyStatement
        Cost of ``fit`` alone, for its records.

    Notes
    -----
    **Coverage.** If the records of ``fit`` and a new one are exchangeable and
    independent of the classifier, then, with probability at least ``1 - failure_prob``
    over the noise, the set of the new record holds its class with probability at least
    ``1 - alpha``, over all these records.

    Proof. Let ``s = 1 - p`` for the probability ``p`` of a record's own class, ``A(q)``
    the number of the ``n`` records of ``fit`` with ``s <= q``, and ``D(q) = A(q) - (1 -
    alpha) n``. If ``D(q) >= 1 - alpha``, then ``A(q) >= (1 - alpha)(n + 1)``: ``q`` is
    at least the ``ceil((1 - alpha)(n + 1))``-th smallest score, and the score of the
    new record is at most that one with probability at least ``1 - alpha`` ([1]_, Lemma
    1). From the release follows for each of the ``m`` edges ``q`` of a public grid an
    estimate of ``D(q)``, linear in the counts, whose error is normal with a known
    standard deviation ``t(q)``. With probability at least ``1 - failure_prob`` none is
    more than ``z t(q)`` too large, for ``z`` of the normal tail ``failure_prob / m``:
    the union bound. Noise does not depend on the records. So for such noise the
    smallest edge whose estimate is at least ``1 - alpha + z t(q)`` has ``D(q) >= 1 -
    alpha``, whatever the records are. Where there is none, sets hold every class. Sets
    compare cells of the grid, as the counts do.

    **Guarantee.** One release of ``conformity``: numbers of records with ``s`` in each
    cell of a grid, at four levels; sensitivity 2, and ``sqrt(8)`` under replace-one
    (`privfeat.core.bounds.replacement.level_counts`). With ``groups`` one record of
    each user counts, at random: then no user moves more, and records that count are
    exchangeable with one of a new user, chosen at random.

    **Public.** ``estimator``, ``classes_``, that all labels are among them and all
    values finite, all parameters but ``random_state``; and of an ``estimator`` that is
    not of privfeat, that a prediction does not depend on the calls before it.

    **Not protected.** As `TemperatureScaling` has it.

    References
    ----------
    .. [1] Lei, G'Sell, Rinaldo, Tibshirani & Wasserman. Distribution-Free Predictive
       Inference for Regression. JASA 2018. Section 2.2.
    .. [2] Sadinle, Lei & Wasserman. Least Ambiguous Set-Valued Classifiers with Bounded
       Error Levels. JASA 2019.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from privfeat import DPLeastSquares
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = DPLeastSquares(epsilon=4, classes=range(10)).fit(X[:900], y[:900])
    >>> sets = ConformalClassifier(clf, epsilon=2).fit(X[900:], y[900:])
    >>> sets.predict_set(X[:3]).shape
    (3, 10)
    >>> sets.privacy_.epsilon
    2.0
    """

    estimator: Any = field(kw_only=False)
    alpha: float = 0.1
    failure_prob: float = 0.01
    adjacency: Adjacency = "add_remove"

    @fitted_apart
    def fit(self, X: Any, y: ArrayLike, groups: ArrayLike | None = None) -> Self:
        """Choose the threshold on ``(X, y)``.

        Parameters
        ----------
        X : array-like or LazyFeatures of shape (n_samples, n_features)
            Records that ``estimator`` was not fitted on. Sensitive.
        y : array-like of shape (n_samples,)
            Their labels. Sensitive.
        groups : array-like of shape (n_samples,), optional
            The user of each record: one record of each user counts.

        Raises
        ------
        TypeError, ValueError
            If a parameter is out of range, or a label is not among the classes.
            Nothing has been released.
        BudgetExceededError, LedgerError
            If ``ledger`` has too little left, or cannot be used. Nothing was charged.
        """
        check_alone(type(self).__name__)
        check_is_fitted(self.estimator)
        check_between("alpha", self.alpha, 0.0, 1.0)
        check_between("failure_prob", self.failure_prob, 0.0, 1.0)
        if getattr(self.estimator, "multilabel_", False):
            raise ValueError("estimator must predict one label a record, got several.")
        rows, codes = labelled_rows(self.estimator, X, y)
        most = None if groups is None else 1
        users = check_users(groups, most, len(rows), X, y, ledger=self.ledger)
        budget = PrivateEvaluation(
            self.epsilon,
            self.delta,
            self.adjacency,
            self.ledger,
            self.random_state,
            users,
        )
        bound = replacement.level_counts(len(GRID.sizes), self.adjacency)
        plan = budget.plan([Query("conformity", bound)])
        checked = partial(probabilities_of, self.estimator)
        p = record_by_record(self.estimator, "predict_proba", rows, checked)
        cells = GRID.cells(1.0 - p[np.arange(len(codes)), codes])

        def counts(counted: NDArray[np.bool_]) -> ExactSum:
            return exact_level_counts(GRID.at_all_levels(cells), counted, GRID.sizes)

        facts = [
            "the classifier, and all constructor parameters but random_state",
            "the classes, and that all labels are among them",
        ]
        facts += assumed_of(self.estimator)
        released = budget.release(
            plan,
            {"conformity": counts},
            n_records=len(codes),
            public=facts,
            estimator=self,
            forget=("threshold_",),
        )
        self.threshold_ = self._threshold(released["conformity"])
        self.classes_ = np.asarray(self.estimator.classes_)
        if self.threshold_ >= GRID.edges[-1]:
            with warnings_shown():  # the budget is spent
                warn(
                    "sets must leave out classes to say anything, but these hold all "
                    f"of them (threshold_ = {self.threshold_:g}): there are too few "
                    "records for the noise, or the classifier is wrong too often for "
                    "this alpha. Take more records, a larger epsilon, or a larger "
                    "alpha.",
                    UserWarning,
                )
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Return what the estimator predicts: one class for each record."""
        check_is_fitted(self, "threshold_")
        return np.asarray(self.estimator.predict(X))

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return what the estimator predicts, of shape (n_samples, n_classes)."""
        check_is_fitted(self, "threshold_")
        predicted = without_data(self.estimator.predict_proba, X)
        return probabilities_of(self.estimator, predicted)

    def predict_set(self, X: Any) -> NDArray[np.bool_]:
        """Return which classes are in the set of each record, (n_samples, n_classes).

        A set may be empty: then the record is unlike all of any class.
        """
        cells = GRID.cells(1.0 - self.predict_proba(X))
        # a cell is inside if its upper edge is
        return np.asarray(GRID.edges[1:][cells] <= self.threshold_)

    def _threshold(self, release: Release) -> float:
        """Return the smallest edge that is surely large enough: see Notes."""
        ends = np.cumsum(GRID.sizes)[:-1]
        levels, _ = agreed(np.split(release.value, ends), [1.0] * len(GRID.sizes))
        n_edges = GRID.sizes[-1]
        weights = np.tri(n_edges) - (1.0 - self.alpha)
        found = weights @ levels[-1]
        variance = np.sum((weights @ GRID.noise_covariance()) * weights, axis=1)
        sure = float(-ndtri(float(self.failure_prob) / n_edges))
        slack = sure * release.noise_stddev * np.sqrt(variance)
        # the last term covers rounding
        large = found >= (1.0 - self.alpha) + slack + 1e-6
        return float(GRID.edges[1:][np.argmax(large)]) if large.any() else math.inf
