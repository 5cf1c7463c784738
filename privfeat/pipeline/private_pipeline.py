"""PrivatePipeline: private steps with one budget, one charge and one statement."""

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Self

from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.utils.validation import validate_data

from privfeat._checks import check_int
from privfeat._messages import check_columns, without_data
from privfeat._types import Accounting, Adjacency, Arithmetic, Unit
from privfeat.core.accounting.calibration import plan_releases
from privfeat.core.accounting.plan import Query, ReleasePlan
from privfeat.core.noise.keys import KeyStream
from privfeat.core.private_steps import private_steps
from privfeat.core.shares import joined_plans
from privfeat.core.sums.processes import check_alone, current_team
from privfeat.data import LazyFeatures
from privfeat.estimation.bases import PrivateEstimator
from privfeat.estimation.fitting import announced, fitted_apart
from privfeat.estimation.inputs import check_users, known_features, seed_of
from privfeat.pipeline.planning import (
    check_step_names,
    facts_of,
    labels_of,
    planned_steps,
    reads_classes,
    shared_by,
)
from privfeat.pipeline.prediction import PredictsBySteps
from privfeat.pipeline.records import (
    by_record,
    check_public_rows,
    number_of,
    rows_of,
    through_public_steps,
)
from privfeat.pipeline.steps import read_steps


