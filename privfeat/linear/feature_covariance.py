"""DPFC: noisy gradient steps preconditioned by one noisy feature covariance."""

import math
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from privfeat._process import one_thread_a_product
from privfeat._progress import phase, steps
from privfeat._types import LossOption, MatrixNoise
from privfeat.core.accounting.plan import Query
from privfeat.core.bounds import sensitivity
from privfeat.linear.classifier import DPLinearClassifier
from privfeat.linear.parameters.docs import document
from privfeat.linear.parameters.ranges import BEST_GRADIENT_CLIPS, GradientClips
from privfeat.linear.parameters.weights import WeighsClasses
from privfeat.linear.problem import GRAM_WEIGHT, Shape

if TYPE_CHECKING:
    from privfeat.core.noise.gaussian_mechanism import GaussianMechanism
    from privfeat.core.sums.records import Rows
    from privfeat.estimation.rows.bounded import BoundedRows

# The Gram matrix gets the budget of one step, but at most 2 % of rho: more takes more
# from the gradients than the noise in the matrix costs. Of few steps it gets what it
# gets beside class sums.
_STEPS_OF_GRAM = 50


@document
class DPFC(WeighsClasses, DPLinearClassifier):
    """Private classifier by gradient steps with a private feature covariance.

    The Gram matrix ``G = sum x x^T`` is released once; then ``n_iter`` times the sum of
    clipped gradients, each step moving the coefficients by ``-learning_rate g (G +
    ridge I)^-1``. Curvature is shared by all classes and steps, so its noise is paid
    for once. The recommended estimator, with defaults that need no tuning.

    Parameters
    ----------
    {shared}
    intercept_init : float, default=0.0
        Initial intercepts. Default: 0, since nothing tells classes apart before the
        first gradient; -10 is the papers' choice for the sigmoid loss.
    loss : {{"auto", "softmax", "sigmoid", "squared"}}, default="auto"
        ``"auto"``, the default: the softmax, since its sensitivity does not grow with
        the classes, or the sigmoid for an indicator matrix ``y``, which the softmax
        refuses. Residuals of the squared loss are clipped to norm 2 as well.
    n_iter : int, optional
        Number of noisy gradient steps, in [1, 100000]. Default: 20 for the softmax,
        since they were on a par with 100 (RESULTS, *Fewer, larger steps*, and *Steps
        and rate* below); 100 for the other losses, whose number was not measured.
    learning_rate : float, optional
        > 0. Default: ``max(4, 1.6 m)`` for the softmax of ``m`` classes, as *Steps and
        rate* argues; 4 for the sigmoid, as its Hessian is at most ``G / 4``, 1 for the
        squared loss: their Newton steps.
    ridge : float, optional
        Added to the diagonal of ``G``, in squared feature units, >= 0. Default: such
        that the noise of all steps moves no score by more than 0.75 (in stddev), that
        is ``learning_rate sqrt(n_iter) clip_norm / 0.75`` times the stddev of the noise
        in a gradient; see `privfeat.solvers.spectrum.step_noise_ridge`. Of 0.5 to 2.5,
        0.5 was best on CIFAR-10 with 2,000 records (47.2 % for 45.5 at epsilon 1) and 1
        to 1.5 on digits and mnist5k: 0.75 lies between (benchmarks/RESULTS.md, *How the
        defaults were found*).
    gram_clip_norm : float, optional
        Clips rows further for ``G`` alone; in [1e-6, 1e6]. Default: ``clip_norm``, as
        for all else; a smaller bound was not measured, a larger one changes nothing.
    gradient_clip_norm : float, optional
        Bound on the norm of one record's gradient, in feature units, > 0. Default:
        0.75 for rows of unit norm, since noise is in proportion to it, and gradients,
        at first of norm 0.7 to 1, shrink as the fit learns. That was better than 1 on
        four sets (RESULTS, *The clip norm of gradients*). For a rare class 1 ranks a
        little better: one positive in a hundred of 20,000 records had an average
        precision of 0.55 for 0.51 at epsilon 0.5, 0.77 for 0.76 at 1, and the same at 8
        (*Rare classes*). Default with ``max_group_size`` above 1, or with rows that are
        clipped: 1, as 0.75 was no better for users (*Users with several records*), and
        was not measured for such rows.
    gram_noise : {{"symmetric", "full"}}, default="symmetric"
        Symmetric noise and projection to the positive semidefinite matrices, or, as
        printed in the paper, independent noise in every entry and no projection.
        Default: symmetric, since its noise has half the variance off the diagonal.
    {class_weight}
    {prior}
    {public}
    {tail}

    {attributes}

    Notes
    -----
    **Guarantee.** ``gram``, sensitivity ``clip_norm**2`` (or ``gram_clip_norm**2``, if
    that is less; ``sqrt(2)`` times that under replace-one), and ``n_iter`` times
    ``gradient``, sensitivity ``gradient_clip_norm``, or the bound of the loss if that
    is less (twice that): ``sqrt(2) clip_norm`` for the softmax, ``sqrt(m) clip_norm``
    for the sigmoid with ``m`` outputs, ``2 clip_norm`` for the squared loss. With equal
    noise multipliers ``s``, the default from 50 steps on, the fit is ``(n_iter + 1) /
    (2 s**2)``-zCDP, [1]_ Theorem 2.3. Of fewer steps ``gram`` gets ``max(0.2, n_iter /
    50)`` times the rho of one.

    {mean}

    {weights}

    {guarantees}

    **Steps and rate.** The Hessian of the softmax is ``sum (diag(p) - p p^T) (x) x
    x^T`` (Kronecker product). It is at most ``G / 2`` for every record ([2]_), so a
    rate up to 4 cannot diverge, whatever the probabilities ``p``. Where all are ``1 /
    m`` it is ``G / m`` on coefficients that sum to zero, and a rate of ``m`` is
    Newton's step. Later it falls: its trace is the sum of ``p_j (1 - p_j)``, which is
    largest at ``1 / m``. Hence 1.6 ``m``, below the ``2 m`` at which the first step
    would overshoot as far as it came. A step then shrinks the error where ``G`` is far
    above the ridge by a constant factor, whatever ``m``, and 20 are enough; where it is
    far below, ``n_iter`` and the rate cancel (see `step_noise_ridge`). Twenty steps
    have the noise of a hundred, but fewer passes: each gets five times the budget.

    {prior_weight}

    {public_rows}

    **Source.** [1]_ Algorithm 4, in sums instead of means (``ridge`` is ``n`` times
    its lambda). Its exact setting: ``accounting="zcdp", row_scaling="clip",
    center=False, gram_noise="full", loss="sigmoid", intercept_scaling=1,
    intercept_init=-10`` and chosen ``n_iter``, ``learning_rate``, ``ridge``, clip norms
    and ``budget_split``.

    References
    ----------
    .. [1] Mehta et al. Differentially Private Image Classification from Features. 2023.
    .. [2] Böhning. Multinomial logistic regression algorithm. 1992.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from privfeat import DPFC
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = DPFC(epsilon=8, classes=range(10)).fit(X, y)
    >>> clf.score(X, y) > 0.8
    True
    """

    intercept_init: float = 0.0
    loss: LossOption = "auto"
    n_iter: int | None = None
    learning_rate: float | None = None
    ridge: float | None = None
    gram_clip_norm: float | None = None
    gradient_clip_norm: float | None = None
    gram_noise: MatrixNoise = "symmetric"

    _gradient_clips: ClassVar[GradientClips] = BEST_GRADIENT_CLIPS

    def _queries(self, shape: Shape) -> list[Query]:
        """Return two queries: the Gram matrix, and the gradient of all steps."""
        radius = self._gram_radius() or self.clip_norm
        step = sensitivity.loss_gradient(
            self.clip_norm,
            shape.loss,
            shape.n_outputs,
            self.adjacency,
            shape.gradient_clip,
        )
        n_iter = self._n_iter(shape)
        gram = sensitivity.gram(radius, self.adjacency)
        weight = min(1.0, max(GRAM_WEIGHT, n_iter / _STEPS_OF_GRAM))
        return [
            Query("gram", gram, weight=weight),
            Query("gradient", step, count=n_iter),
        ]

    def _n_iter(self, shape: Shape) -> int:
        if self.n_iter is not None:
            return int(self.n_iter)
        return 20 if shape.loss == "softmax" else 100

    def _rate(self, shape: Shape) -> float:
        if self.learning_rate is not None:
            return float(self.learning_rate)
        if shape.loss == "softmax":
            return max(4.0, 1.6 * shape.n_outputs)
        return 4.0 if shape.loss == "sigmoid" else 1.0

    def _gram_radius(self) -> float | None:
        """Return the norm to which rows are clipped for ``G``; None for no further."""
        radius = self.gram_clip_norm
        return None if radius is None or radius >= self.clip_norm else float(radius)

    def _solve(
        self, rows: "BoundedRows", mechanism: "GaussianMechanism", shape: Shape
    ) -> NDArray[np.float64]:
        """Return coefficients, (n_outputs, n_columns), after preconditioned steps."""
        from privfeat.core.sums.arithmetic.weighted import WeightedRows
        from privfeat.core.sums.statistics import exact_gradient, exact_gram
        from privfeat.solvers.spectrum import regularized_inverse, step_noise_ridge

        symmetric, n_iter = self.gram_noise == "symmetric", self._n_iter(shape)
        stddev = mechanism.noise_stddevs["gradient"]
        noise = stddev / math.sqrt(n_iter)
        weights = None
        records: Rows = rows
        if shape.class_weight is not None:
            weights = self._weights(rows, mechanism, shape, noise)
            records = WeightedRows(rows, weights)
        with phase("Gram matrix"):
            exact = exact_gram(records, clip_norm=self._gram_radius())
        gram = mechanism.release("gram", exact, symmetric=symmetric)
        rate, ridge = self._rate(shape), self.ridge
        if ridge is None:
            ridge = step_noise_ridge(
                gram,
                step_noise_stddev=stddev,
                n_steps=n_iter,
                learning_rate=rate,
                row_norm=float(self.clip_norm),
            )
        with phase("inverse of the Gram matrix"):
            inverse = regularized_inverse(gram, ridge=float(ridge))
        coef = shape.initial_coef(self.intercept_init)
        weight = shape.prior_weight(rows, gram) if shape.prior else None
        signal = shape.signal_filter(rows.center, inverse) if shape.public else None
        # the threads of a product wait busily for the next one, and would take a core
        # from the pass over the records that follows
        with one_thread_a_product():
            for _ in steps("gradients", n_iter):
                at = coef if weight is None else coef + weight.at * weight.prior
                exact = exact_gradient(
                    rows,
                    at,
                    loss=shape.loss,
                    clip_norm=shape.gradient_clip,
                    weights=weights,
                )
                gradient = mechanism.release("gradient", exact)
                value = gradient.value if signal is None else signal.added(gradient)
                moved = coef - rate * (value @ inverse)
                if weight is not None:
                    weight.update(gradient, coef, moved)
                coef = moved
        return coef if weight is None else coef + weight.beside(coef) * weight.prior
