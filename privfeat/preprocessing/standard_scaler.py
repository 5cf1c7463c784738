"""DPStandardScaler: means and variances of columns from one noisy release."""

import math
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import OneToOneFeatureMixin

from privfeat._checks import check_choice, check_int
from privfeat._types import ADJACENCIES
from privfeat.core.accounting.plan import Query
from privfeat.core.bounds import replacement
from privfeat.core.noise.gaussian_mechanism import GaussianMechanism
from privfeat.core.sums.confidence import BOX_STEP, exact_column_moments
from privfeat.estimation.bases import with_params_of_fit
from privfeat.preprocessing.private import (
    Floats,
    PrivateTransformer,
    column_bounds,
    document,
    placed,
)
from privfeat.solvers.spectrum import shrunk_towards

MOMENTS = "moments"
# Squared scale of the means, for squares of scale 1; see the notes of the class.
_MEAN_SHARE = {"add_remove": 1 / 2, "replace_one": 3 / 8}
_SMALLEST_VARIANCE = 1e-9  # of what has no noise, on a grid of 2**-20


@document
class DPStandardScaler(OneToOneFeatureMixin, PrivateTransformer):
    """Scale columns to mean 0 and variance 1, with a private mean and variance.

    Parameters
    ----------
    bounds : (low, high)
        The least and the greatest value of each column, **public**: two numbers, or two
        arrays of shape (n_features,). Values outside are cut to them, in `fit` and in
        `transform`. For what `PublicColumns` makes it is (-1, 1). Default: none, which
        is refused, since no bounds suit all columns, and those of the records
        themselves would leak.
    epsilon, delta, rho, noise_multiplier : float, optional
        The budget: one of epsilon, rho and noise_multiplier. Default: epsilon 1, since
        no fit may be without noise unasked, and delta 1e-5, as in the papers.
    adjacency : {{"add_remove", "replace_one"}}, default="add_remove"
        Default: add/remove, since it hides the number of records as well, and
        replace-one needs up to twice the noise.
    arithmetic : {{"float64", "exact"}}, default="float64"
        ``"exact"`` draws discrete noise, which has no weakness of floating point.
        Default: float64, as of `DPFC`.
    max_group_size : int, optional
        With ``groups`` in `fit`: at most so many records of a user count; the noise
        grows with it.
    ledger : PrivacyLedger, optional
        Charged before noise is drawn.
    random_state : None or int
        Default: None, since noise protects only while nobody can guess it. An integer
        makes it reproducible: **not private** against who guesses it.

    Attributes
    ----------
    mean_, var_, scale_ : arrays of shape (n_features,)
        In the units of the columns; ``scale_`` is the root of ``var_``, above 0.
    {attributes}

    Notes
    -----
    **Guarantee.** One release, ``moments``: the number of records and of each of the
    ``d`` columns the sums of ``u`` and of ``u^2 - s``, where the bounds of a column
    became -1 and 1. Their sensitivity together is about ``3/4 sqrt(d)``, and ``sqrt(3/2
    d)`` under replace-one: `privfeat.core.bounds.replacement.column_moments` has the
    proof. With ``groups`` it is ``max_group_size`` times that
    (`privfeat.core.bounds.sensitivity.per_user`). All else follows from the release.

    **Why these weights.** A record with ``u = 0`` has no square, and one with ``abs(u)
    = 1`` has all of it; the shift ``s`` takes the middle away. With sums of ``u``
    scaled by ``a`` the best shift is ``s = (1 + a^2) / 2``, where both add ``s`` to the
    norm. What is left to choose is ``a``: the variances of the noise in a mean and in a
    mean square add up to ``s^2 (1 + 1 / a^2)`` times the same factor, least at ``a^2 =
    1/2``: 27/16, where sums without weights and shift have 4. Under replace-one it is
    ``4 a^2 (1 + 1/a^2)``, about 5.5 at ``a^2 = 3/8``, within 1 % of the least, instead
    of 8. The number of records gets the scale ``(d / 9)^(1/4)``, where its noise adds
    as much to all as it takes.

    Where noise matters, means are shrunk towards the middle of the bounds, variances
    towards their mean (James and Stein 1961), and no variance is less than the
    standard deviation of its own noise: a column that nothing is known of is scaled
    like the others, and no noise is divided by almost zero.

    **Public.** ``bounds``, the number and names of columns, that all values are finite,
    all parameters but ``random_state``; under replace-one the number of records.

    {unprotected}

    Rows that follow have a norm of about ``sqrt(d)``: `after_scaling` has parameters
    for the estimator that gets them.

    Examples
    --------
    >>> import numpy as np
    >>> from privfeat.preprocessing import DPStandardScaler
    >>> X = np.random.default_rng(0).normal([20, 1000], [2, 100], size=(20_000, 2))
    >>> bounds = [0, 0], [50, 3000]
    >>> scaler = DPStandardScaler(epsilon=1, bounds=bounds).fit(X)
    >>> scaler.mean_.round(-1).tolist(), scaler.privacy_.epsilon
    ([20.0, 1000.0], 1.0)
    """

    bounds: Any = None

    _learned: ClassVar[tuple[str, ...]] = ("mean_", "var_", "scale_")

    @with_params_of_fit
    def transform(self, X: ArrayLike) -> Floats:
        """Return ``(X - mean_) / scale_``, of values cut to their bounds.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        features : float64 array of shape (n_samples, n_features)

        Raises
        ------
        NotFittedError
            Before ``fit``.
        TypeError, ValueError
            For rows that are not finite numbers of ``n_features_in_`` columns.
        """
        rows = self._rows(X, reset=False)
        cut = np.clip(rows, *self.bounds_of(rows.shape[1]))
        return np.asarray((cut - self.mean_) / self.scale_)

    def inverse_transform(self, X: ArrayLike) -> Floats:
        """Return the values that became ``X``, of shape (n_samples, n_features).

        Raises
        ------
        NotFittedError, TypeError, ValueError
            As `transform`.
        """
        rows = self._outputs(X, self.n_features_in_)
        return np.asarray(rows * self.scale_ + self.mean_)

    def bounds_of(self, n_features: int) -> tuple[Floats, Floats]:
        """Return the least and the largest value of each column: public.

        Those of a scaler that was saved when they had a default are that default.
        """
        bounds = (-1.0, 1.0) if self.bounds is None else self.bounds
        return column_bounds(bounds, n_features)

    def _given_bounds(self, n_features: int) -> tuple[Floats, Floats]:
        """Return lower and upper bounds of all columns, or raise ValueError."""
        if self.bounds is None:
            raise ValueError(
                "bounds must be the least and the greatest value that everyone knows "
                "to be possible for each column, got None. Pass (low, high) from a "
                "code book or the unit, never from the records; (-1, 1) after "
                "PublicColumns."
            )
        return self.bounds_of(n_features)

    def _scales(self, n_features: int) -> tuple[float, float, float]:
        """Return the scales of the count and of the means, and the shift."""
        share = _MEAN_SHARE[self.adjacency]
        return (n_features / 9.0) ** 0.25, math.sqrt(share), (1.0 + share) / 2.0

    def _queries(self, n_features: int) -> list[Query]:
        self._given_bounds(n_features)
        check_choice("adjacency", self.adjacency, ADJACENCIES)
        scales = self._scales(n_features)
        bound = replacement.column_moments(n_features, *scales, self.adjacency)
        return [Query(MOMENTS, bound, n_blocks=3)]

    def _grid_step(self, n_features: int, name: str) -> float:
        count, mean, _ = self._scales(n_features)
        return min(count, mean, 1.0) * BOX_STEP

    def _facts(self) -> list[str]:
        return [*super()._facts(), "the bounds of the columns"]

    def _learn(
        self, mechanism: GaussianMechanism, records: Floats, counted: NDArray[np.bool_]
    ) -> None:
        """Release count, sums and squares, and set means and scales that follow."""
        n_features = records.shape[1]
        low, high = self.bounds_of(n_features)
        *scales, shift = self._scales(n_features)
        values = placed(records, low, high)
        found = [
            mechanism.release(MOMENTS, exact.scaled(scale)).unscaled(scale, MOMENTS)
            for exact, scale in zip(
                exact_column_moments(values, counted, shift),
                (*scales, 1.0),
                strict=True,
            )
        ]
        count, first, second = found
        n = max(float(count.value), 1.0)
        noise = first.noise_stddev / n, second.noise_stddev / n
        means = shrunk_towards(first.value / n, noise[0]).clip(-1.0, 1.0)
        squares = (shift + second.value / n).clip(0.0, 1.0)
        variances = _variances(squares, means, *noise)
        half = (high - low) / 2.0
        self.mean_ = low + half * (1.0 + means)
        self.var_ = half**2 * variances
        self.scale_ = half * np.sqrt(variances)


