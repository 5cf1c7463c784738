"""Private choices and scores in folds, and what those of scikit-learn cost."""

from privfeat.selection.cost import search_cost
from privfeat.selection.folds import HashKFold
from privfeat.selection.scoring import CrossValidation
from privfeat.selection.search import DPRandomizedSearch
from privfeat.selection.validation import private_cross_val_score

__all__ = [
    "CrossValidation",
    "DPRandomizedSearch",
    "HashKFold",
    "private_cross_val_score",
    "search_cost",
]
