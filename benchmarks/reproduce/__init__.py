"""The protocol of Mehta et al. (2023), with many trials in one pass over the rows.

Nothing here is private in use: trials are chosen by test accuracy, as in the paper.
"""

from reproduce.search import METHODS, Cell, best_cells, tuned

__all__ = ["METHODS", "Cell", "best_cells", "tuned"]
