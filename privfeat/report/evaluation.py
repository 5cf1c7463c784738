"""A private evaluation as a report shows it: each figure with its interval."""

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from privfeat.metrics.intervals import Estimate
    from privfeat.metrics.measuring import Evaluation

# The figures that are one number, in words, and as the Hugging Face hub calls them.
_FIGURES = {
    "accuracy": ("accuracy", "accuracy"),
    "balanced_accuracy": ("balanced accuracy", "balanced_accuracy"),
    "roc_auc": ("area under the ROC curve", "roc_auc"),
    "ece": ("expected calibration error", "expected_calibration_error"),
    "r2": ("R squared", "r_squared"),
    "mean_absolute_error": ("mean absolute error", "mae"),
    "mean_squared_error": ("mean squared error", "mse"),
}


# How statements say how many records of a user count.
_COUNTED = re.compile(r"that of a user's records at most (\d+) count")


def counted_in_words(found: "Evaluation | None") -> str:
    """Return which rows of a user the figures are of; nothing where rows are apart."""
    facts = () if found is None else found.privacy.public
    for counted in filter(None, map(_COUNTED.fullmatch, facts)):
        rows = "one row" if counted[1] == "1" else f"at most {counted[1]} rows"
        return (
            f"The figures are of {rows} of each user, drawn at random: who has many "
            "rows weighs no more than others. Over all rows they may be others."
        )
    return ""


def tables_of(
    found: "Evaluation | None", class_names: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the rows of the tables of an evaluation, and what its charts show."""
    if found is None:
        return {}
    # imports scikit-learn, which a report without an evaluation needs not
    from privfeat.metrics import ClassifierEvaluation

    figures = [
        {"figure": _FIGURES[name][0], **_cells(one)}
        for name, one in found.figures.items()
        if name in _FIGURES
    ]
    tables: dict[str, Any] = {"figures": figures, "classes": []}
    tables["roc"] = tables["reliability"] = None
    if isinstance(found, ClassifierEvaluation):
        names = class_names or [str(label) for label in found.classes.tolist()]
        tables["classes"] = recall_rows(found.recall, names)
        tables["reliability"] = found.reliability
        if found.roc is not None:
            rates = found.roc.false_positive_rate, found.roc.true_positive_rate
            if not any(np.isnan(rate.value).any() for rate in rates):
                tables["roc"] = found.roc
    return tables


def recall_rows(recall: "Estimate", class_names: Sequence[str]) -> list[dict[str, str]]:
    """Return a row for each class, by its number where classes have no names."""
    names = class_names or map(str, range(len(recall.value)))
    parts = zip(names, recall.each(), strict=True)
    return [{"class": name, **_cells(one)} for name, one in parts]


def exact_recall(
    y: ArrayLike, probabilities: ArrayLike, classes: ArrayLike
) -> "Estimate":
    """Return the recall of each class on public records, with 95 % of sampling.

    ``classes`` ascend, as the columns of ``probabilities``, (n_samples, n_classes),
    are.
    """
    from privfeat.metrics.intervals import Width, proportion

    y, classes = np.asarray(y), np.asarray(classes)
    right = classes[np.argmax(probabilities, axis=1)] == y
    is_class = y == classes[:, None]
    n_right, n_all = (is_class & right).sum(axis=1), is_class.sum(axis=1)
    free = (0.0, 0.0, 0.0)
    return proportion(n_right, n_all - n_right, free, Width.of(0.95))


def exact_errors(y: ArrayLike, predicted: ArrayLike) -> dict[str, float]:
    """Return the figures of a regressor on public records, by their names."""
    from sklearn import metrics

    return {
        "records": np.size(y),
        "R squared": float(metrics.r2_score(y, predicted)),
        "mean absolute error": float(metrics.mean_absolute_error(y, predicted)),
        "mean squared error": float(metrics.mean_squared_error(y, predicted)),
    }


def metrics_of(found: "Evaluation") -> list[dict[str, Any]]:
    """Return the figures that are known, for the front matter of a model card."""
    return [
        {"type": _FIGURES[name][1], "value": round(one.value, 6)}
        for name, one in found.figures.items()
        if name in _FIGURES and math.isfinite(one.value)
    ]


def _cells(estimate: "Estimate") -> dict[str, str]:
    """Return the cells of an estimate; what noise hides is unknown."""
    value = "unknown" if math.isnan(estimate.value) else f"{estimate.value:.4g}"
    low, high = (f"{end:.4g}" for end in (estimate.low, estimate.high))
    return {"value": value, "from": low, "to": high}
