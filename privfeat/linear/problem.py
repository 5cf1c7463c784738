"""What a linear model makes of ``y``: targets, sizes, and the sums that it wants."""

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
from privfeat.core.bounds import replacement
from privfeat.estimation.problem import Problem

if TYPE_CHECKING:
    from privfeat.linear.parameters.prior import Prior
    from privfeat.linear.parameters.public import PublicRows
    from privfeat.linear.rows.bounded import BoundedRows
    from privfeat.solvers.public import SignalFilter

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

    def prior_coef(
        self, center: NDArray[np.float64], row_scaling: RowScaling
    ) -> NDArray[np.float64]:
        """Return the prior, which there must be, as coefficients of bounded rows."""
        assert self.prior is not None
        coef = self.prior.of_rows(center, row_scaling)
        coef[:, :-1] /= self.radius
        coef[:, -1] /= self.constant or np.inf
        coef = coef[:, : self.n_columns]
        # in a unit, a power of two, whose squares neither vanish nor overflow
        return np.ldexp(coef, -int(np.frexp(np.max(np.abs(coef)))[1]))

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
    # makes them of features and targets, ``team``, ``kept`` and ``private``
    bounded: "Callable[..., BoundedRows]"
    # what rows are shifted by, public; None: their mean, which is released
    center: NDArray[np.float64] | None

    def check_coef(self, coef: NDArray[np.float64]) -> None:
        """Raise ValueError unless ``_solve`` returned coefficients of this shape.

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
