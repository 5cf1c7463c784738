"""The runs of a search: draw a candidate, fit it, score it; keep only the best."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.metrics import get_scorer
from sklearn.model_selection import ParameterGrid, ParameterSampler

from privfeat._messages import without_warnings
from privfeat._warnings import warn
from privfeat.core.accounting.calibration import plan_releases
from privfeat.core.accounting.conversions import rho_from_mu
from privfeat.core.accounting.plan import Query, ReleasePlan, ReleaseRecord
from privfeat.core.accounting.run_count import RunCount
from privfeat.core.accounting.selection import SLACK, score_sensitivity
from privfeat.core.noise import draws
from privfeat.core.noise.keys import KeyStream
from privfeat.core.private_fit import PrivateFit
from privfeat.core.statement.privacy_statement import PrivacyStatement
from privfeat.core.sums.totals import ExactSum
from privfeat.data import LazyFeatures
from privfeat.estimation.beside import charged_before
from privfeat.exceptions import PrivacyError
from privfeat.metrics.predictions import are_right
from privfeat.selection.inputs import (
    budget_of,
    budgeted,
    checked_plan,
    classes_name,
    reads_by_itself,
)

# How good a fit is, as privately as a run must be; higher is better.
Score = Callable[[Any], float]

# Candidates that are looked at before a search is charged.
_LOOKED_AT = 100


@dataclass(frozen=True)
class Run:
    """One run, all of which may be released if it is the best."""

    estimator: Any
    params: dict[str, Any]
    score: float


class HoldoutScore:
    """Correct minus incorrect held-out records, with Gaussian noise: a release."""

    def __init__(
        self, X: NDArray[Any], y: NDArray[Any], plan: ReleasePlan, fit: PrivateFit
    ) -> None:
        self._X, self._y, self._plan, self._fit = X, y, plan, fit
        self.records = plan.records

    def __call__(self, fitted: Any) -> float:
        """Return one release of the sum, under the plan of a run."""
        right = are_right(fitted, self._X, self._y)
        exact = 2 * int(np.count_nonzero(right)) - len(self._y)
        mechanism = self._fit.mechanism(self._plan)
        # on a fine grid, where the exact mode adds next to nothing to the noise
        total = ExactSum(np.array(exact * 2**20, np.int64), 2.0**-20)
        return float(mechanism.release("score", total).value)


class PublicScore:
    """A scorer of scikit-learn on public data: post-processing of the fit."""

    def __init__(
        self,
        X: ArrayLike,
        y: ArrayLike | None,
        scoring: str | Callable[..., float] | None,
    ) -> None:
        self._X, self._y = X, y
        self.records: tuple[ReleaseRecord, ...] = ()  # the score releases nothing more
        self._scorer = get_scorer("accuracy" if scoring is None else scoring)
        if is_of_the_user(self._scorer):
            warn(
                "scoring is a function of yours, which is given the model of every "
                "run. The statement covers the released one alone: what the function "
                "prints, logs or keeps of the others has no protection. Let it return "
                "a number and do nothing else, or pass a scorer of scikit-learn."
            )

    def rows(self, n: int) -> Any:
        """Return the first public record so many times."""
        if isinstance(self._X, list | tuple):
            return [self._X[0]] * n
        first: Any = self._X[:1] if isinstance(self._X, LazyFeatures) else self._X
        return getattr(first, "iloc", first)[[0] * n]

    def __call__(self, fitted: Any) -> float:
        """Return the score; NaN is the worst."""
        score = self._scorer(fitted, self._X, self._y)
        if isinstance(score, bool) or not isinstance(score, Real):
            raise TypeError(f"scoring must return a number, got {type(score)!r}.")
        return -math.inf if math.isnan(score) else float(score)


def is_of_the_user(scoring: Any) -> bool:
    """Return whether a scorer is, or holds, a function that is not scikit-learn's."""
    if isinstance(scoring, Mapping):
        return any(map(is_of_the_user, scoring.values()))
    function = getattr(scoring, "_score_func", scoring)  # of `make_scorer`
    return callable(function) and not str(
        getattr(function, "__module__", "")
    ).startswith("sklearn.")


