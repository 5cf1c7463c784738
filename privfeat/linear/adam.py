"""DPAdamLinear: noisy full-batch gradients and any first-order optimizer."""

import math
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from privfeat._checks import optional
from privfeat._progress import steps
from privfeat._types import Iterate, LossOption
from privfeat.core.accounting.plan import Query, ReleasePlan
from privfeat.core.bounds import sensitivity
from privfeat.linear.classifier import DPLinearClassifier
from privfeat.linear.parameters.docs import document
from privfeat.linear.parameters.public import check_centred
from privfeat.linear.parameters.ranges import (
    BEST_GRADIENT_CLIPS,
    NOT_NEGATIVE,
    RANGES,
    GradientClips,
    Ranges,
)
from privfeat.linear.parameters.weights import WeighsClasses
from privfeat.linear.problem import LinearProblem, Shape
from privfeat.solvers.intercepts import InterceptSearch
from privfeat.solvers.optimizers import (
    Optimizer,
    check_optimizer,
    rehearse,
    start_optimizer,
    takes_unit_steps,
)

if TYPE_CHECKING:
    from privfeat.core.noise.gaussian_mechanism import GaussianMechanism
    from privfeat.estimation.rows.bounded import BoundedRows


@document
class DPAdamLinear(WeighsClasses, DPLinearClassifier):
    """Private classifier by a first-order optimizer on noisy gradient sums.

    Every step releases the sum of the records' clipped gradients and hands it to an
    optax optimizer. The papers' baseline; needs no ``n_features**2`` memory.

    Parameters
    ----------
    {shared}
    intercept_init : float, optional
        Initial intercepts; -10 is the papers' choice for the sigmoid loss. Default: 0,
        and after the first gradient what it tells of the classes, as *Intercepts*
        argues.
    loss : {{"auto", "softmax", "sigmoid", "squared"}}, default="auto"
        ``"auto"``, the default: the softmax, since its sensitivity does not grow with
        the classes, or the sigmoid for an indicator matrix ``y``, which the softmax
        refuses. Residuals of the squared loss are clipped to norm 2 as well.
    n_iter : int, optional
        Number of noisy gradient steps, in [1, 100000]. Default: 12 for ``"adam"`` and
        more than two classes, else 50; see *Steps and rate*.
    optimizer : {{"adam", "sgd", "momentum", "rmsprop"}} or optax optimizer
        ``"adam"`` has the decay ``beta_1 = 1 - 6 / n_iter``, cut to [0.5, 0.9]. An
        ``optax.GradientTransformation`` brings its own learning rate. Default: adam, as
        in the paper; others were not measured beside it.
    learning_rate : float, optional
        > 0; only for an optimizer by name. Default: ``0.85 / (sqrt(n_iter)
        clip_norm)`` for ``"adam"`` and ``"rmsprop"``: their steps have this size in
        every coordinate, so that the noise of all steps together moves a score by 0.85
        (in stddev) at most. With 50 steps 0.75 was chosen (benchmarks/RESULTS.md, *How
        the defaults were found*); 12 steps at 0.85 are 0.2 points below these on
        CIFAR-10, and above elsewhere but for one cell (*Fewer, larger steps*). Must be
        given for the others, in units of the gradient *sum*.
    ridge : float, default=0.0
        Weight of ``ridge / 2`` times the squared norm of the coefficients in the
        objective, a sum over records; >= 0. Default: 0, since few steps keep
        coefficients small; others were not measured.
    gradient_clip_norm : float, optional
        Bound on the norm of one record's gradient, in feature units, > 0. Default: 0.75
        for rows of unit norm, each of a user of its own, else 1, for the reasons of
        `DPFC` (RESULTS, *The clip norm of gradients*).
    iterate : {{"last", "average"}}, default="last"
        Return the last iterate, or the mean of all. Default: the last, since it had 60
        % for 54 on CIFAR-10 with 20,000 records at epsilon 0.1 (*How the defaults were
        found*).
    sampling_prob : float, default=1.0
        In [1e-9, 1]: probability with which each record takes part in a step (Poisson
        sampling). Below 1 it needs ``accounting="pld"`` or ``"rdp"``, and add/remove.
        Default: 1, since as many steps on samples have more noise for their signal.
    {class_weight}
    {prior}
    {public}
    {tail}

    {attributes}

    Notes
    -----
    **Guarantee.** ``n_iter`` times the query ``gradient``, sensitivity
    ``gradient_clip_norm``, or the bound of the loss if that is less: ``sqrt(2)
    clip_norm`` for the softmax, ``sqrt(m) clip_norm`` for the sigmoid with ``m``
    outputs, ``2 clip_norm`` for the squared loss (twice that under replace-one).

    {mean}

    {weights}

    {guarantees}

    **Steps and rate.** Adam divides by the root of the mean square of a coordinate, so
    a step has the size of the rate in every coordinate, and ``n_iter`` of them, noise
    alone, move a score by ``learning_rate sqrt(n_iter) clip_norm``: steps and rate are
    set together. What few steps lack is the mean of past gradients: with the usual
    weight 0.9 a step goes by the last ten gradients, nearly all there are, the first
    ones from far away. With a memory of a sixth of the steps, 12 reach what 50 reach.
    Not so for two classes of which one is rare: where all probabilities are small, so
    is the curvature, and coefficients have further to go than 12 steps are long.

    **Intercepts.** A step has one size in every coordinate, but the constant coordinate
    is a tenth of a row: 12 steps move an intercept by 0.3, and a class of 1 % needs 4.
    The constant coordinate of the first gradient counts what each class is short of its
    part of the records, and with their number, which ``center=True`` releases, the
    intercepts become what makes the mean of the probabilities right; the steps of all
    coefficients go on from there. With another ``center``, a second gradient at
    coefficients of zero tells the number, where the first shows that classes differ: a
    step less, and no budget. That takes the softmax, ten steps or more, and rows whose
    gradients at zero are clipped alike: of unit norm, or with a ``gradient_clip_norm``
    of at least ``clip_norm``, or a little less. Counts are shrunk and lifted by their
    known noise (`privfeat.solvers.intercepts`), so that classes whose numbers noise
    hides keep equal intercepts. With the mean of public rows for ``center`` the mean
    probability of a class of 1 % is then 0.02 with 20,000 records at epsilon 1, for
    0.24 with intercepts that begin at 0 (RESULTS, *Rare classes*). So they begin
    otherwise, and with ``class_weight`` or ``prior``: a rare class is told too often
    there, and `privfeat.analysis.rates.shifted_rates` moves them.

    {prior_weight}

    {public_mean} Gradients are not
    filtered by their spectrum, as those of `DPFC` are: ``"adam"`` divides every
    coordinate by its size, and would undo it.

    **Source.** [1]_ Algorithm 1, in sums instead of means. Its exact setting:
    ``accounting="zcdp", row_scaling="clip", center=False, loss="sigmoid",
    intercept_scaling=1, intercept_init=-10, optimizer=optax.adam(learning_rate)``, a
    ``clip_norm`` above the norms of the rows, and chosen ``n_iter``, ``ridge`` and
    ``gradient_clip_norm``.

    References
    ----------
    .. [1] Mehta et al. Differentially Private Image Classification from Features. 2023.

    {example}
    """

    intercept_init: float | None = None
    loss: LossOption = "auto"
    n_iter: int | None = None
    optimizer: str | Optimizer = "adam"
    learning_rate: float | None = None
    ridge: float = 0.0
    gradient_clip_norm: float | None = None
    iterate: Iterate = "last"
    sampling_prob: float = 1.0

    _sums_sparse_rows: ClassVar[bool] = True
    _sums_squares: ClassVar[bool] = False
    _gradient_clips: ClassVar[GradientClips] = BEST_GRADIENT_CLIPS
    _ranges: ClassVar[Ranges] = {
        **RANGES,
        "intercept_init": optional(RANGES["intercept_init"]),
        "ridge": NOT_NEGATIVE,
    }

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_optimizer(self.optimizer, self.learning_rate)
        check_centred(self)

    def _plan(self, problem: LinearProblem) -> ReleasePlan:
        shape = problem.shape
        rehearse(self.optimizer, (shape.n_outputs, shape.n_columns))
        return super()._plan(problem)

    def _queries(self, shape: Shape) -> list[Query]:
        """Return one query: the gradients of all steps, each of sampled records."""
        bound = sensitivity.loss_gradient(
            self.clip_norm,
            shape.loss,
            shape.n_outputs,
            self.adjacency,
            shape.gradient_clip,
        )
        probability = float(self.sampling_prob)
        count = self._n_iter(shape)
        return [Query("gradient", bound, count, sampling_prob=probability)]

    def _n_iter(self, shape: Shape) -> int:
        if self.n_iter is not None:
            return int(self.n_iter)
        return 12 if self.optimizer == "adam" and shape.n_outputs > 2 else 50

    def _solve(
        self, rows: "BoundedRows", mechanism: "GaussianMechanism", shape: Shape
    ) -> NDArray[np.float64]:
        """Return coefficients, (n_outputs, n_columns), after all optimizer steps."""
        from privfeat.core.sums.statistics import exact_gradient

        coef = shape.initial_coef(float(self.intercept_init or 0.0))
        n_iter = self._n_iter(shape)
        noise = mechanism.noise_stddevs["gradient"] / math.sqrt(n_iter)
        weights = None
        if shape.class_weight is not None:
            weights = self._weights(rows, mechanism, shape, noise)
        update = start_optimizer(self.optimizer, self._rate(n_iter), coef, n_iter)
        sampler = mechanism.sampler("gradient")
        part = float(self.sampling_prob)
        weight = shape.prior_weight(rows, part=part) if shape.prior else None
        search, count, bound = None, rows.noisy_count, shape.gradient_clip
        alone = weights is None and weight is None  # else intercepts begin at 0
        if self.intercept_init is None and alone and shape.constant:
            search = InterceptSearch(
                loss=shape.loss,
                n_records=None if count is None else count * part,
                n_iter=n_iter,
                constant=shape.constant,
                # nothing is clipped without noise
                largest=bound / self.clip_norm if noise else math.inf,
                alike=self.row_scaling == "unit",
            )
        total, n_moves = np.zeros_like(coef), 0  # a gradient that counts moves nothing
        for _ in steps("gradients", n_iter):
            at = coef if weight is None else coef + weight.at * weight.prior
            if search is not None:
                at = search.at(at)
            exact = exact_gradient(
                rows,
                at,
                loss=shape.loss,
                clip_norm=bound,
                sampler=sampler,
                weights=weights,
            )
            gradient = mechanism.release("gradient", exact)
            slope = gradient.value + float(self.ridge) * coef
            if search is not None and not search.done:
                found = search.take(gradient)
                if not search.done:
                    continue  # the next gradient counts the records
                if found is not None:
                    coef[:, -1], slope = found
            moved = update(slope, coef)
            if weight is not None:
                weight.update(gradient, coef, moved)
            coef = moved
            total, n_moves = total + coef, n_moves + 1
        coef = total / n_moves if self.iterate == "average" else coef
        return coef if weight is None else coef + weight.beside(coef) * weight.prior

    def _rate(self, n_iter: int) -> float | None:
        if self.learning_rate is not None:
            return float(self.learning_rate)
        if not takes_unit_steps(self.optimizer):
            return None
        return 0.85 / (math.sqrt(n_iter) * float(self.clip_norm))
