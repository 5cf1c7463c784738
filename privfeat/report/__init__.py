"""Accuracy tables and figures; nothing here decides a privacy statement."""

from privfeat.report.accuracy import AccuracyGrid, format_grid
from privfeat.report.plots import plot_grid

__all__ = ["AccuracyGrid", "format_grid", "plot_grid"]