@dataclass(frozen=True)
class Runner:
    """Runs of the same cost, independent of each other given the held-out records."""

    estimator: Any
    candidates: Any
    classes: ArrayLike
    run_mu: float
    keys: KeyStream

    def _budget(self) -> dict[str, Any]:
        return budget_of(rho_from_mu(self.run_mu))

    def check(self, X: Any, y: NDArray[Any], n_features: int, score: Score) -> None:
        """Refuse, before anything is charged, what would end a run.

        Looks at the candidates, or at 100 of them, as their fits do beforehand, and
        scores one fit to made-up records if the score is public. Of classifiers that
        are not privfeat's nothing is known before a run.
        """
        for params in self._looked_at():
            fitted = self._candidate(params)
            if not hasattr(fitted, "planned"):
                return
            checked_plan(fitted, X, y, n_features)
        if isinstance(score, PublicScore):
            with without_warnings():
                labels = np.asarray(self.classes)
                rows: Any = np.eye(len(labels), n_features)
                if reads_by_itself(self.estimator):  # rows of numbers are none to it
                    rows = score.rows(len(labels))
                fitted.fit(rows, labels)
            score(fitted)

    def _looked_at(self) -> Iterator[dict[str, Any]]:
        listed = self.candidates
        listed = [listed] if isinstance(listed, Mapping) else listed
        drawn = any(hasattr(v, "rvs") for one in listed for v in one.values())
        if not drawn and len(ParameterGrid(listed)) <= _LOOKED_AT:
            yield from ParameterGrid(listed)
            return
        yield from ParameterSampler(listed, _LOOKED_AT, random_state=0)

    def score_plan(self) -> ReleasePlan:
        """Return the plan of one score: as much noise as a fit has in total."""
        adjacency = self.estimator.adjacency
        query = Query("score", score_sensitivity(adjacency))
        return plan_releases([query], **self._budget(), adjacency=adjacency)

    def best(
        self,
        X: NDArray[Any],
        y: NDArray[Any],
        score: Callable[[Any], float],
        runs: RunCount,
    ) -> Run:
        """Return the first run of the highest score among a secret number of runs."""
        best: Run | None = None
        # a warning would show a run that is not released
        with without_warnings(), charged_before():
            n_runs = draws.number_of_runs(self.keys.draw_noise_key(), runs)
            for _ in range(n_runs):
                run = self._run(X, y, score)
                if best is None or run.score > best.score:
                    best = run
        if best is None:
            raise PrivacyError("the number of runs must be at least 1.")
        return best

    def _candidate(self, params: dict[str, Any]) -> Any:
        candidate = clone(self.estimator).set_params(**params)
        shared = {classes_name(self.estimator): self.classes}
        return budgeted(candidate, shared, **self._budget())

    def _run(self, X: NDArray[Any], y: NDArray[Any], score: Score) -> Run:
        """Draw a candidate, fit it, check its cost, and return it with its score."""
        seed = self.keys.draw_integer() % 2**32
        (params,) = ParameterSampler(self.candidates, 1, random_state=seed)
        seeded = self.keys.seeded
        fitted = self._candidate(params)
        fitted.set_params(random_state=self.keys.draw_integer() if seeded else None)
        fitted.fit(X, y)
        self._check(fitted)
        return Run(fitted, params, score(fitted))

    def _check(self, fitted: Any) -> None:
        """Fail unless the fit says that it cost what a run may cost."""
        said = getattr(fitted, "privacy_", None)
        if not isinstance(said, PrivacyStatement) or said.selection is not None:
            raise PrivacyError("every fit must have a privacy statement of its own.")
        mu = said.mu
        if (
            mu is None
            or not mu <= self.run_mu * (1.0 + SLACK / 2)
            or said.adjacency != self.estimator.adjacency
            or said.seeded != self.keys.seeded
            or getattr(said, "unit", "record") != "record"
            or said.arithmetic != getattr(self.estimator, "arithmetic", "float64")
        ):
            raise PrivacyError(
                f"every fit must cost mu = {self.run_mu:.6g} and be independent of "
                f"the others, got a statement of mu = {mu!r}."
            )
