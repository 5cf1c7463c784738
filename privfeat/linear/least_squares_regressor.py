"""DPLeastSquaresRegressor: ridge regression from one noisy matrix."""

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import column_or_1d

from privfeat._checks import check_real, optional
from privfeat._messages import without_data
from privfeat._progress import phase
from privfeat._types import RowScaling
from privfeat._warnings import warn
from privfeat.core.accounting.plan import Query
from privfeat.core.bounds import sensitivity
from privfeat.data import LazyFeatures
from privfeat.estimation.predictor import DEFAULT_BOUNDS
from privfeat.estimation.scores import ScoredRegressor
from privfeat.linear.docs import document
from privfeat.linear.model import DPLinearModel
from privfeat.linear.prior import KNOWN, read_prior
from privfeat.linear.problem import LinearProblem, Shape
from privfeat.linear.ranges import RANGES, Ranges

if TYPE_CHECKING:
    from privfeat.core.noise.gaussian_mechanism import GaussianMechanism
    from privfeat.linear.rows.bounded import BoundedRows


def _check_bounds(name: str, bounds: Any) -> None:
    if not isinstance(bounds, tuple | list) or len(bounds) != 2:
        raise TypeError(f"{name} must be a pair of numbers, got {bounds!r}.")
    low, high = (check_real(name, bound, low=-1e100, high=1e100) for bound in bounds)
    if not low < high:
        raise ValueError(f"{name} must increase, got {bounds!r}.")


