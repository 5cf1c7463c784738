"""From labels and predictions to what an evaluation says, by way of releases."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privfeat._checks import check_between
from privfeat._memory import check_room
from privfeat._messages import array_of
from privfeat.metrics import tables
from privfeat.metrics.budget import PrivateEvaluation, SumOf
from privfeat.metrics.classification import ClassifierEvaluation, classifier_evaluation
from privfeat.metrics.predictions import (
    Shorten,
    classes_and_scores,
    codes_of,
    numbers_of,
)
from privfeat.metrics.regression import (
    RegressorEvaluation,
    checked_bounds,
    evaluation_of_sums,
)

# Of a cell of the confusion matrix, with what is made of it.
_CELL_BYTES = 64.0
Evaluation = ClassifierEvaluation | RegressorEvaluation
# Returns of each of the records, in their order, what the function makes of its
# prediction.
Predict = Callable[[Shorten], NDArray[np.float64]]


def measured(
    predict: Predict,
    y: ArrayLike,
    classes: NDArray[Any] | None,
    *,
    has_scores: bool,
    facts: list[str],
    target_bounds: tuple[float, float] | None,
    confidence: float,
    budget: PrivateEvaluation,
    n_records: int,
) -> Evaluation:
    """Check, predict, release, describe; without classes, of a regressor.

    Parameters are checked, and the releases planned, before anything is predicted.
    """
    confidence = check_between("confidence", confidence, 0.0, 0.999999)
    facts = [*facts, "all parameters but random_state"]
    targets = array_of(y)
    if targets.shape != (n_records,) or not n_records:
        raise ValueError("X and y must have the same number of rows, at least 1.")
    if classes is None:
        bounds = checked_bounds(target_bounds)
        plan = budget.plan([tables.errors_query(budget.adjacency)])
        targets, predicted = numbers_of(targets), predict(numbers_of)
        errors: dict[str, SumOf] = {
            "errors": partial(tables.exact_errors, targets, predicted, bounds)
        }
        found = budget.release(plan, errors, n_records=n_records, public=facts)
        about = (bounds, confidence, budget.most, budget.privacy_)
        noisy = found["errors"]
        return evaluation_of_sums(noisy.value, noisy.noise_stddev, *about)
    if target_bounds is not None:
        raise ValueError(
            f"target_bounds must be None for a classifier, got {target_bounds!r}."
        )
    if classes.ndim != 1 or len(classes) < 2 or np.any(classes[:-1] >= classes[1:]):
        raise ValueError("classes must be at least 2 labels, ascending.")
    n_classes = len(classes)
    check_room("the confusion matrix", _CELL_BYTES * n_classes**2, "Merge classes.")
    queries = [tables.outcomes_query(budget.adjacency)]
    queries += [tables.scores_query(budget.adjacency)] * has_scores
    plan = budget.plan(queries)
    codes = codes_of("y", targets, classes)
    chosen, score = predict(partial(classes_and_scores, classes)).T
    predicted = chosen.astype(np.intp)
    sides = codes if n_classes == 2 else (codes == predicted).astype(np.intp)
    sums: dict[str, SumOf] = {
        "outcomes": partial(tables.exact_outcomes, codes, predicted, n_classes),
        "scores": partial(tables.exact_scores, sides, score),
    }
    facts = [*facts, "the classes, and that all labels are among them"]
    found = budget.release(plan, sums, n_records=len(codes), public=facts)
    return classifier_evaluation(
        found["outcomes"],
        found.get("scores"),
        classes,
        confidence,
        budget.most,
        budget.privacy_,
    )
