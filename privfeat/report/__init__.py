"""Tables, figures, reports and model cards; nothing here decides a privacy statement.

accuracy.py, plots.py: accuracy against epsilon. guarantee.py: what a statement implies.
html.py, svg.py, templates/: one self-contained page about a fit.
ledger.py: what a ledger holds. card.py: a model card.
"""

from privfeat.report.accuracy import AccuracyGrid, format_grid
from privfeat.report.plots import plot_grid

__all__ = ["AccuracyGrid", "format_grid", "plot_grid"]