class PrivatePipeline(PredictsBySteps, PrivateEstimator):
    """Private steps one after the other, with one budget for all of them.

    What each step learns of the records, a scaler its moments and a classifier its
    coefficients, is released with noise; the budget is divided among these steps before
    a record is read, charged once, and stated as one. A step that would learn from the
    records without noise, such as ``StandardScaler``, is refused by its name.

    Parameters
    ----------
    steps : list of (str, estimator)
        Each is one of these; all but the last transform.

        - **Private**: an estimator of privfeat that plans its releases: linear ones at
          the end, transformers such as ``DPStandardScaler`` anywhere. It has no budget,
          ledger or seed of its own.
        - **Public**, and learns nothing: `PublicColumns`, and of scikit-learn
          ``Binarizer``, ``Normalizer``, ``PolynomialFeatures``, ``HashingVectorizer``,
          and ``FunctionTransformer`` of a ufunc.
        - **Declared public** by you: any fitted transformer in
          ``sklearn.frozen.FrozenEstimator``, which was fitted on public data, or on
          private data for a charge of its own. It gets one record at a time.
    epsilon : float, optional
        Budget of all steps together, > 0; ``inf`` turns privacy off. Default: 1, as of
        `DPFC`.
    delta : float, default=1e-5
        In [1e-10, 1). Default: 1e-5, as in the papers.
    rho : float, optional
        zCDP budget instead of ``epsilon``.
    adjacency : {"add_remove", "replace_one"}, default="add_remove"
        Default: add/remove, as of `DPFC`.
    accounting : {"exact", "zcdp"}, default="exact"
        How the total is computed. Default: exact, as nothing states less.
    arithmetic : {"float64", "exact"}, default="float64"
        Of the noise of all steps. Default: float64, as of `DPFC`.
    shares : mapping of str to float, optional
        Part of rho of each private step, by its name, relative to the others; > 0.
        Default: 8 for the last one and 1 for each other, since moments are sums of all
        records, which need little: with one step before it the noise of the last has a
        6 % larger stddev than alone.
    max_group_size : int, optional
        How many records of a user count, where ``groups`` protects users.
    ledger : PrivacyLedger, optional
        Charged once for all steps, before the first draw.
    random_state : int, RandomState or None, default=None
        Default: None, fresh operating-system entropy at every ``fit``, as of `DPFC`. A
        seed is for tests and published experiments: it is marked in ``privacy_`` and
        warns.
    verbose : int, default=0
        Above 0 ``fit`` says on stderr, before it is charged, what all steps cost
        together and what they leave of the ledger. Steps show nothing of their own.

    Attributes
    ----------
    steps_ : list of (str, estimator)
        The fitted steps; ``steps`` stay as they are. Each has the ``privacy_`` of the
        whole, since what it learned depends on the steps before it.
    privacy_ : PrivacyStatement
        The cost of all steps; releases are called ``STEP.RELEASE``.
    classes_ : array of shape (n_classes,)
        Of a classifier at the end.
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features,)
        Only for input with string column names.

    See Also
    --------
    sklearn.pipeline.Pipeline : Is enough where no step but the last learns.

    Notes
    -----
    **Guarantee.** Each step gets, of each record, a row that follows from this record,
    public facts and what earlier steps *released*; no step drops, adds or mixes
    records. So neighbouring records are neighbouring rows of every step, and the steps
    compose adaptively: ``mu**2`` of the whole is the sum of those of the steps, without
    loss (proved in ``privfeat.core.private_steps``). Users are protected, with
    ``groups``, by every step.

    A step that is not of privfeat gets numbers as float64, or one text for each record
    (`privfeat.estimation.plain`), so that no record decides the type of others: one
    word makes texts of a column. Public steps after a private one are fitted to a row
    of zeros; a record of which one makes a number that is not finite gets a row of
    zeros there, since an error would tell of it. Records that are sampled
    (``sampling_prob``) are refused: their cost is not a part of rho.

    **Public.** The steps and all constructor parameters but ``random_state``; what each
    step takes as public; the number and names of features.

    **A fit that fails** after the charge has spent the whole budget, as ``privacy_``
    says.

    **Not protected.** As of the steps: timing; a seed that somebody guesses.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.preprocessing import Normalizer
    >>> from privfeat import DPLeastSquares, PrivatePipeline
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 3))
    >>> model = PrivatePipeline(
    ...     [("norm", Normalizer()), ("clf", DPLeastSquares(classes=[False, True]))],
    ...     epsilon=1,
    ... )
    >>> model.fit(X, X[:, 0] > 0).score(X, X[:, 0] > 0) > 0.9
    True
    >>> model.privacy_.epsilon, [release.name for release in model.privacy_.releases]
    (1.0, ['clf.feature_mean', 'clf.gram', 'clf.class_sums'])
    """

    steps: Sequence[tuple[str, Any]] = field(kw_only=False)
    rho: float | None = None
    adjacency: Adjacency = "add_remove"
    accounting: Accounting = "exact"
    arithmetic: Arithmetic = "float64"
    shares: Mapping[str, float] | None = None
    max_group_size: int | None = None
    verbose: int = 0

    @fitted_apart
    def fit(
        self,
        X: ArrayLike | LazyFeatures,
        y: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Fit all steps with differential privacy for the rows of ``(X, y)``.

        Parameters
        ----------
        X : table, array-like or LazyFeatures of n_samples rows
            As the first step takes it. Sensitive. A feature file is read to memory.
        y : array-like of shape (n_samples,), or (n_samples, n_classes)
            As the last step takes it. Sensitive.
        groups : array-like of shape (n_samples,), optional
            The user of each record, for every step; needs ``max_group_size``.

        Raises
        ------
        TypeError, ValueError
            If a step is neither private nor public, has a budget of its own, or refuses
            a parameter, or the data is refused. Nothing has been released, unless a
            note says that the budget is spent.
        UnsupportedEventError
            If a step samples records.
        BudgetExceededError, LedgerError
            If ``ledger`` has too little left, or cannot be used. Nothing was charged.
        PrivacyError
            If a step draws something else than it told.
        """
        check_alone(type(self).__name__)
        check_int("verbose", self.verbose, low=0)
        for _, step in self._named():
            check_public_rows(step, X)
        steps = read_steps(self.steps)
        keys, whole = KeyStream(seed_of(self.random_state)), self._whole()
        check_columns(y=y) if steps[0].reads_tables else check_columns(X=X, y=y)
        rows = rows_of(X, steps[0])
        if len(without_data(getattr, rows, "shape", ())) == 2:
            without_data(validate_data, self, X, skip_check_array=True)
        users = check_users(
            groups, self.max_group_size, number_of(rows), X, y, ledger=self.ledger
        )
        rows, left = through_public_steps(rows, steps)
        if y is None and hasattr(left[-1].estimator, "predict"):
            raise ValueError("fit requires y to be passed, but the target y is None.")
        if y is not None and number_of(y) != number_of(rows):
            raise ValueError("X and y must not have inconsistent lengths.")
        labels = labels_of(left[-1], y)
        unit: Unit = "record" if users is None else "user"
        shared = shared_by(self, whole, steps, keys)
        parts = planned_steps(
            left, rows.shape[1], shared, labels, is_sparse=issparse(rows), given=(X, y)
        )
        check_step_names(steps, X)
        if hasattr(first := left[0].estimator, "warn_of_records"):
            first.warn_of_records(rows)
        begun = private_steps(
            self,
            whole,
            parts,
            keys,
            public=facts_of(steps, known_features(self), self.adjacency, unit),
            n_units=number_of(rows) if users is None else users.n_users,
            forget=("steps_", "classes_"),
            unit=unit,
            arithmetic=self.arithmetic,
            classes_read=reads_classes(left[-1], labels),
        )
        facts = begun.statement.public
        shown = announced(self, begun.statement, current_team())
        ids = None if users is None else users.ids  # one reading for all steps
        with begun.charging(), shown:
            for step in left:
                if step.private:
                    with begun.turn(step.name) as part:
                        step.estimator.set_params(ledger=part)
                        step.estimator.fit(rows, y, groups=ids)
                    step.estimator.set_params(ledger=None)
                    facts += tuple(
                        f"{step.name}: {fact}"
                        for fact in step.estimator.privacy_.public
                        if fact not in facts
                    )
                if step is not left[-1]:
                    rows = by_record(step, rows, charged=True)
        self.privacy_ = replace(begun.statement, public=facts)
        for step in steps:
            if step.private:
                step.estimator.privacy_ = self.privacy_
        self.steps_ = [(step.name, step.estimator) for step in steps]
        if hasattr(steps[-1].estimator, "classes_"):
            self.classes_ = steps[-1].estimator.classes_
        return self

    def planned(self, n_features: int, *, multilabel: bool = False) -> ReleasePlan:
        """Return what ``fit`` would release, and its cost.

        Nothing is drawn or charged, and no record is needed; ``classes`` of a
        classifier are.

        Parameters
        ----------
        n_features : int
            Number of columns of ``X``; not used where the first step reads texts.
        multilabel : bool
            Whether ``y`` will be an indicator matrix.

        Raises
        ------
        TypeError, ValueError, UnsupportedEventError
            If ``fit`` would refuse a parameter or a step, whatever the records.
        """
        whole, steps = self._whole(), read_steps(self.steps)
        shared = shared_by(self, whole, steps)
        labels = labels_of(steps[-1], None, multilabel=multilabel)
        return joined_plans(whole, planned_steps(steps, n_features, shared, labels))

    def check_targets(self, X: Any, y: Any, n_features: int) -> None:
        """Raise what ``fit`` would refuse of ``y``, of public rows, and of sizes."""
        steps = read_steps(self.steps)
        shared = shared_by(self, self._whole(), steps)
        labels = labels_of(steps[-1], y)
        planned_steps(steps, n_features, shared, labels, given=(X, y))
        check_step_names(steps, X)

    def _whole(self) -> ReleasePlan:
        """Return a plan of one release for the whole budget."""
        return plan_releases(
            [Query("all", 1.0)],
            epsilon=self.epsilon,
            delta=self.delta,
            rho=self.rho,
            accounting=self.accounting,
            adjacency=self.adjacency,
        )
