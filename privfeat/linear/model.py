"""The base class of linear models: parameters, one private fit, and scores."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from privfeat._checks import check_bool, check_choice, check_int, check_real
from privfeat._compilation import kept_compiled_code
from privfeat._messages import refuse_masked, without_data
from privfeat._notebook import ShowsPrivacy
from privfeat._types import (
    ARITHMETICS,
    ROW_SCALINGS,
    Accounting,
    Adjacency,
    Arithmetic,
    RowScaling,
)
from privfeat.core.accounting.calibration import plan_releases
from privfeat.core.accounting.plan import Query, ReleasePlan
from privfeat.core.bounds.clipping import CLIP_RANGE
from privfeat.core.ledger.privacy_ledger import PrivacyLedger
from privfeat.core.noise.gaussian_mechanism import GaussianMechanism
from privfeat.core.noise.keys import KeyStream
from privfeat.core.private_fit import private_fit
from privfeat.core.sums.processes import current_team
from privfeat.data import LazyFeatures
from privfeat.data.columns import refuse_dates
from privfeat.estimation.apart import fitted_apart
from privfeat.estimation.inputs import (
    FLOATS,
    public_facts,
    seed_of,
    validated,
    warn_of_unused_groups,
)
from privfeat.estimation.parameters import Parameters
from privfeat.estimation.users import Users, check_users
from privfeat.linear._rows import BoundedRows, scaled_rows
from privfeat.linear._team import check_team, count_units
from privfeat.linear.problem import LinearProblem, Shape

_PREDICT_ROWS = 2**14


class DPLinearModel(ShowsPrivacy, Parameters, ABC):
    """A linear model computed from noisy sums over bounded records.

    ``fit`` is a template: check, plan the releases, state their cost, and only then
    read data and draw noise. A subclass says what it makes of ``y`` (`_problem`), which
    sums it wants (`_queries`) and what it makes of the releases (`_solve`).
    """

    epsilon: float | None = None
    delta: float = 1e-5
    rho: float | None = None
    noise_multiplier: float | None = None
    adjacency: Adjacency = "add_remove"
    accounting: Accounting = "exact"
    arithmetic: Arithmetic = "float64"
    budget_split: Mapping[str, float] | None = None
    max_group_size: int | None = None
    ledger: PrivacyLedger | None = None
    row_scaling: RowScaling = "unit"
    clip_norm: float = 1.0
    fit_intercept: bool = True
    intercept_scaling: float = 0.1
    random_state: Any = None
    verbose: int = 0

    @fitted_apart
    def fit(
        self,
        X: ArrayLike | LazyFeatures,
        y: ArrayLike,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Fit the model with differential privacy for the rows of ``(X, y)``.

        Parameters
        ----------
        X : array-like or LazyFeatures of shape (n_samples, n_features)
            One row per protected record, in feature units. Sensitive.
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
            ``classes``, or only one of ``groups`` and ``max_group_size`` is given.
            Nothing has been released then; that a fit is refused tells of the
            data. Messages hold no data.
        BudgetExceededError, LedgerError
            If ``ledger`` has too little left, or cannot be used. Nothing was charged.
        FloatingPointError
            If the coefficients overflow. The budget is spent; ``privacy_`` says so.
        """
        self._check_parameters()
        team = current_team()
        seed = seed_of(self.random_state)
        keys = KeyStream(seed, team.index)
        features, targets = self._validate(X, y)
        problem = self._problem(targets, features.shape[1])
        warn_of_unused_groups(X, groups)
        users = check_users(groups, self.max_group_size, features.shape[0])
        plan = self._plan(problem.shape, users)
        fit = private_fit(
            self,
            plan,
            keys,
            public=public_facts(
                features.shape[1], problem.public, self.max_group_size, self.adjacency
            ),
            n_units=count_units(features.shape[0], users, team),
            forget=("coef_", "intercept_"),
            unit="record" if users is None else "user",
            arithmetic=self.arithmetic,
            classes_read=problem.classes_read,
        )
        if team.size > 1:
            grouped = users is not None
            check_team(team, self, seed, fit.statement, problem, features, grouped)
        kept = None
        if users is not None:
            chosen_by = np.array(keys.draw_integer(), np.uint64).view(np.int64)
            kept = users.kept_records(int(team.from_first(chosen_by).view(np.uint64)))
            if team.size > 1:
                team.check_same("groups", kept.tobytes())
        with kept_compiled_code():
            rows = self._rows(
                features, problem.targets, kept=kept, private=plan.private
            )
        with fit.drawing() as mechanism, kept_compiled_code():
            rows = self._centred(rows, mechanism)
            coef = self._solve(rows, mechanism, problem.shape)
            if not np.all(np.isfinite(coef)):
                raise FloatingPointError(
                    "coefficients must be finite, got overflow; the budget is spent. "
                    "Pass a smaller learning_rate or a larger ridge."
                )
        for name, value in problem.fitted.items():
            setattr(self, name, value)
        self.n_iter_ = self._n_steps()
        self._store(coef, problem.shape)
        return self

    @abstractmethod
    def _problem(self, y: Any, n_features: int) -> LinearProblem:
        """Return what a validated ``y`` asks for."""

    @abstractmethod
    def _rows(
        self,
        features: Any,
        targets: NDArray[Any],
        *,
        kept: NDArray[np.bool_] | None,
        private: bool,
    ) -> BoundedRows:
        """Return the records as the core takes them."""

    @abstractmethod
    def _queries(self, shape: Shape) -> list[Query]:
        """Return what the fit releases, with sensitivities for ``self.adjacency``."""

    @abstractmethod
    def _solve(
        self,
        rows: BoundedRows,
        mechanism: GaussianMechanism,
        shape: Shape,
    ) -> NDArray[np.float64]:
        """Return coefficients, (n_outputs, n_columns), from the planned releases."""

    @abstractmethod
    def _store(self, coef: NDArray[np.float64], shape: Shape) -> None:
        """Set ``coef_`` and ``intercept_`` for rows as `_scores` sees them."""

    def _plan(self, shape: Shape, users: Users | None = None) -> ReleasePlan:
        """Return what ``fit`` releases, and its cost."""
        queries = self._all_queries(shape)
        if users is not None:
            queries = [query.per_user(users.max_group_size) for query in queries]
        return plan_releases(
            queries,
            epsilon=self.epsilon,
            delta=self.delta,
            rho=self.rho,
            noise_multiplier=self.noise_multiplier,
            accounting=self.accounting,
            adjacency=self.adjacency,
            budget_split=self._planned_split(shape),
        )

    def _all_queries(self, shape: Shape) -> list[Query]:
        """Return `_queries` and those of `_centred`."""
        return self._queries(shape)

    def _planned_split(self, shape: Shape) -> Mapping[str, float] | None:
        """Return ``budget_split`` for the queries of `_all_queries`."""
        return self.budget_split

    def _centred(self, rows: BoundedRows, mechanism: GaussianMechanism) -> BoundedRows:
        """Set ``center_``, which all rows are shifted by, and return shifted rows."""
        self.center_ = np.zeros(self.n_features_in_)
        return rows

    def _validate(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Return features and targets as arrays, or as a feature file has them."""
        return validated(self, X, y)

    def _n_steps(self) -> int:
        """Return the number of noisy steps; 1 for a closed form."""
        return 1

    def _check_parameters(self) -> None:
        """Check the parameters that ``plan_releases`` does not; nothing is stored."""
        check_choice("arithmetic", self.arithmetic, ARITHMETICS)
        check_choice("row_scaling", self.row_scaling, ROW_SCALINGS)
        low, high = CLIP_RANGE
        check_real("clip_norm", self.clip_norm, low=low, high=high)
        check_bool("fit_intercept", self.fit_intercept)
        check_real("intercept_scaling", self.intercept_scaling, low=1e-6, high=1e6)
        check_int("verbose", self.verbose, low=0)
        if self.max_group_size is not None:
            check_int("max_group_size", self.max_group_size, low=1)

    def _constant(self) -> float | None:
        return float(self.intercept_scaling) if self.fit_intercept else None

    def _steps(self, n_steps: int) -> Iterable[int]:
        """Return the step numbers, behind a progress bar if ``verbose``."""
        steps = range(n_steps)
        if not self.verbose:
            return steps
        from tqdm.auto import tqdm

        bar: Iterable[int] = tqdm(steps, desc=type(self).__name__, unit="step")
        return bar

    def _scores(self, X: ArrayLike | LazyFeatures) -> NDArray[np.float64]:
        """Return ``X coef_^T + intercept_``, of rows as ``row_scaling`` says."""
        check_is_fitted(self, "coef_")
        if isinstance(X, LazyFeatures):
            starts = range(0, len(X), _PREDICT_ROWS)
            ends = [min(start + _PREDICT_ROWS, len(X)) for start in starts]
            return np.concatenate(list(map(self._scores, map(X.read, starts, ends))))
        refuse_dates("X", X)
        refuse_masked(X)
        features = without_data(validate_data, self, X, dtype=FLOATS, reset=False)
        rows = scaled_rows(features, self.center_, self.row_scaling)
        return np.asarray(rows @ self.coef_.T + self.intercept_)