@document
class DPLeastSquaresRegressor(ScoredRegressor, DPLinearModel):
    """Private linear regression of a bounded target, in closed form.

    Releases one matrix, ``sum z z^T`` of the rows ``z = (x, s t, c)``: features, target
    and a constant. It holds every sum that a regression needs, the count included, and
    is solved by ridge regression on centred features.

    Parameters
    ----------
    {budget}
    target_bounds : (float, float), optional
        Smallest and largest target, public: targets and predictions are cut to them.
        Choose them from knowledge about the quantity, not from ``y``. None warns and
        takes (-1, 1).
    row_scaling : {{"unit", "clip"}}, default="clip"
        Clip rows that are too long, or scale every row to norm ``clip_norm``, also when
        predicting.
    clip_norm : float, default=1.0
        Norm of features up to which no record is clipped, in feature units; in [1e-4,
        1e4]. Choose the norm of a typical row, or scale the features by constants.
    fit_intercept : bool, default=True
    intercept_scaling : float, default=0.5
        The constant ``c``, in units of ``clip_norm``; in [0.02, 50].
    target_scaling : float, default=0.7
        The factor ``s`` of a target in [-1, 1], in units of ``clip_norm``; in [0.02,
        50].
    ridge : float, optional
        Added to the diagonal of the centred moments, in squared feature units, >= 0.
        Default: 0.4 times the spectral norm to expect of the noise.
    prior : array of shape (n_features,) or fitted linear estimator, optional
        Coefficients that are expected, **public**, in units of the target per unit of a
        feature; an array may have one more entry, the intercept. How much they count
        the fit finds from its release, at no cost: see `privfeat.solvers.regression`.
    {tail}

    Attributes
    ----------
    coef_ : array of shape (n_features,)
    intercept_ : float
    n_iter_ : int
        Always 1.
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features,)
        Only for input with string column names.
    privacy_ : PrivacyStatement
        What was released, at what cost, assuming what.

    Notes
    -----
    **Guarantee.** One query ``moments``, sensitivity ``R**2`` (``sqrt(2)`` times that
    under replace-one) with ``R = clip_norm * sqrt(1 + intercept_scaling**2 +
    target_scaling**2)``, the norm to which whole rows ``z`` are clipped: the Gram
    sensitivity of ``privfeat.core.bounds.sensitivity``.

    A row that is too long is scaled as a whole, target and constant included. A record
    then counts with a smaller weight, and the linear relation that it supports stays
    the same; clipping its features alone would bend that relation.

    **Scales.** With noise ``k R**2`` in every entry, ``x . t / s`` carries ``k R**2 /
    s``, and the matrix that is inverted moves the result by ``k R**2`` times the norm
    ``B`` of the coefficients. In units of ``clip_norm`` the squared error goes as
    ``(1 + c**2 + s**2)**2 (1 / s**2 + B**2)``, least where ``2 B**2 s**4 + s**2 = 1 +
    c**2``: at ``s = 1.1`` for ``B = 0``, 0.7 for ``B = 1.25`` and 0.5 for ``B = 2.8``.
    Means carry ``k R**2 / c`` and are the smaller part of the error, so ``c`` is chosen
    smaller.

    {guarantees}

    **Source.** Perturbed sufficient statistics, as studied in [1]_, here with one
    release instead of several and a ridge that follows from its noise.

    References
    ----------
    .. [1] Wang. Revisiting Differentially Private Linear Regression. UAI 2018.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from privfeat import DPLeastSquaresRegressor
    >>> X, y = make_regression(n_samples=5000, n_features=5, random_state=0)
    >>> model = DPLeastSquaresRegressor(
    ...     epsilon=2, clip_norm=3.0, target_bounds=(-400, 400)
    ... ).fit(X, y)
    >>> model.score(X, y) > 0.8
    True
    """

    target_bounds: tuple[float, float] | None = None
    row_scaling: RowScaling = "clip"
    intercept_scaling: float = 0.5
    target_scaling: float = 0.7
    ridge: float | None = None
    prior: Any = None

    _ranges: ClassVar[Ranges] = {
        **RANGES,
        # so that whole rows and the constant stay inside the range of ``clip_rows``
        "clip_norm": partial(check_real, low=1e-4, high=1e4),
        "intercept_scaling": partial(check_real, low=0.02, high=50.0),
        "target_scaling": partial(check_real, low=0.02, high=50.0),
        "target_bounds": optional(_check_bounds),
    }

    def predict(self, X: ArrayLike | LazyFeatures) -> NDArray[np.float64]:
        """Return predictions inside ``target_bounds``, of shape (n_samples,)."""
        return np.clip(self._scores(X), *self._bounds())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # on the few records of its checks
        return tags

    def _bounds(self) -> tuple[float, float]:
        low, high = self.target_bounds or DEFAULT_BOUNDS
        return float(low), float(high)

    def _problem(self, y: Any, n_features: int) -> LinearProblem:
        y = without_data(column_or_1d, y, warn=True)
        if y.dtype.kind not in "biuf":
            y = without_data(y.astype, np.float64)
            if not np.all(np.isfinite(y)):
                raise ValueError("y must not contain NaN or infinity.")
        if self.target_bounds is None:
            warn(
                f"target_bounds=None takes targets to be in {DEFAULT_BOUNDS} and cuts "
                "all others. Pass the range that is known of the quantity."
            )
        low, high = self._bounds()
        with np.errstate(over="ignore"):  # a warning would show a target
            y = y.astype(np.float64)
        targets = (np.clip(y, low, high) - low) / (high - low)
        norm = float(self.clip_norm)
        constant = norm * float(self.intercept_scaling) if self.fit_intercept else None
        shape = Shape(
            n_outputs=1,
            n_columns=n_features + bool(self.fit_intercept),
            constant=constant or 0.0,
            loss="squared",
            prior=read_prior(
                self.prior,
                classes=None,
                n_features=n_features,
                n_outputs=1,
                exclusive=False,
            ),
        )
        return LinearProblem(
            targets=2.0 * targets - 1.0,
            n_outputs=1,
            fitted={},
            public=(
                f"the bounds of the target ({low:g} to {high:g})",
                *(KNOWN if shape.prior else ()),
            ),
            shape=shape,
            queries=self._queries(shape),
            budget_split=self.budget_split,
            bounded=partial(
                _target_rows,
                unit_norm=norm if self.row_scaling == "unit" else None,
                target_scale=norm * float(self.target_scaling),
                clip_norm=self._radius(),
                intercept_scaling=constant,
            ),
            center=np.zeros(n_features),
        )

    def _radius(self) -> float:
        """Return the norm to which rows of features, target and constant are cut."""
        constant = float(self.intercept_scaling) if self.fit_intercept else 0.0
        parts = (1.0, float(self.target_scaling), constant)
        return float(self.clip_norm) * float(np.linalg.norm(parts))

    def _queries(self, shape: Shape) -> list[Query]:
        return [Query("moments", sensitivity.gram(self._radius(), self.adjacency))]

    def _solve(
        self, rows: "BoundedRows", mechanism: "GaussianMechanism", shape: Shape
    ) -> NDArray[np.float64]:
        from privfeat.core.sums.statistics import exact_gram
        from privfeat.solvers.regression import centred_ridge
        from privfeat.solvers.spectrum import noise_ridge

        with phase("moments"):
            exact = exact_gram(rows)
        moments = mechanism.release("moments", exact, symmetric=True)
        ridge = noise_ridge(moments, scale=0.4) if self.ridge is None else self.ridge
        slopes, offset = centred_ridge(
            moments,
            n_features=self.n_features_in_,
            ridge=float(ridge),
            **self._prior_moments(shape),
        )
        coef = np.array([*slopes, offset][: shape.n_columns])[None, :]
        return coef / (float(self.clip_norm) * float(self.target_scaling))

    def _prior_moments(self, shape: Shape) -> dict[str, Any]:
        """Return the prior in units of the moments, as options of `centred_ridge`."""
        if (prior := shape.prior) is None:
            return {}
        low, high = self._bounds()
        half, norm = (high - low) / 2.0, float(self.clip_norm)
        scale = norm * float(self.target_scaling)
        unit = half * norm if self.row_scaling == "unit" else half
        found: dict[str, Any] = {"prior": prior.coef[0] * scale / unit}
        if prior.intercept is not None and self.fit_intercept:
            offset = (float(prior.intercept[0]) - low) / half - 1.0
            found["prior_offset"] = offset * scale / shape.constant
        return found

    def _store(self, coef: NDArray[np.float64], shape: Shape) -> None:
        """Set ``coef_`` and ``intercept_`` in units of the targets."""
        low, high = self._bounds()
        half, n_features = (high - low) / 2.0, self.n_features_in_
        norm = float(self.clip_norm) if self.row_scaling == "unit" else 1.0
        self.coef_ = half * norm * coef[0, :n_features]
        offset = np.sum(coef[0, n_features:]) * shape.constant
        self.intercept_ = np.float64(low + half * (1.0 + offset))


def _target_rows(*args: Any, **options: Any) -> "BoundedRows":
    from privfeat.linear.rows.target import TargetRows  # imports JAX, for fits alone

    return TargetRows(*args, **options)
