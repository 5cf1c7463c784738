"""DPPCA: principal directions from one noisy matrix of second moments."""

import math
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin

from privfeat._checks import check_int, check_real
from privfeat._process import times_matrix
from privfeat.core.accounting.plan import Query
from privfeat.core.bounds import sensitivity
from privfeat.core.bounds.grid import CLIP_RANGE, check_width, grid_step
from privfeat.core.noise.gaussian_mechanism import GaussianMechanism
from privfeat.core.sums.processes import current_team
from privfeat.core.sums.statistics import exact_gram
from privfeat.estimation.rows.bounded import BoundedRows
from privfeat.preprocessing.private import Floats, PrivateTransformer, document
from privfeat.solvers.spectrum import check_gram_cost


@document
class DPPCA(ClassNamePrefixFeaturesOutMixin, PrivateTransformer):
    """Project rows on the directions of largest second moment, found privately.

    Parameters
    ----------
    n_components : int, optional
        Number of directions, in [1, n_features]; default: all of them, as in
        scikit-learn.
    clip_norm : float, optional
        Rows longer than it are shortened to it, in `fit` alone; in [1e-6, 1e6].
        **Public.** Default: ``sqrt(n_features)``, since no row of numbers in [-1, 1]
        exceeds it, and rows of a `DPStandardScaler` have it on average.
    center : array-like of shape (n_features,), optional
        What is subtracted from rows before: **public**. Default: nothing, as for rows
        that were scaled to mean 0.
    {budget}

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        Rows of norm 1, orthogonal, from the largest second moment on; the largest entry
        of each is positive.
    explained_variance_ratio_ : array of shape (n_components,)
        Part of each in the sum of the eigenvalues above 0, of the noisy matrix: noise
        makes the last ones larger.
    mean_ : array of shape (n_features,)
        ``center``, or zeros.
    {attributes}

    Notes
    -----
    **Guarantee.** One release, ``gram``, of ``sum x x^T`` over clipped rows, by the
    Gaussian mechanism with symmetric noise, [1]_ Algorithm 1; sensitivity
    ``clip_norm**2``, and ``sqrt(2)`` times that under replace-one
    (`privfeat.core.bounds.sensitivity.gram`), with ``groups`` ``max_group_size`` times
    as much. Directions are computed from the release alone. `DPLeastSquares`
    releases the same sum, under the same name.

    **How well.** The noise has a spectral norm of about ``s sqrt(2 n_features)`` for
    its standard deviation ``s`` on the diagonal: a direction is found if its eigenvalue
    stands out from those after it by more.

    **Public.** ``clip_norm``, ``center``, the number and names of columns, that all
    values are finite, all parameters but ``random_state``; under replace-one the number
    of records.

    {unprotected}

    References
    ----------
    .. [1] Dwork, Talwar, Thakurta & Zhang. Analyze Gauss: Optimal Bounds for
       Privacy-Preserving Principal Component Analysis. STOC 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from privfeat.preprocessing import DPPCA
    >>> draw = np.random.default_rng(0)
    >>> X = draw.normal(size=(5000, 1)) @ [[0.6, 0.8, 0.0]]
    >>> pca = DPPCA(n_components=1, epsilon=1).fit(X)
    >>> np.abs(pca.components_).round(1).tolist()
    [[0.6, 0.8, 0.0]]
    """

    n_components: int | None = None
    clip_norm: float | None = None
    center: Any = None

    _learned: ClassVar[tuple[str, ...]] = (
        "components_",
        "explained_variance_ratio_",
        "mean_",
    )

    def transform(self, X: ArrayLike) -> Floats:
        """Return ``(X - mean_) components_^T``, (n_samples, n_components).

        Raises
        ------
        NotFittedError, TypeError, ValueError
            As `DPStandardScaler.transform`.
        """
        rows = self._rows(X, reset=False)
        return times_matrix(rows - self.mean_, self.components_.T)

    def inverse_transform(self, X: ArrayLike) -> Floats:
        """Return rows of shape (n_samples, n_features) in the directions found.

        Raises
        ------
        NotFittedError, TypeError, ValueError
            As `transform`, of ``n_components`` columns.
        """
        rows = self._outputs(X, len(self.components_))
        return times_matrix(rows, self.components_) + self.mean_

    def n_outputs(self, n_features: int) -> int:
        """Return how many columns ``transform`` makes of so many: public."""
        if self.n_components is None:
            return n_features
        return check_int("n_components", self.n_components, low=1, high=n_features)

    @property
    def _n_features_out(self) -> int:
        """The number of columns, by which scikit-learn names them."""
        return len(self.components_)

    def _norm(self, n_features: int) -> float:
        norm = math.sqrt(n_features) if self.clip_norm is None else self.clip_norm
        return check_real("clip_norm", norm, low=CLIP_RANGE[0], high=CLIP_RANGE[1])

    def _center(self, n_features: int) -> Floats:
        """Return the public center, of shape (n_features,), or raise ValueError."""
        if self.center is None:
            return np.zeros(n_features)
        center = np.asarray(self.center, np.float64)
        if center.shape != (n_features,) or not np.all(np.abs(center) <= 1e100):
            raise ValueError(
                f"center must be {n_features} finite numbers, known to everyone, got "
                f"shape {center.shape}."
            )
        return center

    def _queries(self, n_features: int) -> list[Query]:
        self.n_outputs(n_features)
        self._center(n_features)
        check_width(n_features)
        norm = self._norm(n_features)
        return [Query("gram", sensitivity.gram(norm, self.adjacency))]

    def _check_size(self, n_features: int) -> None:
        remedy = "Leave columns out beforehand."
        check_gram_cost("DPPCA", n_features, 1, remedy, intercept=False)

    def _grid_step(self, n_features: int, name: str) -> float:
        return grid_step(self._norm(n_features)) ** 2

    def _learn(
        self, mechanism: GaussianMechanism, records: Floats, counted: NDArray[np.bool_]
    ) -> None:
        """Release the Gram matrix of centred rows, and set its first directions."""
        n_features = records.shape[1]
        center = self._center(n_features)
        rows = BoundedRows(
            records,
            np.full((len(records), 1), -1),
            row_scaling="clip",
            clip_norm=self._norm(n_features),
            intercept_scaling=None,
            team=current_team(),
            kept=counted,
            private=True,
        )
        exact = exact_gram(rows.centred(center, mechanism))
        gram = mechanism.release("gram", exact, symmetric=True)
        values, vectors = np.linalg.eigh(gram.value)
        order = np.argsort(values)[::-1]
        above = np.maximum(values[order], 0.0)
        first = order[: self.n_outputs(n_features)]
        components = vectors[:, first].T
        largest = np.argmax(np.abs(components), axis=1)[:, None]
        self.components_ = components * np.sign(
            np.take_along_axis(components, largest, axis=1)
        )
        self.explained_variance_ratio_ = above[: len(first)] / max(above.sum(), 1e-300)
        self.mean_ = center
