"""How sure an evaluation will be: from its noise, before a test record is read."""

import numpy as np

from privfeat._checks import check_between, check_bool, check_int, check_real
from privfeat._types import Adjacency
from privfeat.core.accounting.calibration import plan_releases
from privfeat.metrics import tables
from privfeat.metrics.classification import agreed_outcomes
from privfeat.metrics.intervals import Estimate, Width, proportion


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
        The part of them that the model may find; in [0, 1].
    n_classes : int, default=2
    max_group_size : int, default=1
        As of `private_evaluation` with ``groups``; 1 without.
    epsilon, delta : float
        As of `private_evaluation`: epsilon is 1 by default.
    adjacency : {"add_remove", "replace_one"}, default="add_remove"
    scores : bool, default=True
        Whether a histogram of probabilities is released as well, which leaves a quarter
        of the budget in zCDP to the recall.
    confidence : float, default=0.95

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
