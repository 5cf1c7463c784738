"""What a budget will buy, before any private record is read.

The noise of every release is exact: it is what ``fit`` will draw. The loss of accuracy
is a **rough estimate** from that noise and an assumption about the features. It tells
whether a budget is hopeless, tight or ample; which estimator is recommended comes from
accuracies that were measured (`privfeat.analysis.curves`).
`privfeat.analysis.public_trials` tells more, from public features.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtr

from privfeat._checks import check_choice, check_int, check_positive
from privfeat._types import Adjacency
from privfeat.analysis.curves import accuracy_of_each_set, measured_accuracy
from privfeat.core.accounting.conversions import gaussian_epsilon, gaussian_mu
from privfeat.core.accounting.plan import PlannedRelease

ESTIMATORS = ("DPFC", "DPLeastSquares", "DPAdamLinear", "DPNearestMean", "DPNewton")
# The largest lead, about, of features that were centred and scaled to unit norm.
LARGEST_LEAD = 0.5
# The matrices of an estimator, in float64, that fit well into a laptop.
_MATRIX_BYTES = 2**30
# The queries that separate classes, the last two in units of the others.
_EVIDENCE = (
    "class_sums",
    "class_contrasts",
    "gradient",
    "class_sums_and_gram",
    "gradient_and_gram",
)
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(40)


@dataclass(frozen=True)
class EstimatorOutlook:
    """What one estimator will draw, and what to expect of it.

    Attributes
    ----------
    estimator : str
    releases : tuple of PlannedRelease
        Noise of every release, as ``fit`` draws it.
    score_noise : float
        Stddev that all noise together puts on the score of a class, for a row of the
        largest norm; 1 is the score of ``n / n_classes`` copies of the row itself.
    expected_loss : float
        Part of the records that the noise alone turns to a wrong class; see
        `expected_loss`.
    matrix_bytes : int
        Memory of the matrices that it holds.
    """

    estimator: str
    releases: tuple[PlannedRelease, ...]
    score_noise: float
    expected_loss: float
    matrix_bytes: int


@dataclass(frozen=True)
class Outlook:
    """What `plan` found.

    Attributes
    ----------
    n_samples, n_features, n_classes : int
    epsilon, delta : float
    adjacency : {"add_remove", "replace_one"}
    estimators : tuple of EstimatorOutlook
    data_factor : float
    more_data : tuple of EstimatorOutlook
        The same with ``data_factor`` times the records, at the same budget.
    same_noise_epsilon : float
        With so many records, the epsilon at which scores are as noisy as with
        ``n_samples`` at ``epsilon``: exact but for estimators that sample records.
    recommended : str
    reason : str
    """

    n_samples: int
    n_features: int
    n_classes: int
    epsilon: float
    delta: float
    adjacency: Adjacency
    estimators: tuple[EstimatorOutlook, ...]
    data_factor: float
    more_data: tuple[EstimatorOutlook, ...]
    same_noise_epsilon: float
    recommended: str
    reason: str

    def warnings(self) -> tuple[str, ...]:
        """Return what to change before anything is spent."""
        return delta_warnings(self.delta, self.n_samples)


def delta_warnings(delta: float, n_samples: int) -> tuple[str, ...]:
    """Return a warning if ``delta`` promises little to so many records."""
    if not delta * n_samples > 1.0:
        return ()
    return (
        f"delta should be well below one over the number of records, got {delta:g} for "
        f"{n_samples:,}: a method with such a delta may publish one whole record. Pass "
        "a smaller one.",
    )


def plan(
    n_samples: int,
    n_features: int,
    n_classes: int,
    *,
    epsilon: float,
    delta: float = 1e-5,
    adjacency: Adjacency = "add_remove",
    estimators: Sequence[str] = ESTIMATORS,
    clip_norm: float | None = None,
    data_factor: float = 2.0,
) -> Outlook:
    """Return the noise of every estimator and what to expect of it.

    Parameters
    ----------
    n_samples : int
        Roughly; it only scales expectations, never the noise.
    n_features, n_classes : int
    epsilon, delta : float
        The budget; ``epsilon`` is finite.
    adjacency : {"add_remove", "replace_one"}, default="add_remove"
    estimators : sequence of str
        Names of classifiers, with their default parameters.
    clip_norm : float, optional
        Of rows that are clipped, ``row_scaling="clip"``, as those of tables; > 0.
        Default: None, rows that are scaled to unit norm, as those of features.
    data_factor : float
        Shows what so many times the records would buy; > 0.

    Raises
    ------
    TypeError, ValueError
        If an argument is out of range.

    Examples
    --------
    >>> found = plan(50_000, 768, 100, epsilon=1.0)
    >>> found.recommended
    'DPFC'
    >>> [f"{row.expected_loss:.2f}" for row in found.estimators[:2]]
    ['0.03', '0.04']
    """
    check_int("n_samples", n_samples, low=1)
    check_int("n_features", n_features, low=1)
    check_int("n_classes", n_classes, low=2)
    check_positive("epsilon", epsilon, remedy="Without privacy there is no noise.")
    data_factor = check_positive("data_factor", data_factor)
    for name in estimators:
        check_choice("estimator", name, ESTIMATORS)
    sizes, budget = (n_samples, n_features, n_classes), (epsilon, delta, adjacency)
    norm = 1.0 if clip_norm is None else check_positive("clip_norm", clip_norm)
    rows = [
        _estimator_outlook(make(name, n_classes, *budget, clip_norm), *sizes, norm)
        for name in estimators
    ]
    noises = [row.score_noise / data_factor for row in rows]
    more = tuple(
        replace(row, score_noise=noise, expected_loss=expected_loss(noise, n_classes))
        for row, noise in zip(rows, noises, strict=True)
    )
    # scores are as noisy as sums are, over the number of records: by 1 / (n mu)
    least = gaussian_epsilon(gaussian_mu(epsilon, delta) / data_factor, delta)
    best, reason = _recommend(rows, *sizes[::2], epsilon, adjacency)
    return Outlook(*sizes, *budget, tuple(rows), data_factor, more, least, best, reason)


def expected_loss(
    score_noise: float, n_classes: int, *, largest_lead: float = LARGEST_LEAD
) -> float:
    """Return the part of records that noise alone turns to a wrong class.

    Parameters
    ----------
    score_noise : float
        Stddev ``t`` of independent noise in the score of each class; >= 0.
    n_classes : int
        ``k >= 2``.
    largest_lead : float
        Leads of records are taken to be uniform in ``[0, largest_lead]``: the score of
        their own class over all others, if there were no noise; > 0.

    Returns
    -------
    loss : float
        In ``[0, 1 - 1/k]``, relative to the accuracy without privacy.

    Notes
    -----
    With the lead ``g``, the own class stays first with probability ``E Phi(Z + g /
    t)^(k-1)``, ``Z`` standard normal. The estimate does not know how far apart *your*
    classes are, nor what a ridge, rows in few directions or noisy curvature change. If
    classes are close the loss is larger, if they are far apart it is smaller.
    """
    check_int("n_classes", n_classes, low=2)
    check_positive("largest_lead", largest_lead)
    if score_noise == 0.0:
        return 0.0
    check_positive("score_noise", score_noise)
    leads = (np.arange(200) + 0.5) / 200 * largest_lead
    first = ndtr(_NODES + leads[:, None] / score_noise) ** (n_classes - 1)
    return float(1.0 - np.mean(first @ _WEIGHTS) / _WEIGHTS.sum())


def make(
    name: str,
    n_classes: int,
    epsilon: float,
    delta: float,
    adjacency: Adjacency,
    clip_norm: float | None = None,
) -> Any:
    """Return the estimator called ``name`` for this budget, and rows as for `plan`."""
    from privfeat import linear

    given: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "adjacency": adjacency}
    if clip_norm is not None:
        given |= {"row_scaling": "clip", "clip_norm": clip_norm}
    return getattr(linear, name)(classes=range(n_classes), **given)


def _estimator_outlook(
    estimator: Any, n_samples: int, n_features: int, n_classes: int, norm: float
) -> EstimatorOutlook:
    """Return what a fit would release, its expected accuracy loss and its memory."""
    name = type(estimator).__name__
    releases = estimator.planned(n_features).releases
    # their mean, weighted by precision, has the sum of all precisions
    precision = sum(
        release.query.count * (norm / release.noise_stddev) ** 2
        for release in releases
        if release.query.name in _EVIDENCE
    )
    noise = n_classes / (n_samples * math.sqrt(precision))
    counts = {"DPAdamLinear": 0, "DPNearestMean": 0, "DPNewton": n_classes}
    matrices = counts.get(name, 1)
    n_bytes = 8 * matrices * (n_features + 1) ** 2
    loss = expected_loss(noise, n_classes)
    return EstimatorOutlook(name, releases, noise, loss, n_bytes)


def _recommend(
    rows: Sequence[EstimatorOutlook],
    n_samples: int,
    n_classes: int,
    epsilon: float,
    adjacency: Adjacency,
) -> tuple[str, str]:
    """Return the first estimator, unless another was measured to be clearly better.

    That is by more than the standard error of the difference, where as many records a
    class were measured. Without room for its matrices: the first that has. Two records
    that replace each other move sums about as much as one does at half of epsilon.
    """
    fits = [row.estimator for row in rows if row.matrix_bytes <= _MATRIX_BYTES]
    first = rows[0].estimator
    if not fits:
        return first, "no estimator's matrices fit in 1 GiB"
    if first not in fits:
        return fits[0], "its matrices fit in 1 GiB, unlike those before it"
    if adjacency == "replace_one":
        epsilon /= 2.0
    found = measured_accuracy(fits, n_samples / n_classes, n_classes, epsilon)
    if first not in found:
        return first, "the first choice; others were not measured beside it"
    best = max(found, key=lambda name: found[name].accuracy)
    lead = found[best].accuracy - found[first].accuracy
    if lead <= math.hypot(found[best].error, found[first].error):
        best = first
    each = accuracy_of_each_set(best, n_samples / n_classes, epsilon)
    told = ", ".join(f"{accuracy:.0%} of {name}" for name, accuracy in each.items())
    return (
        best,
        "on average the best, or as good, of what was measured with about as many "
        f"records a class. It had right {told}; your own records may be harder than "
        "all of these",
    )
