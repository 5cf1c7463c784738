"""Private evaluation: figures of a model on test records, which are protected too.

A test set is private as a training set is. Its figures are made of one or two releases
of noisy sums, charged to a budget of the test records, each with an interval that holds
the noise and the sampling. Exact figures, of public test sets, are those of
`sklearn.metrics` and of `privfeat.analysis`.
"""

from privfeat.metrics.classification import ClassifierEvaluation
from privfeat.metrics.curves import ReliabilityCurve, RocCurve
from privfeat.metrics.evaluation import evaluation_of_predictions, private_evaluation
from privfeat.metrics.intervals import Estimate
from privfeat.metrics.planning import planned_recall, planned_roc_auc
from privfeat.metrics.regression import RegressorEvaluation

__all__ = [
    "ClassifierEvaluation",
    "Estimate",
    "RegressorEvaluation",
    "ReliabilityCurve",
    "RocCurve",
    "evaluation_of_predictions",
    "planned_recall",
    "planned_roc_auc",
    "private_evaluation",
]
