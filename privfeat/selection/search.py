"""DPRandomizedSearch: the best of a random number of private fits."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from privfeat._checks import check_order, check_real
from privfeat._messages import check_columns, without_data
from privfeat.core.accounting.calibration import DEFAULT_EPSILON
from privfeat.core.accounting.run_count import RunCount
from privfeat.core.accounting.selection import check_run_delta, selection_mu
from privfeat.core.noise.draws import bernoulli
from privfeat.core.noise.keys import KeyStream
from privfeat.core.private_fit import private_selection
from privfeat.core.statement.selection import Selection
from privfeat.core.sums.processes import check_alone
from privfeat.data import LazyFeatures
from privfeat.data.sharing import check_apart
from privfeat.estimation.bases import PrivateEstimator, ScoredClassifier
from privfeat.estimation.fitting import fitted_apart
from privfeat.estimation.inputs import (
    check_given,
    floats_of,
    known_features,
    seed_of,
)
from privfeat.estimation.labels import encode_labels
from privfeat.selection.inputs import (
    check_candidates,
    check_estimator,
    check_public,
    check_trained_on,
    classes_name,
    fewest_records,
    in_memory,
    read_records,
    reads_by_itself,
    statement_of,
)
from privfeat.selection.runs import HoldoutScore, PublicScore, Runner


class DPRandomizedSearch(MetaEstimatorMixin, ScoredClassifier, PrivateEstimator):
    """Private classifier with hyperparameters chosen on the private records.

    A random number of times a candidate is drawn, fitted with differential privacy and
    scored; the best of these runs is released and all others are forgotten. The stated
    epsilon is that of the **whole search**. It pays when no default is good and scores
    differ clearly: each fit has 1.3 to 2 times the noise of a single one.

    Parameters
    ----------
    estimator : DPLeastSquares, DPNewton, DPFC, DPAdamLinear or DPNearestMean
        Its own budget and ``random_state`` are replaced; its ``adjacency`` and
        ``classes`` hold for the search. Records must not be sampled. Or a
        `PrivatePipeline` that ends in one: a run is then a fit of all its steps.
    param_distributions : mapping of name to values, or list of such mappings
        The candidates, public: as for scikit-learn's ``RandomizedSearchCV``; those of a
        step are called ``STEP__NAME``. A budget is not searched over.
    epsilon : float, optional
        Total budget of the search, > 0; ``inf`` turns privacy off. Default: 1, since no
        search may be without noise unasked.
    delta : float, default=1e-5
        In [1e-10 mean_runs, 1). Default: 1e-5, as in the papers.
    mean_runs : float, default=10
        Mean number of runs, in [1.01, 1000]. Default: 10, as a convention; others were
        not measured.
    eta : float, default=1
        Shape of their distribution (truncated negative binomial), in [-0.5, 10].
        Default: 1, geometric, since 0, logarithmic, which costs less, is more often a
        single run (27 % instead of 10 % at a mean of 10).
    validation_fraction : float, default=0.1
        Probability of each record to be held out for the score, in [1e-3, 0.9]: 12
        records are needed at 0.1, 40 at 0.5. Default: 0.1, as a fit needs records more
        than a score; not measured. Not used with public validation data.
    scoring : str or callable, optional
        A scikit-learn scorer for public validation data. A function of your own is
        given the model of every run: it must keep, print and log nothing. Default:
        accuracy, as scikit-learn's of classifiers.
    ledger : PrivacyLedger, optional
        Charged for the whole search before its first run; ``estimator`` has none.
    random_state : int, RandomState or None, default=None
        Default: None, fresh operating-system entropy at every ``fit``, as of `DPFC`. A
        seed is for tests and published experiments: it is marked in ``privacy_`` and
        warns.

    Attributes
    ----------
    best_estimator_ : estimator
        The released fit. Its ``privacy_`` and ``ledger`` are those of the search.
    best_params_ : dict
        Its candidate.
    best_score_ : float
        Its score. Without public validation data: noisy number of correct minus
        incorrect held-out records (their number is secret under add/remove).
    classes_ : array of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features,)
        Only for input with string column names.
    privacy_ : PrivacyStatement
        The cost of everything that ``fit`` did; its ``selection`` describes the runs.

    Notes
    -----
    **Guarantee.** A record is held out or trained on by its own coin, tossed once and
    in secret. The fit of a run is ``mu``-GDP for the trained records; the sum of 1 for
    correct and -1 for incorrect held-out records gets Gaussian noise such that it is
    ``mu``-GDP for them, given the fit. Hence a run is ``mu``-GDP, and ``mu`` is chosen
    such that `selection_epsilon` of the search, proved there, is at most ``epsilon``.
    Candidates with more releases get more noise, so that all cost the same.

    **Public.** The candidates, all constructor parameters, the validation data if given
    to ``fit``, and what is public to ``estimator``. A refusal of ``fit`` depends on the
    data; an error inside a run ends the search and counts as its outcome.

    **Not protected.** The time that ``fit`` takes, which shows the number of runs: keep
    it secret. Otherwise as ``estimator``.

    **Source.** [1]_ Algorithm 1; accounting as in `selection_epsilon`.

    References
    ----------
    .. [1] Papernot & Steinke. Hyperparameter Tuning with Renyi Differential Privacy.
       ICLR 2022.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from privfeat import DPLeastSquares, DPRandomizedSearch
    >>> X, y = load_digits(return_X_y=True)
    >>> search = DPRandomizedSearch(
    ...     DPLeastSquares(classes=range(10)), {"ridge": [10, 100]}, epsilon=8
    ... )
    >>> search.fit(X, y).privacy_.epsilon
    8.0
    """

    estimator: Any = field(kw_only=False)
    param_distributions: Mapping[str, Any] | Sequence[Mapping[str, Any]] = field(
        kw_only=False
    )
    mean_runs: float = 10.0
    eta: float = 1.0
    validation_fraction: float = 0.1
    scoring: str | Callable[..., float] | None = None

    @fitted_apart
    def fit(
        self,
        X: ArrayLike | LazyFeatures,
        y: ArrayLike,
        X_val: ArrayLike | LazyFeatures | None = None,
        y_val: ArrayLike | None = None,
    ) -> Self:
        """Search with differential privacy for the rows of ``(X, y)``.

        Parameters
        ----------
        X : array-like or LazyFeatures of shape (n_samples, n_features)
            One row per protected record. Sensitive. A feature file is read to memory.
        y : array-like of shape (n_samples,)
            Class labels. Sensitive.
        X_val, y_val : array-like, optional
            **Public** validation data: they get no protection at all. All of ``X`` is
            trained on then. Rows of ``X``, as far as can be seen, are refused.

        Returns
        -------
        self : object

        Raises
        ------
        TypeError, ValueError
            If a parameter or candidate is out of range, the estimator has no privacy
            budget, or the data is refused.
        UnsupportedEventError
            If the estimator samples records.
        BudgetExceededError, LedgerError
            If ``ledger`` has too little left, or cannot be used. Nothing was charged.
        PrivacyError
            If a fit does not state the cost that it was given.
        FloatingPointError
            If the coefficients of a run overflow. The budget is spent; ``privacy_``
            says so.
        """
        check_alone(type(self).__name__)
        check_estimator(self.estimator)
        check_candidates(self.param_distributions, self.estimator)
        fraction = check_real(
            "validation_fraction", self.validation_fraction, low=1e-3, high=0.9
        )
        selection = self._selection("holdout" if X_val is None else "public")
        keys = KeyStream(seed_of(self.random_state))
        if (X_val is None) != (y_val is None):
            raise ValueError("X_val and y_val must be given together, got one of them.")
        if self.scoring is not None and X_val is None:
            raise ValueError(
                "scoring must be None without public validation data, got "
                f"{self.scoring!r}. The private score is the accuracy."
            )
        if X_val is not None:
            check_apart(X_val, X, name="X_val")
            check_order("y_val", y_val, X_val)
        check_columns(X=X, y=y)
        features, labels = read_records(self, X, y)
        if X_val is not None and without_data(hasattr, X_val, "columns"):
            without_data(validate_data, self, X_val, reset=False, skip_check_array=True)
        estimator = clone(self.estimator)  # nobody else can change it now
        given = estimator.get_params()[classes_name(estimator)]
        read = encode_labels(labels, given).classes
        classes = read if given is None else given  # the same in every run
        runner = Runner(
            estimator, self.param_distributions, classes, selection.run_mu, keys
        )
        statement = statement_of(
            selection,
            estimator,
            epsilon=self._epsilon(),
            delta=self.delta,
            features=known_features(self),
            seeded=keys.seeded,
            candidates=self.param_distributions,
            fewest=(fewest := fewest_records(fraction)),
        )
        check_given(X, y, None, self.ledger)
        fit = private_selection(
            self,
            statement,
            keys,
            n_units=len(features),
            forget=("best_estimator_", "best_params_", "best_score_", "classes_"),
            classes_read=given is None,
        )
        score: HoldoutScore | PublicScore
        if X_val is None:
            check_trained_on(len(features), fewest)
            held_out = bernoulli(keys.draw_noise_key(), len(features), fraction)
            plan = runner.score_plan()
            scored, features = without_data(
                lambda: (features[held_out], features[~held_out])
            )
            score = HoldoutScore(scored, labels[held_out], plan, fit)
            labels = labels[~held_out]
        else:
            score = PublicScore(in_memory(X_val), y_val, self.scoring)
        check_public(self.param_distributions, self.estimator, X)
        n_features = getattr(self, "n_features_in_", 1)  # texts have none
        runner.check(features, labels, n_features, score)
        title = f"{type(self).__name__}({type(estimator).__name__})"
        with fit.charging(name=title):
            best = runner.best(features, labels, score, selection.runs)
        releases = best.estimator.privacy_.releases + score.records
        self.privacy_ = replace(fit.statement, releases=releases)
        for _, step in [("", best.estimator), *getattr(best.estimator, "steps_", ())]:
            if hasattr(step, "privacy_"):
                step.privacy_ = self.privacy_
        if hasattr(best.estimator, "ledger"):  # fitted again it is charged again
            best.estimator.ledger = self.ledger
        self.best_estimator_ = best.estimator
        self.best_params_ = best.params
        self.best_score_ = best.score
        self.classes_ = best.estimator.classes_
        return self

    def predict(self, X: ArrayLike | LazyFeatures) -> NDArray[Any]:
        """Return the classes that the best estimator predicts."""
        return self._asked("predict", X)

    def predict_proba(self, X: ArrayLike | LazyFeatures) -> NDArray[np.float64]:
        """Return the class probabilities of the best estimator."""
        return self._asked("predict_proba", X)

    def decision_function(self, X: ArrayLike | LazyFeatures) -> NDArray[np.float64]:
        """Return the scores of the best estimator."""
        return self._asked("decision_function", X)

    def _asked(self, method: str, X: Any) -> NDArray[Any]:
        check_is_fitted(self, "best_estimator_")
        if not (isinstance(X, LazyFeatures) or reads_by_itself(self.estimator)):
            X = without_data(validate_data, self, X, dtype=floats_of(X), reset=False)
        return np.asarray(getattr(self.best_estimator_, method)(X))

    def _selection(self, scored_on: Any) -> Selection:
        """Return the law of the runs, and how private one must be for the budget."""
        runs = RunCount.from_mean(self.mean_runs, self.eta)
        epsilon = check_real("epsilon", self._epsilon(), low=0.0, include_low=False)
        delta = check_run_delta(self.delta, runs)
        private = math.isfinite(epsilon)
        mu = selection_mu(epsilon, delta, runs) if private else math.inf
        return Selection(mu, runs.eta, runs.gamma, scored_on)

    def _epsilon(self) -> Any:
        return DEFAULT_EPSILON if self.epsilon is None else self.epsilon
