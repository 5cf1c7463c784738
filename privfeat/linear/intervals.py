"""Intervals for a private regression, from its releases: they cost nothing."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from privfeat._checks import check_int, check_real
from privfeat._messages import check_columns
from privfeat._process import times_matrix
from privfeat._types import RowScaling
from privfeat.core.noise.release import Release
from privfeat.data import LazyFeatures
from privfeat.estimation.bases import with_params_of_fit
from privfeat.estimation.inputs import read_rows
from privfeat.estimation.predictor import DEFAULT_BOUNDS, read_in_parts, scaled_rows
from privfeat.linear.model import DPLinearModel
from privfeat.linear.parameters.prior import Prior
from privfeat.linear.problem import Shape

if TYPE_CHECKING:
    from privfeat.solvers.regression import NoisyRegression


class RegressionIntervals(DPLinearModel):
    """Says how far the coefficients and predictions of a regression may be off."""

    target_bounds: tuple[float, float] | None = None
    row_scaling: RowScaling = "clip"
    intercept_scaling: float = 0.5
    target_scaling: float = 0.7
    ridge: float | None = None
    prior: Any = None

    @with_params_of_fit
    def coef_interval(
        self,
        level: float = 0.95,
        *,
        n_resamples: int = 200,
        random_state: Any = 0,
    ) -> NDArray[np.float64]:
        """Return the lower and upper ends of an interval for each coefficient.

        Parameters
        ----------
        level : float, default=0.95
            Part of fits whose interval holds the coefficient; in [0.5, 0.999]. Default:
            0.95, as is usual.
        n_resamples : int, default=200
            Simulated fits, in [20, 100000]. Default: 200, since the width is then known
            to 5 % (``1 / sqrt(2 * 200)``); its coverage is in RESULTS, *Intervals*.
        random_state : int, RandomState or None, default=0
            Of the simulation. Default: 0, since that needs no secret: it adds nothing
            to a guarantee.

        Returns
        -------
        interval : array of shape (n_features, 2)
            In units of ``coef_``.

        Notes
        -----
        **What it covers.** The coefficients of the population's linear relation, of
        rows as they are bounded (see ``clip_norm``): both noise and sampling may have
        moved the fit. The width is a quantile of the normal law times the root mean
        square error of fits that are simulated from the releases with noise of the
        known law: `privfeat.solvers.intervals`. Errors of targets are taken to be
        normal with one variance, which the same releases show.

        **What it does not.** A relation that is not linear, and errors that vary with
        the rows. Along directions in which the features vary by less than the noise, a
        fit shrinks coefficients; how large they were is a guess, by what the others
        are, and the intervals may be too narrow. benchmarks/RESULTS.md has coverage.

        **Cost.** None: it depends on releases and public facts alone.

        **A prior, users.** ValueError after a fit with a prior or with ``groups``: how
        far it is off depends on how wrong the prior is, or on how much the records of
        a user are alike.
        """
        errors = self._errors(n_resamples, random_state)
        coef, units = self._fitted()
        half = _quantile(level) * np.sqrt(np.mean(errors**2, axis=0))
        ends = (coef[:, None] + half[:, None] * [-1.0, 1.0]) * units[:, None]
        return np.asarray(ends[: len(self.coef_)])

    @with_params_of_fit
    def predict_interval(
        self,
        X: ArrayLike | LazyFeatures,
        level: float = 0.95,
        *,
        n_resamples: int = 200,
        random_state: Any = 0,
    ) -> NDArray[np.float64]:
        """Return the lower and upper ends of an interval for the target of each row.

        Parameters
        ----------
        X : array-like or LazyFeatures of shape (n_samples, n_features)
        level, n_resamples, random_state
            As for `coef_interval`; the part of new records is meant, over fits.

        Returns
        -------
        interval : array of shape (n_samples, 2)
            Inside ``target_bounds``.

        Notes
        -----
        Adds to the error of the coefficients the variance of the
        residuals, as the releases show it, plus one stddev of its own noise. Residuals
        are taken to be normal, with one variance for all rows.
        """
        check_is_fitted(self, "coef_")
        if isinstance(X, LazyFeatures):
            more = {"n_resamples": n_resamples, "random_state": random_state}
            parts = (self.predict_interval(x, level, **more) for x in read_in_parts(X))
            return np.concatenate([*parts])
        from privfeat.solvers.intervals import residual_variance

        check_columns(X=X)
        features = read_rows(self, X, reset=False)
        rows = scaled_rows(features, self.center_, self.row_scaling)
        coef, units = self._fitted()
        errors = units * self._errors(n_resamples, random_state)
        if len(coef) > rows.shape[1]:
            rows = np.column_stack([rows, np.ones(len(rows))])
        moved = np.mean(times_matrix(rows, errors.T) ** 2, axis=1)
        scale = self._target_unit()
        spread = residual_variance(self._released(), coef) * scale**2
        half = _quantile(level) * np.sqrt(moved + spread)
        scores = times_matrix(rows, (coef * units)[:, None])[:, 0]
        middle = scores + np.mean(self._bounds())
        ends = middle[:, None] + half[:, None] * [-1.0, 1.0]
        return np.asarray(np.clip(ends, *self._bounds()))

    def _bounds(self) -> tuple[float, float]:
        low, high = self.target_bounds or DEFAULT_BOUNDS
        return float(low), float(high)

    def _row_norm(self) -> float:
        """Return the norm to which rows of features, target and constant are cut."""
        constant = float(self.intercept_scaling) if self.fit_intercept else 0.0
        parts = np.linalg.norm((1.0, float(self.target_scaling), constant))
        return float(self.clip_norm) * float(parts)

    def _regression(self, noisy_moments: Release) -> "NoisyRegression":
        """Return the noisy regression of released moments."""
        from privfeat.solvers.regression import NoisyRegression

        norm, n_features = float(self.clip_norm), self.n_features_in_
        constant = norm * float(self.intercept_scaling) if self.fit_intercept else 0.0
        ridge = None if self.ridge is None else float(self.ridge)
        return NoisyRegression(
            noisy_moments, n_features, self._row_norm(), constant, ridge
        )

    def _part(self) -> float:
        """Return the norm to which a record's part of residual sums is cut, in rows.

        Residuals have a unit that follows from releases: the size matters only for
        those beyond 2. An eighth leaves these to rows 16 times shorter than the bound.
        """
        return self._row_norm() / 8.0

    def _store(self, coef: NDArray[np.float64], shape: Shape) -> None:
        """Set ``coef_`` and ``intercept_`` in units of the targets."""
        in_targets = coef[0] * self._units(n := self.n_features_in_)
        self.coef_, constants = in_targets[:n], in_targets[n:]
        self.intercept_ = np.float64(np.mean(self._bounds()) + np.sum(constants))

    def _target_unit(self) -> float:
        """Return one unit of the target coordinate, in units of the targets."""
        low, high = self._bounds()
        return (high - low) / 2.0 / (float(self.clip_norm) * float(self.target_scaling))

    def _units(self, n_features: int) -> NDArray[np.float64]:
        """Return what slopes and offset are multiplied by, to be those of targets."""
        norm = float(self.clip_norm)
        n_columns = n_features + bool(self.fit_intercept)
        units = np.full(n_columns, norm if self.row_scaling == "unit" else 1.0)
        if self.fit_intercept:
            units[-1] = norm * float(self.intercept_scaling)
        return self._target_unit() * units

    def _fitted(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return slopes and offset in units of the rows, and `_units`."""
        units = self._units(self.n_features_in_)
        offset = self.intercept_ - np.mean(self._bounds())
        return np.array([*self.coef_, offset][: len(units)]) / units, units

    def _released(self) -> "NoisyRegression":
        """Return the noisy regression of a fit; raise if it can have no intervals."""
        check_is_fitted(self, "coef_")
        if self.prior is not None or Prior.fact in self.privacy_.public:
            raise ValueError(
                "prior must be None for intervals, got one. Fit without it: how far a "
                "fit with a prior is off depends on how wrong the prior is, and no "
                "release tells that."
            )
        if self.privacy_.unit == "user":
            raise ValueError(
                "intervals must be of a fit that protects records, got one of users: "
                "records of one user may be alike, and no release tells how much."
            )
        if not hasattr(self, "moments_"):
            raise AttributeError(
                "moments_ must be there for intervals, got a model that was saved "
                "without. Fit it again."
            )
        # in a pipeline other steps have releases as well, this one the last moments
        own = [r for r in self.privacy_.releases if r.name.endswith("moments")][-1]
        stddev = own.noise_stddev
        return self._regression(Release("moments", self.moments_, stddev, True))

    def _errors(self, n_resamples: int, random_state: Any) -> NDArray[np.float64]:
        """Return simulated errors of slopes and offset, in units of the rows."""
        from privfeat.solvers.intervals import simulated_errors

        check_int("n_resamples", n_resamples, low=20, high=100_000)
        regression = self._released()
        return simulated_errors(
            regression,
            self._fitted()[0],
            sums_stddev=self.privacy_.releases[-1].noise_stddev,
            n_steps=self.n_iter_ - 1,
            bound=self._part(),
            n_resamples=int(n_resamples),
            random_state=check_random_state(random_state),
        )


def _quantile(level: float) -> float:
    check_real("level", level, low=0.5, high=0.999)
    return float(ndtri(0.5 + float(level) / 2.0))
