"""Private choice of hyperparameters, and what the choices of scikit-learn cost."""

from privfeat.selection.cost import search_cost
from privfeat.selection.folds import HashKFold
from privfeat.selection.search import DPRandomizedSearch

__all__ = ["DPRandomizedSearch", "HashKFold", "search_cost"]