def after_scaling(n_features: int) -> dict[str, Any]:
    """Return parameters that suit a linear estimator after a `DPStandardScaler`.

    Parameters
    ----------
    n_features : int
        Number of columns ``d``: public.

    Returns
    -------
    params : dict
        ``row_scaling="clip"``; ``clip_norm``, a third of the ``sqrt(d)`` that rows have
        on average; and ``intercept_scaling``, half of what a column has.

    Notes
    -----
    Chosen once for all tables, and for a scaler that gets a tenth of rho (a
    `PrivatePipeline` gives it a ninth), by simulation on eleven small ones, breast
    cancer among them.

    Examples
    --------
    >>> after_scaling(9)
    {'row_scaling': 'clip', 'clip_norm': 1.0, 'intercept_scaling': 0.5}
    """
    norm = math.sqrt(check_int("n_features", n_features, low=1)) / 3.0
    return {"row_scaling": "clip", "clip_norm": norm, "intercept_scaling": 0.5}


def _variances(
    squares: Floats, means: Floats, mean_noise: float, square_noise: float
) -> Floats:
    """Return variances, in (0, 1], from means and mean squares with noise."""
    found = squares - means**2
    noise = np.hypot(square_noise, 2.0 * np.abs(means) * mean_noise)
    average = float(np.mean(found))
    spread = float(np.sqrt(np.mean(noise**2)))
    found = average + shrunk_towards(found - average, spread)
    floored = np.maximum(found, noise).clip(0.0, 1.0)
    # without noise a column may be constant
    return np.where(floored > _SMALLEST_VARIANCE, floored, 1.0)
