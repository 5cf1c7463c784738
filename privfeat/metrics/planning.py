"""How sure an evaluation will be: from its noise, before a test record is read."""

import math

import numpy as np
from numpy.random import default_rng  # noqa: TID251 - of no record
from scipy.special import logit, ndtr, ndtri

from privfeat._checks import check_between, check_bool, check_int, check_real
from privfeat._types import Adjacency
from privfeat.core.accounting.calibration import plan_releases
from privfeat.metrics import tables
from privfeat.metrics.classification import agreed_outcomes
from privfeat.metrics.curves import Histograms, roc_auc
from privfeat.metrics.intervals import Estimate, Width, number, proportion

_DRAWS = 64


def planned_recall(
    n_records: int,
    *,
    recall: float = 0.8,
    n_classes: int = 2,
    max_group_size: int = 1,
    epsilon: float | None = None,
    delta: float = 1e-5,
    adjacency: Adjacency = "add_remove",
    scores: bool = True,
    confidence: float = 0.95,
) -> Estimate:
    """Return the interval that `private_evaluation` will find of the recall of a class.

    No record is read: the numbers of records, and of those that are found, are what you
    expect, and the noise is that of the budget. The interval of a real evaluation lies
    elsewhere, by chance, and is about as wide.

    Parameters
    ----------
    n_records : int
        How many test records the class will have that count: of users, at most
        ``max_group_size`` of each. What you expect, not what you counted. At least 1.
    recall : float, default=0.8
        The part of them that the model may find; in [0, 1]. Default: 0.8, as an
        example.
    n_classes : int, default=2
        Default: 2, as the fewest.
    max_group_size : int, default=1
        As of `private_evaluation` with ``groups``. Default: 1, as without.
    epsilon, delta : float
        Defaults: as of `private_evaluation`.
    adjacency : {"add_remove", "replace_one"}, default="add_remove"
        Default: as of `private_evaluation`.
    scores : bool, default=True
        Default: True, as there: whether a histogram of probabilities is released as
        well, which leaves a quarter of the budget in zCDP to the recall.
    confidence : float, default=0.95
        Default: 0.95, as there.

    Returns
    -------
    interval : Estimate
        Its ``value`` is ``recall``, or NaN where the noise is too large to tell.

    Raises
    ------
    TypeError, ValueError
        If a parameter is out of range.

    Notes
    -----
    The variance of the noise in the counts of right and wrong predictions is that of
    the planned release of ``outcomes``, after all its levels are made to agree; the
    interval is that of an evaluation that finds the expected counts.

    Examples
    --------
    >>> print(planned_recall(200, epsilon=1))
    0.8 (0.7135 to 0.8822)
    >>> print(planned_recall(200, epsilon=1, scores=False))
    0.8 (0.7316 to 0.8589)
    """
    n_records = check_int("n_records", n_records, low=1)
    recall = check_real("recall", recall, low=0.0, high=1.0)
    n_classes = check_int("n_classes", n_classes, low=2)
    most = check_int("max_group_size", max_group_size, low=1)
    confidence = check_between("confidence", confidence, 0.0, 0.999999)
    queries = [tables.outcomes_query(adjacency)]
    if check_bool("scores", scores):
        queries.append(tables.scores_query(adjacency))
    outcomes, *_ = plan_releases(
        [query.per_user(most) for query in queries],
        epsilon=epsilon,
        delta=delta,
        adjacency=adjacency,
    ).releases
    none = np.zeros(sum(tables.outcome_sizes(n_classes)))
    right, wrong = agreed_outcomes(none, outcomes.noise_stddev**2, n_classes)
    (_, right_of_class), (_, wrong_of_class, _) = right[1], wrong[1]
    return proportion(
        recall * n_records,
        (1.0 - recall) * n_records,
        (right_of_class, wrong_of_class, 0.0),
        Width.of(confidence, most),
    )


def planned_roc_auc(
    n_positives: int,
    n_negatives: int,
    *,
    area: float = 0.8,
    max_group_size: int = 1,
    epsilon: float | None = None,
    delta: float = 1e-5,
    adjacency: Adjacency = "add_remove",
    confidence: float = 0.95,
) -> Estimate:
    """Return the interval that `private_evaluation` will find of the ROC area.

    As `planned_recall`: no record is read, and an interval of a real evaluation lies
    elsewhere, by chance, and is about as wide.

    Parameters
    ----------
    n_positives, n_negatives : int
        How many test records of either class will count: of users, at most
        ``max_group_size`` of each. What you expect, not what you counted. At least 1.
    area : float, default=0.8
        The area under the ROC curve that the model may have; in (0.5, 1). Default: 0.8,
        as an example.
    max_group_size : int, default=1
        As of `private_evaluation` with ``groups``. Default: 1, as without.
    epsilon, delta : float
        Defaults: as of `private_evaluation`.
    adjacency : {"add_remove", "replace_one"}, default="add_remove"
        Default: as of `private_evaluation`.
    confidence : float, default=0.95
        Default: 0.95, as there.

    Returns
    -------
    interval : Estimate
        Its ``value`` is ``area``, or NaN where the noise is too large to tell.

    Raises
    ------
    TypeError, ValueError
        If a parameter is out of range.

    Notes
    -----
    Scores of either class are taken to be normal, with one variance, and the
    probabilities to be those that follow for the numbers of records. The noise is that
    of the planned release of ``scores``, and the ends are the means of 64 draws of it,
    always the same. Probabilities of a model that lie closer together share cells of
    the histogram, and the interval is wider.

    Examples
    --------
    >>> print(planned_roc_auc(100, 700, epsilon=1))
    0.8 (0.6577 to 0.9351)
    """
    counts = [
        check_int(name, given, low=1)
        for name, given in (("n_positives", n_positives), ("n_negatives", n_negatives))
    ]
    area = check_between("area", area, 0.5, 1.0)
    most = check_int("max_group_size", max_group_size, low=1)
    confidence = check_between("confidence", confidence, 0.0, 0.999999)
    queries = (tables.outcomes_query(adjacency), tables.scores_query(adjacency))
    *_, scores = plan_releases(
        [query.per_user(most) for query in queries],
        epsilon=epsilon,
        delta=delta,
        adjacency=adjacency,
    ).releases
    grid, apart = tables.GRID, math.sqrt(2.0) * float(ndtri(area))
    # of a score ``x`` around 0 and around ``apart`` the probability is that of
    # ``apart x - apart^2 / 2`` and the logarithm of the odds
    ends = (logit(grid.edges) - math.log(counts[0] / counts[1])) / apart + 0.5 * apart
    below = np.stack([ndtr(ends), ndtr(ends - apart)])  # negatives, positives
    expected = np.diff(below, axis=1) * np.array([counts[1], counts[0]])[:, None]
    covariance = scores.noise_stddev**2 * grid.noise_covariance()
    width = Width.of(confidence, most)
    if not Histograms(grid, expected, covariance).known_totals(width.z):
        return number(math.nan, 0.0, 1.0)
    root = scores.noise_stddev * np.linalg.cholesky(grid.noise_covariance())
    noise = default_rng(0).normal(size=(_DRAWS, *expected.shape)) @ root.T
    found = [roc_auc(Histograms(grid, expected + n, covariance), width) for n in noise]
    low, high = np.mean([(one.low, one.high) for one in found], axis=0)
    return number(area, low, high)
