"""DPNewton: Newton steps with one noisy Hessian block per class."""

import math
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from privfeat._checks import check_choice, optional
from privfeat._progress import steps
from privfeat._types import LossOption, MatrixNoise
from privfeat.core.accounting.plan import Query
from privfeat.core.bounds import sensitivity
from privfeat.core.noise.release import Release
from privfeat.linear.classifier import DPLinearClassifier
from privfeat.linear.parameters.docs import document
from privfeat.linear.parameters.ranges import IN_CLIP_RANGE, N_ITER, RANGES, Ranges
from privfeat.linear.problem import GRAM_WEIGHT, STACKED_GRAM_WEIGHT, Shape

if TYPE_CHECKING:
    from privfeat.core.noise.gaussian_mechanism import GaussianMechanism
    from privfeat.estimation.rows.bounded import BoundedRows


@document
class DPNewton(DPLinearClassifier):
    """Private logistic regression by Newton steps.

    Every step releases the gradient and, for each class, the Hessian block ``H_j = sum
    p_j (1 - p_j) x x^T``, and moves ``coef_j`` by ``-learning_rate (H_j + ridge I)^-1
    g_j``. With the softmax the noise does not grow with the number of classes, and the
    first step, where all probabilities are ``1 / m``, needs one matrix for all classes.

    Parameters
    ----------
    {shared}
    intercept_init : float, default=0.0
        Initial intercepts. Default: 0, since nothing tells classes apart before the
        first step.
    loss : {{"auto", "softmax", "sigmoid"}}, default="auto"
        ``"auto"``, the default: the softmax, since its noise does not grow with the
        classes, or the sigmoid for an indicator matrix ``y``, which the softmax
        refuses.
    n_iter : int, default=1
        Number of Newton steps, in [1, 100000]. Default: 1, since each further step of
        the softmax releases a block for every class; more were not measured beside it.
    learning_rate : float, optional
        > 0. Default: 1 for the sigmoid and ``(m - 1) / m`` for the softmax of ``m``
        classes, as the first step is Newton's then: where all probabilities are ``1 /
        m`` the full Hessian is ``1 / m`` times the Gram matrix (on coefficients that
        sum to zero), and a block ``(m - 1) / m**2`` times it. Many steps with little
        noise may overshoot, as Newton's method can; pass a smaller rate then.
    ridge : float, optional
        Added to the diagonal of each block, in squared feature units, >= 0. Default:
        the spectral norm to expect of the noise in a block, and 0.3 times that in the
        first step of the softmax, as of `DPLeastSquares`; not measured here.
    gradient_clip_norm : float, optional, default=1.0
        Bound on the norm of one record's gradient, in feature units, in [1e-6, 1e6].
        None: the bound of the loss, which clips nothing: ``sqrt(2) clip_norm`` for the
        softmax and ``sqrt(m) clip_norm`` for the sigmoid, less for a single step.
        Default: 1, as of `DPFC`; not measured here.
    hessian_noise : {{"symmetric", "full"}}, default="symmetric"
        Symmetric noise, or, as printed in the paper, independent noise in every entry
        and a solve without projection. Default: symmetric, since its noise has half the
        variance off the diagonal.
    {tail}

    {attributes}

    Notes
    -----
    **Guarantee.** ``n_iter`` times ``gradient``, sensitivity ``gradient_clip_norm``, or
    the bound of the loss if that is less (twice that under replace-one), and ``n_iter``
    times the stack ``hessian``: for ``m`` outputs ``sqrt(m) clip_norm**2 / 4`` for the
    sigmoid and ``sqrt(4/27) clip_norm**2``, or ``sqrt(1/8) clip_norm**2`` for two
    outputs, for the softmax (``sqrt(2)`` times that). With the softmax the first of
    them is replaced by ``gram``, sensitivity ``clip_norm**2`` (``sqrt(2)`` times that),
    which by default gets a fifth of the rho of a gradient. Without that, and with equal
    noise multipliers ``s``: ``n_iter / s**2``-zCDP, [1]_ Theorem 2.1. No gradient or
    Hessian of one record is ever formed.

    In a single step all probabilities are public, so a gradient has norm at most
    ``sqrt((m - 1) / m) clip_norm`` for the softmax; if that is no more than
    ``gradient_clip_norm``, both releases are under replace-one one query
    ``gradient_and_gram``, as for `DPLeastSquares`.

    {mean}

    {guarantees}

    **Source.** [1]_ Algorithm 2, in sums instead of means. Its exact setting:
    ``loss="sigmoid", accounting="zcdp", row_scaling="clip", center=False,
    fit_intercept=False, gradient_clip_norm=None, hessian_noise="full"``.
    The softmax bounds are ours, see ``privfeat.core.bounds.sensitivity``.

    References
    ----------
    .. [1] Mehta et al. Differentially Private Image Classification from Features. 2023.

    {example}
    """

    intercept_init: float = 0.0
    loss: LossOption = "auto"
    n_iter: int = 1
    learning_rate: float | None = None
    ridge: float | None = None
    gradient_clip_norm: float | None = 1.0
    hessian_noise: MatrixNoise = "symmetric"

    _ranges: ClassVar[Ranges] = {
        **RANGES,
        "loss": partial(check_choice, choices=("auto", "softmax", "sigmoid")),
        "n_iter": N_ITER,
        "gradient_clip_norm": optional(IN_CLIP_RANGE),
    }

    def _queries(self, shape: Shape) -> list[Query]:
        """Return queries of gradients, Hessians, and for softmax a Gram matrix."""
        radius, n_iter = float(self.clip_norm), int(self.n_iter)
        bounds = (radius, shape.loss, shape.n_outputs, self.adjacency)
        gradient = sensitivity.loss_gradient(*bounds, self._gradient_bound(shape))
        queries = [Query("gradient", gradient, count=n_iter)]
        n_hessians = n_iter
        if shape.loss == "softmax":
            n_hessians -= 1
            gram = sensitivity.gram(radius, self.adjacency)
            stacked = self._products(shape) is not None
            weight = STACKED_GRAM_WEIGHT if stacked else GRAM_WEIGHT
            queries.append(Query("gram", gram, weight=weight))
        if n_hessians:
            hessian = sensitivity.curvature_grams(*bounds)
            queries.append(
                Query("hessian", hessian, count=n_hessians, n_blocks=shape.n_outputs)
            )
        return queries

    def _products(self, shape: Shape) -> tuple[str, float] | None:
        """Return name and residual bound of gradients in a stack, else None."""
        # no two records move both the most, unless gradients are clipped further
        residual = self._residual_bound(shape)
        stacks = (
            self.adjacency == "replace_one"
            and shape.loss == "softmax"
            and self.n_iter == 1
            and not self._clips_users()
            and self._gradient_bound(shape) == residual * float(self.clip_norm)
        )
        return ("gradient", residual) if stacks else None

    def _solve(
        self, rows: "BoundedRows", mechanism: "GaussianMechanism", shape: Shape
    ) -> NDArray[np.float64]:
        """Return coefficients, (n_outputs, n_columns), after all Newton steps."""
        from privfeat.core.sums.statistics import exact_gradient, exact_gram

        bound, residual = self._gradient_bound(shape), self._residual_bound(shape)
        release = partial(self._release, mechanism, shape)
        symmetric = self.hessian_noise == "symmetric"
        coef = shape.initial_coef(self.intercept_init)
        for step in steps("Newton steps", int(self.n_iter), passes=2):
            exact = exact_gradient(
                rows,
                coef,
                loss=shape.loss,
                clip_norm=bound,
                residual_clip_norm=residual,
            )
            gradient = release("gradient", exact)
            if step == 0 and shape.loss == "softmax":
                gram = release("gram", exact_gram(rows), symmetric=symmetric)
                moved = self._first_step(gradient, gram)
            else:
                moved = self._step(rows, mechanism, gradient, coef, shape)
            coef -= self._rate(shape) * moved
        return coef

    def _gradient_bound(self, shape: Shape) -> float:
        """Return the norm to which gradients are clipped."""
        bound = self._residual_bound(shape) * float(self.clip_norm)
        return min(bound, shape.gradient_clip)

    def _residual_bound(self, shape: Shape) -> float:
        """Return the largest norm of a residual; they are clipped to it in case.

        In a fit of one step all probabilities are public: residuals are then no longer
        than those of a record of one label, or of none.
        """
        m = shape.n_outputs
        if self.n_iter > 1:
            return sensitivity.residual_norm(shape.loss, m)
        if shape.loss == "softmax":
            return math.sqrt(max(1.0, m - 1.0) / m)
        score = abs(float(self.intercept_init)) if self.fit_intercept else 0.0
        return math.sqrt(m) / (1.0 + math.exp(-score))

    def _rate(self, shape: Shape) -> float:
        if self.learning_rate is not None:
            return float(self.learning_rate)
        m = shape.n_outputs
        return (m - 1) / m if shape.loss == "softmax" else 1.0

    def _first_step(self, gradient: Release, gram: Release) -> NDArray[np.float64]:
        """Return the step where all blocks are ``(m - 1) / m**2`` times one matrix."""
        from privfeat.solvers.spectrum import noise_ridge, regularized_inverse

        n_outputs = len(gradient.value)
        curvature = (n_outputs - 1) / n_outputs**2
        ridge = noise_ridge(gram, scale=0.3)
        if self.ridge is not None:
            ridge = float(self.ridge) / curvature
        inverse = regularized_inverse(gram, ridge=ridge)
        return np.asarray(gradient.value @ inverse.T / curvature)

    def _step(
        self,
        rows: "BoundedRows",
        mechanism: "GaussianMechanism",
        gradient: Release,
        coef: NDArray[np.float64],
        shape: Shape,
    ) -> NDArray[np.float64]:
        """Return the step with one Hessian block for each output."""
        from privfeat.core.sums.statistics import exact_curvature_grams
        from privfeat.solvers.spectrum import noise_ridge
        from privfeat.solvers.systems import solve_regularized

        step = np.empty_like(coef)
        blocks = exact_curvature_grams(rows, coef, loss=shape.loss)
        for output, exact_block in enumerate(blocks):
            symmetric = self.hessian_noise == "symmetric"
            block = mechanism.release("hessian", exact_block, symmetric=symmetric)
            ridge = noise_ridge(block, scale=1.0) if self.ridge is None else self.ridge
            step[output] = solve_regularized(
                block, gradient.value[output], ridge=float(ridge)
            )
        return step
