"""Packages that take seconds to import, for the tests that use them alone."""

import pytest


class Later:
    """Stands for a package, which is imported when something of it is first used.

    A test that uses a package which is not installed is skipped then; a module asks
    for ``pytest.mark.usefixtures("with_timm")`` to skip all of its tests.
    """

    def __init__(self, name):
        self._name = name

    def __getattr__(self, name):
        if name.startswith(("_", "pytest")):  # pytest looks for marks while it collects
            raise AttributeError(f"{self._name} has no {name} before it is imported")
        return getattr(pytest.importorskip(self._name), name)
