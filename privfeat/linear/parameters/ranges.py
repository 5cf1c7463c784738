"""What values the parameters of linear models may have, by name.

The planning of releases checks the budget, and the problem what depends on the data.
"""

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from privfeat._checks import (
    check_bool,
    check_choice,
    check_int,
    check_positive,
    check_real,
    optional,
)
from privfeat._types import (
    ARITHMETICS,
    ITERATES,
    LOSS_OPTIONS,
    MATRIX_NOISES,
    ROW_SCALINGS,
    USER_BOUNDS,
)
from privfeat.core.accounting.plan import Query
from privfeat.core.bounds.grid import CLIP_RANGE, grid_step
from privfeat.core.bounds.user_clips import UserClip
from privfeat.linear.parameters.prior import check_prior
from privfeat.linear.parameters.public import check_public

Ranges = Mapping[str, Callable[[str, Any], object]]

IN_CLIP_RANGE = partial(check_real, low=CLIP_RANGE[0], high=CLIP_RANGE[1])
NOT_NEGATIVE = partial(check_real, low=0.0, include_high=False)
MATRIX_NOISE = partial(check_choice, choices=MATRIX_NOISES)

N_ITER = partial(check_int, low=1, high=100_000)


class GradientClips(NamedTuple):
    """The norm to which gradients are clipped if none is given; none by default."""

    of_unit_rows: float = math.inf  # each of a user of its own
    of_others: float = math.inf  # rows of other norms, and what users add


BEST_GRADIENT_CLIPS = GradientClips(0.75, 1.0)  # that were measured

RANGES: Ranges = {
    "alpha": NOT_NEGATIVE,
    "arithmetic": partial(check_choice, choices=ARITHMETICS),
    "class_gram": check_bool,
    "clip_norm": IN_CLIP_RANGE,
    "fit_intercept": check_bool,
    "gradient_clip_norm": optional(IN_CLIP_RANGE),
    "gram_clip_norm": optional(IN_CLIP_RANGE),
    "gram_noise": MATRIX_NOISE,
    "hessian_noise": MATRIX_NOISE,
    "intercept_init": partial(check_real, low=-1e6, high=1e6),
    "intercept_scaling": partial(check_real, low=1e-6, high=1e6),
    "iterate": partial(check_choice, choices=ITERATES),
    "learning_rate": optional(check_positive),
    "loss": partial(check_choice, choices=LOSS_OPTIONS),
    "max_group_size": optional(partial(check_int, low=1)),
    "max_labels": optional(partial(check_int, low=1)),
    "n_iter": optional(N_ITER),
    "prior": optional(check_prior),
    "public": optional(check_public),
    "ridge": optional(NOT_NEGATIVE),
    "row_scaling": partial(check_choice, choices=ROW_SCALINGS),
    # uniform draws have 52 bits: far smaller probabilities would round to zero
    "sampling_prob": partial(check_real, low=1e-9, high=1.0),
    "user_bound": partial(check_choice, choices=USER_BOUNDS),
    "verbose": partial(check_int, low=0),
}


def check_bounds(name: str, bounds: Any) -> None:
    """Raise unless these are two finite numbers, the lesser one first."""
    if not isinstance(bounds, tuple | list) or len(bounds) != 2:
        raise TypeError(f"{name} must be a pair of numbers, got {bounds!r}.")
    low, high = (check_real(name, bound, low=-1e100, high=1e100) for bound in bounds)
    if not low < high:
        raise ValueError(f"{name} must increase, got {bounds!r}.")


def check_clips(estimator: Any, queries: list[Query], shape: Any) -> None:
    """Refuse users whose sums cannot be clipped, before anything is charged."""
    norm, most = float(estimator.clip_norm), int(estimator.max_group_size or 1)
    further = getattr(estimator, "gram_clip_norm", None)
    for query in queries:
        if query.name in ("gradient", "class_contrasts"):
            sizes = (shape.loss, shape.n_outputs, math.inf, shape.gradient_clip)
            UserClip(norm, most).of_gradients(grid_step(norm), *sizes)
        elif query.name != "class_sums":
            radius = norm if further is None else min(norm, float(further))
            clip = UserClip(radius, most)
            clip.of_grams(grid_step(radius), shape.n_columns)
