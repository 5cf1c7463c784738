"""What a linear model makes of ``y``: targets, sizes, queries; and its center."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from privfeat._progress import phase
from privfeat._types import Adjacency, Loss, RowScaling
from privfeat.core.accounting.calibration import budget_shares
from privfeat.core.accounting.plan import Query
from privfeat.core.bounds import replacement, sensitivity
from privfeat.core.bounds.grid import CLIP_RANGE, GRID_BITS, grid_step
from privfeat.core.noise.release import Release
from privfeat.estimation.labels import Problem
from privfeat.estimation.rows import COUNT_SCALE, MEAN

if TYPE_CHECKING:
    from privfeat.linear.parameters.prior import Prior
    from privfeat.linear.parameters.public import PublicRows
    from privfeat.solvers.prior import PriorWeight
    from privfeat.solvers.public import SignalFilter

# Part of rho that the mean gets: all other releases have 5 % more noise for it.
SHARE = 0.1
# Part of rho that one Gram matrix gets, relative to class sums or a gradient.
GRAM_WEIGHT = 0.2
# The same in a stack, where it costs nothing: two records that move class sums or a
# gradient the most have opposite rows, hence equal outer products, which cancel.
STACKED_GRAM_WEIGHT = 0.25

# By label, the largest 1; None for no weights.
ClassWeights = tuple[float, ...] | Literal["balanced"] | None


@dataclass(frozen=True)
class Stack:
    """Sums released as one query, because no two records move all of them the most."""

    query: Query  # its sensitivity is that of all scaled sums together
    scales: Mapping[str, float]  # what each sum is multiplied by, > 0; public

    @property
    def fact(self) -> str:
        """What the guarantee assumes of the scales."""
        parts = [f"{scale:.6g} {name}" for name, scale in self.scales.items()]
        return f"that {self.query.name} stacks {', '.join(parts)}"

    def budget_split(
        self, split: Mapping[str, float] | None
    ) -> Mapping[str, float] | None:
        """Return a split of the budget in which the stack stands for its sums."""
        if split is None:
            return None
        shares = dict(split)
        stacked = math.fsum(shares.pop(name) for name in self.scales)
        return shares | {self.query.name: stacked}


def stack_of(
    queries: Sequence[Query],
    products: str,
    factor_norm: float,
    others: Sequence[str],
    *,
    clip_norm: float,
    adjacency: Adjacency,
    budget_split: Mapping[str, float] | None,
) -> Stack:
    """Return the stack of Gram matrices and ``products``, beside ``others``.

    Its scales are such that one noise gives every query its part of rho; that of
    ``products``, whose factors have a norm of at most ``factor_norm``, is 1.
    """
    apart = [Query(name, 1.0) for name in others]
    shares = budget_shares([*apart, *queries], budget_split)
    scales = {q.name: math.sqrt(shares[q.name]) / q.l2_sensitivity for q in queries}
    scales = {name: scale / scales[products] for name, scale in scales.items()}
    bound = replacement.gram_and_products(
        clip_norm,
        factor_norm,
        scales["gram"],
        scales.get("class_grams", 0.0),
        adjacency,
    )
    n_blocks = sum(query.n_blocks for query in queries)
    return Stack(Query(f"{products}_and_gram", bound, n_blocks=n_blocks), scales)


def public_center(
    center: Any, n_features: int, row_scaling: RowScaling
) -> NDArray[np.float64]:
    """Return a center that is public, (n_features,): the array given, or zeros.

    TypeError or ValueError if ``center`` is neither a bool nor a finite array of this
    shape, or too long to be a mean of rows of unit norm.
    """
    if isinstance(center, bool | np.bool_):
        return np.zeros(n_features)
    values = np.asarray(center)
    if values.dtype.kind not in "iuf":
        raise TypeError(
            f"center must be a bool or an array of numbers, got {center!r}."
        )
    if values.shape != (n_features,):
        raise ValueError(
            f"center must have shape ({n_features},), got {values.shape}. Pass the "
            "mean of public rows, or True."
        )
    norm = float(np.linalg.norm(values))
    longest = 1.0 + 1e-6 if row_scaling == "unit" else CLIP_RANGE[1]
    if not norm <= longest:
        raise ValueError(
            f"center must have norm at most {longest:.6g}, got {norm:.6g}. Divide each "
            "public row by its norm before the mean, for row_scaling='unit'."
        )
    return values.astype(np.float64)


def mean_query(
    others: Sequence[Query],
    clip_norm: float,
    adjacency: Adjacency,
    row_scaling: RowScaling,
) -> Query:
    """Return the query for the mean; ``others`` are the other releases of the fit.

    The statistic is the sum of the bounded rows with their constant coordinate:
    sensitivity ``clip_norm``, and twice that under replace-one, as of one class sum.
    Next to a row of unit norm the constant is the same in every bounded row, and two of
    them differ by less; a row that is clipped with its constant may have lost it.
    """
    if row_scaling == "unit":
        features = clip_norm / math.hypot(1.0, COUNT_SCALE)
        bound = replacement.row_sum(features, COUNT_SCALE * features, adjacency)
    else:
        bound = sensitivity.class_sums(clip_norm, adjacency)
    return Query(MEAN, bound, weight=weight_of(SHARE, others))


def weight_of(share: float, others: Sequence[Query]) -> float:
    """Return the weight of a release that gets this part of rho beside ``others``.

    A sampled release costs ``sampling_prob**2`` of a full one, to leading order.
    """
    cost = sum(query.count * query.weight * query.sampling_prob**2 for query in others)
    return share / (1.0 - share) * cost


def grid_step_of(
    name: str, row_norm: float, gram_norm: float | None, shape: "Shape", users: bool
) -> float:
    """Return the grid step of the sums that the query ``name`` releases.

    A fit asks it before the charge whether the noise fits the 64 bits of a sum; what is
    drawn has the grid step of the sum itself. ``name`` is a stack, one of
    `CLIPPED_SUMS`, or ``"class_counts"``. Rows are clipped to ``row_norm``, and for
    ``"gram"`` alone to ``gram_norm``, if it is smaller; with ``users`` sums of users
    are clipped.
    """
    if shape.stack is not None and name == shape.stack.query.name:
        norms = row_norm, gram_norm
        return min(
            scale * grid_step_of(part, *norms, shape, users)
            for part, scale in shape.stack.scales.items()
        )
    step = grid_step(row_norm)
    if name == "class_counts":
        return 2.0**-GRID_BITS
    if name in ("class_sums", MEAN):
        return step * 2.0**-GRID_BITS if users else step
    if name == "gram" and gram_norm is not None:
        step = grid_step(min(row_norm, gram_norm))
    if name in ("gram", "moments", "class_grams"):
        return step**2
    if name == "hessian":
        return (step / 2.0) ** 2
    return step * grid_step(sensitivity.largest_residual(shape.loss))


@dataclass(frozen=True)
class Shape:
    """The public sizes of a problem."""

    n_outputs: int  # rows of coefficients: classes, or 1 for a binary sigmoid model
    n_columns: int  # columns of them: features, plus one with an intercept
    constant: float  # that coordinate of a bounded row; 0 without an intercept
    loss: Loss
    max_labels: int = 1  # most labels that one record carries
    radius: float = 1.0  # norm of the features in all bounded rows, if it is the same
    stack: Stack | None = None  # how sums are released, if not each by itself
    class_weight: ClassWeights = None  # the last is that of label -1 as well
    gradient_clip: float = math.inf  # norm to which gradients are clipped
    # how rows score, and where they lie, before any record is seen
    prior: "Prior | None" = field(default=None, repr=False)
    public: "PublicRows | None" = field(default=None, repr=False)

    @property
    def compared(self) -> dict[str, Any]:
        """What stands for parameters that processes compare, by name."""
        known = {"prior": self.prior, "public": self.public}
        return {name: it.parts for name, it in known.items() if it is not None}

    @property
    def facts(self) -> tuple[str, ...]:
        """What the guarantee assumes of them."""
        return tuple(it.fact for it in (self.prior, self.public) if it is not None)

    def initial_coef(self, intercept_init: float) -> NDArray[np.float64]:
        """Return coefficients of zero with every intercept at ``intercept_init``."""
        coef = np.zeros((self.n_outputs, self.n_columns))
        if self.constant:
            coef[:, -1] = intercept_init / self.constant
        return coef

    def prior_weight(
        self, rows: Any, gram: Release | None = None, part: float = 1.0
    ) -> "PriorWeight":
        """Return what finds the weight of the prior, which there must be.

        ``rows`` are `BoundedRows`, ``gram`` is of them, and ``part`` is the probability
        with which a release samples them.
        """
        assert self.prior is not None
        from privfeat.solvers.prior import PriorWeight

        coef = self.prior.of_rows(rows.center, rows.row_scaling)
        coef[:, :-1] /= self.radius
        coef[:, -1] /= self.constant or np.inf
        coef = coef[:, : self.n_columns]
        # in a unit, a power of two, whose squares neither vanish nor overflow
        coef = np.ldexp(coef, -int(np.frexp(np.max(np.abs(coef)))[1]))
        number = rows.noisy_count
        return PriorWeight(
            coef,
            loss=self.loss,
            row_norm=rows.clip_norm,
            gram=gram,
            varied=rows.varied,
            n_records=None if number is None else number * part,
        )

    def signal_filter(
        self, center: NDArray[np.float64], inverse: NDArray[np.float64]
    ) -> "SignalFilter":
        """Return the filter by the spectrum of public rows, which there must be.

        ``inverse``: what sums of gradients are multiplied by for coefficients.
        """
        assert self.public is not None
        from privfeat.solvers.public import SignalFilter

        with phase("spectrum of the public rows"):
            return SignalFilter(self.public.second_moment(center), inverse)


@dataclass(frozen=True, kw_only=True)
class LinearProblem(Problem):
    """A problem of this ``shape``.

    Its sensitive ``targets`` are int, of shape (n_samples, max_labels): the outputs
    that a record belongs to, filled up with -1; or float, of shape (n_samples,): what a
    regression predicts, in [-1, 1].
    """

    shape: Shape
    queries: list[Query]  # all that the fit releases, for one record
    budget_split: Mapping[str, float] | None  # their shares of rho
    # makes `BoundedRows` of features and targets, ``team``, ``kept`` and ``private``
    bounded: Callable[..., Any]
    # what rows are shifted by, public; None: their mean, which is released
    center: NDArray[np.float64] | None

    def check_coef(self, coef: NDArray[np.float64]) -> None:
        """Raise ValueError unless ``_solve`` returned coefficients of this shape.

        FloatingPointError if one is not finite.

        Where classes were read, an audit hands releases of other classes to the fit.
        """
        got = np.shape(coef)
        n_outputs = got[0] if got and self.classes_read else self.shape.n_outputs
        if got != (n_outputs, self.shape.n_columns):
            raise ValueError(
                "_solve must return shape (shape.n_outputs, shape.n_columns), "
                f"{(self.shape.n_outputs, self.shape.n_columns)} here, got {got}; the "
                "budget is spent."
            )
        if not np.all(np.isfinite(coef)):
            raise FloatingPointError(
                "coefficients must be finite, got infinity or NaN; the budget is "
                "spent. Pass a smaller learning_rate or a larger ridge, where there is "
                "one."
            )
