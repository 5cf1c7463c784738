"""Axes for the displays; matplotlib is imported here, when something is drawn."""

from typing import Any

from privfeat._checks import require


def axes_or_new(given: Any = None, n_columns: int = 1, **size: Any) -> tuple[Any, Any]:
    """Return the axes that were given and their figure, or new ones without a screen.

    ImportError if matplotlib is missing.
    """
    if given is None:
        require("a figure", "matplotlib", extra="plot")
        from matplotlib import pyplot

        _, given = pyplot.subplots(1, n_columns, layout="constrained", **size)
    return given, (given if n_columns == 1 else given[0]).figure
