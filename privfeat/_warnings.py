"""Warnings that point at the line of the user that called privfeat."""

import sys
import warnings

from privfeat.exceptions import PrivacyWarning

_PASSED = {"privfeat", "contextlib"}


def warn(message: str, category: type[Warning] = PrivacyWarning) -> None:
    """Warn, of weaker privacy if nothing else, at the nearest line of the user."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and _package(frame.f_globals) in _PASSED:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def _package(names: dict[str, object]) -> str:
    return str(names.get("__name__", "")).partition(".")[0]
