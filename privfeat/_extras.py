"""Packages that are not always installed, checked before any work begins."""

from importlib.util import find_spec


def require(purpose: str, package: str, *, extra: str) -> None:
    """Raise ImportError unless a package is installed.

    Parameters
    ----------
    purpose : str
        What needs it, as the beginning of a sentence.
    package : str
        The name by which it is imported.
    extra : str
        Which of our extras brings it.

    Examples
    --------
    >>> require("a figure", "no_such_package", extra="plot")
    Traceback (most recent call last):
    ImportError: a figure needs no_such_package. Run pip install 'privfeat[plot]'.
    """
    if find_spec(package) is None:
        raise ImportError(
            f"{purpose} needs {package}. Run pip install 'privfeat[{extra}]'.",
            name=package,
        )
