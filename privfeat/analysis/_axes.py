"""Axes for the displays; matplotlib is imported here, when something is drawn."""

from typing import Any

from privfeat._extras import require


def axes_or_new(ax: Any = None) -> tuple[Any, Any]:
    """Return ``ax`` and its figure, or new ones that need no screen.

    Raises
    ------
    ImportError
        If matplotlib is missing.
    """
    if ax is None:
        require("a figure", "matplotlib", extra="plot")
        from matplotlib import pyplot

        _, ax = pyplot.subplots(layout="constrained")
    return ax, ax.figure
