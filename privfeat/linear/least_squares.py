"""DPLeastSquares: ridge regression on label indicators from noisy sums."""

import math
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from privfeat._progress import phase, steps
from privfeat._types import Loss, MatrixNoise
from privfeat.core.accounting.plan import Query
from privfeat.core.bounds import sensitivity
from privfeat.core.noise.release import Release
from privfeat.estimation.predictor import label_probabilities
from privfeat.linear.classifier import DPLinearClassifier
from privfeat.linear.parameters.docs import document
from privfeat.linear.parameters.public import check_centred
from privfeat.linear.parameters.weights import WeighsClasses
from privfeat.linear.problem import GRAM_WEIGHT, STACKED_GRAM_WEIGHT, Shape

if TYPE_CHECKING:
    from privfeat.core.noise.gaussian_mechanism import GaussianMechanism
    from privfeat.core.sums.records import Rows
    from privfeat.estimation.rows.bounded import BoundedRows


@document
class DPLeastSquares(WeighsClasses, DPLinearClassifier):
    """Private least-squares classifier in closed form.

    Releases the Gram matrix ``G = sum x x^T`` and the class sums ``b_j``, and solves
    ``coef_j = (G + ridge I)^-1 b_j``. With ``class_gram=True`` it also releases a Gram
    matrix ``A_j`` for each class and solves ``(A_j + alpha G + ridge I) coef_j = b_j``.
    No iteration, no learning rate: the fastest estimator.

    Parameters
    ----------
    {shared}
    class_gram : bool, default=False
        Release the class Gram matrices as well ([1]_, Algorithm 3). Default: False,
        since they cost a third of the budget and a factorization per class.
    alpha : float, default=1.0
        Weight of ``G``, the negative examples, with ``class_gram=True``; >= 0. Default:
        1, which was not measured; the paper chooses one.
    ridge : float, optional
        Added to the diagonal, in squared feature units, >= 0. Default: 0.3 times the
        spectral norm to expect of the noise in ``G``; with ``class_gram=True`` that
        norm for the sum of the two matrices, which was not measured. 0.3, with a sixth
        of rho for ``G``, had 57 % for 52 on mnist5k at epsilon 0.1, and 94.2 for 93.1
        at 8 (benchmarks/RESULTS.md, *How the defaults were found*).
    gram_noise : {{"symmetric", "full"}}, default="symmetric"
        Symmetric noise, or, as printed in the paper, independent noise in every entry
        and a solve without projection. Default: symmetric, since its noise has half the
        variance off the diagonal.
    {class_weight}
    {prior}
    {public}
    {tail}

    {attributes}

    Notes
    -----
    **Guarantee.** Queries ``gram``, sensitivity ``clip_norm**2``, ``class_sums``,
    sensitivity ``clip_norm``, and with ``class_gram=True`` the stack ``class_grams``,
    sensitivity ``clip_norm**2``: with equal noise multipliers ``s``, the default then,
    ``3 / (2 s**2)``-zCDP, [1]_ Theorem 2.2. Without it ``gram`` gets a sixth of rho by
    default: where noise matters, ``G`` is far below the ridge. For an indicator matrix
    ``y`` the sensitivities of the last two are ``sqrt(max_labels)`` times as large.

    Under replace-one all of them are one query ``class_sums_and_gram``, the stack of
    the class sums and of the matrices times a scale, which ``budget_split`` sets and
    ``privacy_`` states: no two records move both the most, and by default ``gram``
    costs nothing. See `privfeat.core.bounds.replacement.gram_and_products`.

    {mean}

    {weights}

    {guarantees}

    {prior_weight}

    {public_mean} Class sums are not
    filtered by their spectrum, as the gradients of `DPFC` are. The ridge shrinks weak
    directions as well, and no later step makes up for what is shrunk twice: with public
    rows of the same images at another size, accuracy fell by two points.

    **Source.** [1]_ Algorithm 3. Its exact setting: ``class_gram=True,
    accounting="zcdp", row_scaling="clip", center=False, fit_intercept=False,
    gram_noise="full"`` and chosen ``alpha``, ``ridge`` and ``clip_norm``.

    References
    ----------
    .. [1] Mehta et al. Differentially Private Image Classification from Features. 2023.

    {example}
    """

    class_gram: bool = False
    alpha: float = 1.0
    ridge: float | None = None
    gram_noise: MatrixNoise = "symmetric"

    _sums_sparse_rows: ClassVar[bool] = True

    def _check_parameters(self) -> None:
        """Check all parameters; ValueError for some beside a center or a prior."""
        super()._check_parameters()
        check_centred(self)
        if self.prior is None:
            return
        if self.class_gram:
            raise ValueError(
                "class_gram must be False with a prior, got True. Its weight is found "
                "from the matrix of all classes."
            )
        if self.class_weight is not None:
            raise ValueError(
                "class_weight must be None with a prior, got weights. Use DPFC."
            )

    def _loss(self, *, multilabel: bool) -> Loss:
        return "squared"

    def _label_probabilities(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        weight = float(self.alpha) if self.class_gram else None
        return label_probabilities("squared", scores, weight)

    def _queries(self, shape: Shape) -> list[Query]:
        """Return queries of the Gram matrix, of class sums, and of ``class_gram``."""
        radius, adjacency = float(self.clip_norm), self.adjacency
        k = shape.max_labels
        stacked = self._products(shape) is not None
        weight = STACKED_GRAM_WEIGHT if stacked else GRAM_WEIGHT
        weight = 1.0 if self.class_gram else weight
        queries = [
            Query("gram", sensitivity.gram(radius, adjacency), weight=weight),
            Query("class_sums", sensitivity.class_sums(radius, adjacency, k)),
        ]
        if self.class_gram:
            bound = sensitivity.class_grams(radius, adjacency, k)
            queries.append(Query("class_grams", bound, n_blocks=shape.n_outputs))
        return queries

    def _products(self, shape: Shape) -> tuple[str, float] | None:
        # one record moves all sums the most; clipped sums of users are no pairs of rows
        if self.adjacency != "replace_one" or self._clips_users():
            return None
        return "class_sums", math.sqrt(shape.max_labels)

    def _solve(
        self, rows: "BoundedRows", mechanism: "GaussianMechanism", shape: Shape
    ) -> NDArray[np.float64]:
        """Return coefficients, (n_outputs, n_columns), of the released system."""
        from privfeat.core.sums import statistics
        from privfeat.core.sums.arithmetic.weighted import WeightedRows
        from privfeat.solvers.spectrum import regularized_inverse
        from privfeat.solvers.systems import solve_regularized, weighted_sum

        symmetric = self.gram_noise == "symmetric"
        release = partial(self._release, mechanism, shape)
        name = "class_sums" if shape.stack is None else shape.stack.query.name
        noise = mechanism.noise_stddevs[name]
        roots: float | NDArray[np.float64] = 1.0
        records: Rows = rows
        if shape.class_weight is not None:
            weights = self._weights(rows, mechanism, shape, noise)
            # all sums are of rows times the root of a weight: those of a class want it
            # once more, which costs nothing after the release
            roots = np.sqrt(weights)[:, None]
            records = WeightedRows(rows, weights)
        with phase("Gram matrix"):
            exact = statistics.exact_gram(records)
        gram = release("gram", exact, symmetric=symmetric)
        with phase("sums of the classes"):
            exact = statistics.exact_class_sums(records, shape.n_outputs)
        released = release("class_sums", exact)
        if shape.prior is not None:
            from privfeat.solvers.prior_least_squares import prior_least_squares

            weight = shape.prior_weight(rows, gram)
            return prior_least_squares(weight, released, ridge=self._ridge(gram))
        sums = roots * released.value
        if not self.class_gram:
            with phase("inverse of the Gram matrix"):
                inverse = regularized_inverse(gram, ridge=self._ridge(gram))
            return np.asarray(sums @ inverse.T)
        coef = np.empty((shape.n_outputs, shape.n_columns))
        exact_blocks = statistics.exact_class_grams(records, shape.n_outputs)
        for label in steps("Gram matrices of classes", shape.n_outputs):
            block = release("class_grams", next(exact_blocks), symmetric=symmetric)
            matrix = weighted_sum(block, gram, float(self.alpha))
            coef[label] = solve_regularized(
                matrix, sums[label], ridge=self._ridge(matrix)
            )
        return coef

    def _ridge(self, matrix: Release) -> float:
        from privfeat.solvers.spectrum import noise_ridge

        if self.ridge is None:
            return noise_ridge(matrix, scale=1.0 if self.class_gram else 0.3)
        return float(self.ridge)
