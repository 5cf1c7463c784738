"""What is said of a classifier, from noisy counts of its predictions."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privfeat.core.noise.release import Release
from privfeat.core.statement.privacy_statement import PrivacyStatement
from privfeat.core.statement.rounding import rounded_up
from privfeat.metrics.curves import (
    Histograms,
    ReliabilityCurve,
    RocCurve,
    reliability,
    roc_auc,
    roc_curve,
)
from privfeat.metrics.intervals import (
    Estimate,
    Width,
    around,
    expected_count,
    mean_proportion,
    proportion,
)
from privfeat.metrics.tables import GRID, outcome_sizes
from privfeat.solvers.levels import agreed


class Figures:
    """What evaluations of all kinds show."""

    confidence: float
    privacy: PrivacyStatement

    @property
    def figures(self) -> dict[str, Estimate]:
        """The figures that are one number, by name."""
        return {
            name: value
            for name, value in vars(self).items()
            if isinstance(value, Estimate) and not np.ndim(value.value)
        }

    def __str__(self) -> str:
        """Return a line for each figure, then the cost."""
        return self.shown()

    def shown(self, class_names: Sequence[str] | None = None) -> str:
        """Return a line for each figure, classes by these names, then the cost."""
        figures, cost = self.figures, self.privacy
        width = max(map(len, figures))
        return "\n".join(
            [
                *(f"{name:<{width}}  {value}" for name, value in figures.items()),
                *self._of_classes(class_names),
                f"Intervals of {100 * self.confidence:.4g} %: sampling of the test "
                "records, and noise.",
                f"Cost for the test records: epsilon = {rounded_up(cost.epsilon)}, "
                f"delta = {rounded_up(cost.delta)}.",
            ]
        )

    def _of_classes(self, class_names: Sequence[str] | None) -> list[str]:
        return []


@dataclass(frozen=True)
class ClassifierEvaluation(Figures):
    """Figures of a classifier on private test records, each an `Estimate`.

    Attributes
    ----------
    classes : array of shape (n_classes,)
    confidence : float
        Of each interval by itself, such as 0.95.
    n_records : Estimate
        How many records were counted.
    accuracy, balanced_accuracy : Estimate
    recall : Estimate of arrays of shape (n_classes,)
    confusion : Estimate of arrays of shape (n_classes, n_classes)
        Expected numbers of records by class (rows) and predicted class (columns).
    roc_auc : Estimate or None
        Of two classes, with scores: how often a record of the second class has the
        higher score.
    roc : RocCurve or None
    ece : Estimate or None
        Expected calibration error, with scores: mean distance between confidence and
        accuracy over the bins of ``reliability``.
    reliability : ReliabilityCurve or None
    privacy : PrivacyStatement
        What all of them cost together, for the test records.
    """

    classes: NDArray[np.generic]
    confidence: float
    n_records: Estimate
    accuracy: Estimate
    balanced_accuracy: Estimate
    recall: Estimate
    confusion: Estimate
    roc_auc: Estimate | None
    roc: RocCurve | None
    ece: Estimate | None
    reliability: ReliabilityCurve | None
    privacy: PrivacyStatement

    def _of_classes(self, class_names: Sequence[str] | None) -> list[str]:
        """Return the recall of each class, and which one the ROC is of."""
        names = class_names or [str(label) for label in self.classes.tolist()]
        width = max(map(len, names))
        recalls = zip(names, self.recall.each(), strict=True)
        lines = ["Recall by class:"]
        lines += [f"  {name:<{width}}  {recall}" for name, recall in recalls]
        if self.roc is not None:
            lines.append(f"The area under the ROC is of finding {names[1]!r}.")
        return lines


def classifier_evaluation(
    outcomes: Release,
    scores: Release | None,
    classes: NDArray[np.generic],
    confidence: float,
    cluster: int,
    privacy: PrivacyStatement,
) -> ClassifierEvaluation:
    """Return what releases of `tables.exact_outcomes` and `exact_scores` say."""
    width, n_classes = Width.of(confidence, cluster), len(classes)
    right, wrong = agreed_outcomes(outcomes.value, outcomes.noise_stddev**2, n_classes)
    (all_right, class_right), (var_all_right, var_right) = right
    (all_wrong, class_wrong, others), (var_all_wrong, var_wrong, var_other) = wrong
    accuracy = proportion(
        all_right[0], all_wrong[0], (var_all_right, var_all_wrong, 0.0), width
    )
    by_class = class_right, class_wrong, (var_right, var_wrong, 0.0), width
    off = ~np.eye(n_classes, dtype=bool)
    confusion = np.diag(class_right)
    confusion[off] = others
    total = all_right[0] + all_wrong[0]
    auc = roc = curve = ece = None
    if scores is not None:
        found = Histograms.of(scores, GRID)
        if n_classes == 2:
            auc, roc = roc_auc(found, width), roc_curve(found, width)
            found = found.folded()
        curve, ece = reliability(found, n_classes, width)
    # they are here and now, so that only noise counts
    counts = around(total, var_all_right + var_all_wrong, width, 0.0, math.inf)
    return ClassifierEvaluation(
        classes=classes,
        confidence=confidence,
        n_records=counts,
        accuracy=accuracy,
        balanced_accuracy=mean_proportion(*by_class),
        recall=proportion(*by_class),
        confusion=expected_count(confusion, np.where(off, var_other, var_right), width),
        roc_auc=auc,
        roc=roc,
        ece=ece,
        reliability=curve,
        privacy=privacy,
    )


Agreed = tuple[list[NDArray[np.float64]], list[float]]


def agreed_outcomes(
    outcomes: NDArray[np.float64], noise_variance: float, n_classes: int
) -> tuple[Agreed, Agreed]:
    """Return counts that agree: of right predictions by class, and of wrong ones.

    Each with the variances of its levels; the last of the right, and the one before the
    last of the wrong, is of a class. Right ones of a class are counted twice, by class
    and by predicted class.
    """
    ends = np.cumsum(outcome_sizes(n_classes))[:-1]
    totals, by_class, table = np.split(outcomes, ends)
    by_class, table = by_class.reshape(-1, 2), table.reshape(n_classes, n_classes)
    both = 0.5 * (by_class[:, 0] + np.diag(table))
    right = agreed([totals[:1], both], [1.0, 0.5])
    off = table[~np.eye(n_classes, dtype=bool)]
    wrong = agreed([totals[1:], by_class[:, 1], off], [1.0] * 3)
    (rights, known), (wrongs, others) = right, wrong
    return (
        (rights, [noise_variance * v for v in known]),
        (wrongs, [noise_variance * v for v in others]),
    )
