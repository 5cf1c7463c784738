"""The base class of linear models: parameters, one private fit, and scores."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from privfeat._messages import array_of, check_columns
from privfeat._types import Accounting, Adjacency, Arithmetic, RowScaling, UserBound
from privfeat.core.accounting.plan import Query, ReleasePlan
from privfeat.core.bounds.grid import check_width
from privfeat.core.bounds.user_clips import CLIPPED_SUMS, check_group_size
from privfeat.data import LazyFeatures
from privfeat.estimation.bases import PrivateEstimator, with_params_of_fit
from privfeat.estimation.fitting import (
    agreed,
    announced,
    fitted_apart,
    kept_compiled_code,
)
from privfeat.estimation.inputs import known_features, read_rows, seed_of, validated
from privfeat.estimation.plans import plan_of
from privfeat.estimation.predictor import linear_scores, read_in_parts
from privfeat.estimation.rows.slots import counted_records
from privfeat.linear.parameters.ranges import RANGES, Ranges
from privfeat.linear.problem import LinearProblem, Shape, grid_step_of

if TYPE_CHECKING:
    from privfeat.core.noise.gaussian_mechanism import GaussianMechanism
    from privfeat.estimation.rows.bounded import BoundedRows


# What a fit sets. Of an earlier one nothing may stay beside the statement of the next.
_FITTED = (
    *("coef_", "intercept_", "center_", "classes_", "multilabel_", "n_iter_"),
    *("class_weight_", "moments_"),
)


class DPLinearModel(PrivateEstimator, ABC):
    """A linear model computed from noisy sums over bounded records.

    ``fit`` checks, plans the releases and states their cost; only then it reads rows
    and draws noise. A subclass says what it makes of ``y`` (`_problem`), which sums it
    wants (`_queries`) and what it makes of the releases (`_solve`).
    """

    rho: float | None = None
    noise_multiplier: float | None = None
    adjacency: Adjacency = "add_remove"
    accounting: Accounting = "exact"
    arithmetic: Arithmetic = "float64"
    budget_split: Mapping[str, float] | None = None
    max_group_size: int | None = None
    user_bound: UserBound = "sum"
    row_scaling: RowScaling = "unit"
    clip_norm: float = 1.0
    fit_intercept: bool = True
    intercept_scaling: float = 0.1
    verbose: int = 0

    _ranges: ClassVar[Ranges] = RANGES
    _sums_squares: ClassVar[bool] = True  # whether it has a matrix as wide as rows
    # what helps if rows are too long for a Gram matrix
    _few_columns: ClassVar[str] = "Pass fewer features."

    @fitted_apart
    def fit(
        self, X: ArrayLike | LazyFeatures, y: ArrayLike, groups: ArrayLike | None = None
    ) -> Self:
        """Fit the model with differential privacy for the rows of ``(X, y)``.

        Parameters
        ----------
        X : array-like or LazyFeatures of shape (n_samples, n_features)
            One row per protected record, in feature units. Sensitive. `DPAdamLinear`,
            `DPLeastSquares` and `DPNearestMean` take sparse rows as well, in CSR
            format, and keep them sparse.
        y : array-like of shape (n_samples,), or (n_samples, n_classes) of 0 and 1
            What to predict; an indicator matrix (also a sparse one) for records that
            may carry several labels. Sensitive.
        groups : array-like of shape (n_samples,), optional
            The user that each record belongs to: integers only, or strings only. All
            records of a user are then protected together; needs ``max_group_size``.
            Sensitive.

        Returns
        -------
        self : object
            With ``coef_``, ``intercept_``, ``privacy_``; ``classes_`` of a classifier.

        Raises
        ------
        TypeError, ValueError
            If a parameter is out of range, no noise level meets the budget, or the
            data has a wrong shape, NaN, infinity, one class, or a label outside
            ``classes``, a Gram matrix has no room in memory, or only one of ``groups``
            and ``max_group_size`` is given. Nothing has been released then. A refusal
            itself depends on the data; its message shows none.
        BudgetExceededError, LedgerError
            If ``ledger`` has too little left, or cannot be used. Nothing was charged.
        FloatingPointError
            If the coefficients overflow. The budget is spent; ``privacy_`` says so.
        """
        from privfeat.core.noise.keys import KeyStream
        from privfeat.core.private_fit import private_fit
        from privfeat.core.sums.processes import current_team

        self._check_parameters()
        team, seed = current_team(), seed_of(self.random_state)
        keys = KeyStream(seed, team.index)
        features, targets, users = validated(self, X, y, groups)
        n_samples, n_features = features.shape
        problem = self._problem(targets, n_features)
        public, plan = problem.shape.public, self._plan(problem)
        if public is not None:
            public.check_apart(X)
        self._check_size(problem.shape)
        # every process takes part, whether or not it has users
        n_records = sum(team.each(n_samples)) if team.rows == "own" else n_samples
        fit = private_fit(
            self,
            plan,
            keys,
            public=self._public(problem),
            n_units=n_records if users is None else users.n_users,
            forget=_FITTED,
            unit="record" if users is None else "user",
            arithmetic=self.arithmetic,
            classes_read=problem.classes_read,
        )
        if team.size > 1:
            from privfeat.estimation.team import check_team

            check_team(
                team,
                self,
                seed,
                fit.statement,
                problem,
                features,
                users is not None,
                about=str(problem.shape),
                instead=problem.shape.compared,
            )
        kept = slots = None
        if users is not None:
            clips = plan.private and self._clips_users()
            kept, slots = counted_records(users, keys, team, clips=clips)
        shown = announced(self, fit.statement, team)
        with kept_compiled_code():
            bounded = partial(
                problem.bounded,
                features,
                problem.targets,
                team=team,
                kept=kept,
                slots=slots,
                private=plan.private,
            )
            rows = agreed(team, "read its rows", bounded)  # before one is charged
            with fit.drawing() as mechanism, shown:
                expected = None if public is None else public.mean
                rows = rows.centred(problem.center, mechanism, expected)
                self.center_ = rows.center
                coef = self._solve(rows, mechanism, problem.shape)
                problem.check_coef(coef)
        for name, value in problem.fitted.items():
            setattr(self, name, value)
        self.n_iter_ = self._n_iter(problem.shape)
        self._store(coef, problem.shape)
        return self

    def check_targets(self, X: Any, y: Any, n_features: int) -> None:
        """Raise what ``fit`` would refuse of ``y``, and of public rows beside ``X``.

        ``X`` are records, of which steps will make rows of ``n_features`` columns: only
        its memory is compared. ``y`` is as ``fit`` takes it. Sensitive.
        """
        n_samples = (y if issparse(y) else array_of(y)).shape[:1]
        alone = clone(self).set_params(max_group_size=None)  # users were checked
        targets = validated(alone, np.zeros((*n_samples, 1)), y, None)[1]
        problem = self._problem(targets, n_features)
        if problem.shape.public is not None:
            problem.shape.public.check_apart(X)
        self._check_size(problem.shape)

    @abstractmethod
    def _problem(self, y: Any, n_features: int) -> LinearProblem:
        """Return what a validated ``y`` asks for."""

    @abstractmethod
    def _queries(self, shape: Shape) -> list[Query]:
        """Return what the fit releases, with sensitivities for ``self.adjacency``."""

    @abstractmethod
    def _solve(
        self, rows: "BoundedRows", mechanism: "GaussianMechanism", shape: Shape
    ) -> NDArray[np.float64]:
        """Return coefficients, (n_outputs, n_columns), from the planned releases."""

    @abstractmethod
    def _store(self, coef: NDArray[np.float64], shape: Shape) -> None:
        """Set ``coef_`` and ``intercept_`` for rows as `_scores` sees them."""

    def _plan(self, problem: LinearProblem) -> ReleasePlan:
        plan = plan_of(
            self,
            problem.queries,
            partial(self._grid_step, problem.shape),
            clipped=CLIPPED_SUMS if self._clips_users() else (),
            accounting=self.accounting,
            budget_split=problem.budget_split,
        )
        if plan.private or self.row_scaling == "unit":
            check_width(problem.shape.n_columns - bool(problem.shape.constant))
        return plan

    def _grid_step(self, shape: Shape, name: str) -> float:
        norms = self._row_norm(), getattr(self, "gram_clip_norm", None)
        return grid_step_of(name, *norms, shape, self._clips_users())

    def _row_norm(self) -> float:
        return float(self.clip_norm)

    def _public(self, problem: LinearProblem) -> tuple[str, ...]:
        """Return what the guarantee of a fit assumes to be known to everyone."""
        facts = [
            known_features(self),
            *problem.public,
            *problem.shape.facts,
            "all constructor parameters but random_state",
            "that all values are finite",
        ]
        if (most := self.max_group_size) is not None:
            facts.append(f"that of a user's records at most {most} count")
        if self._clips_users():
            others = [q.name for q in problem.queries if q.name not in CLIPPED_SUMS]
            but = f", but to {' and '.join(others)}" if others else ""
            facts.append(f"that they add no more to a sum than one record may{but}")
        if self.adjacency == "replace_one":
            facts.append(f"the number of {'records' if most is None else 'users'}")
        return tuple(facts)

    def _n_iter(self, shape: Shape) -> int:
        return int(getattr(self, "n_iter", 1))

    def _clips_users(self) -> bool:
        """Return whether what a user adds to a sum is clipped as that of one record."""
        return self.max_group_size is not None and self.user_bound == "sum"

    def _check_parameters(self) -> None:
        for name, check in self._ranges.items():
            if hasattr(self, name):
                check(name, getattr(self, name))
        if self._clips_users():
            check_group_size(self.max_group_size)

    def _check_size(self, shape: Shape) -> None:
        from privfeat.solvers.spectrum import check_gram_cost, check_release_cost

        name, width, n_outputs = type(self).__name__, shape.n_columns, shape.n_outputs
        if self._sums_squares:
            check_gram_cost(name, width, n_outputs, self._few_columns)
        else:
            check_release_cost(name, width * n_outputs)

    @with_params_of_fit
    def _scores(self, X: ArrayLike | LazyFeatures) -> NDArray[np.float64]:
        """Return ``X coef_^T + intercept_``, of rows as ``row_scaling`` says."""
        check_is_fitted(self, "coef_")
        if isinstance(X, LazyFeatures):
            return np.concatenate([*map(self._scores, read_in_parts(X))])
        check_columns(X=X)
        features = read_rows(self, X, reset=False)
        return linear_scores(
            features, self.coef_, self.intercept_, self.center_, self.row_scaling
        )
