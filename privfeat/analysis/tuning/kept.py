"""Fits on public records, whose accuracies are kept from when they are known."""

import json
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from privfeat._files import write_atomically
from privfeat._messages import without_warnings
from privfeat.estimation.bases import described
from privfeat.exceptions import PrivacyWarning


class PublicFits:
    """Fits of one estimator on **public** records, scored on others.

    ``estimator`` is cloned for each fit. ``data`` are records and labels, and those to
    test on: all public, for nothing protects them. ``path`` is a JSON file of the
    accuracies that are known: what was interrupted goes on. ``searched`` is what else
    all fits share, and ``progress`` gets a line before each. ValueError if ``path`` is
    of another estimator or of other records.
    """

    def __init__(
        self,
        estimator: Any,
        data: tuple[Any, Any, Any, Any],
        path: Path | None,
        searched: Mapping[str, Any],
        progress: Callable[[str], None],
    ) -> None:
        self._estimator, self._data, self._path = estimator, data, path
        self._progress = progress
        self._searched = {
            "estimator": described(estimator),
            **searched,
            "records": [list(np.shape(rows)) for rows in data[::2]],
            "checksums": [zlib.crc32(np.asarray(v).tobytes()) for v in data],
        }
        self._known = _read(path, self._searched)

    def accuracies(
        self, name: str, params: Mapping[str, Any], n_repeats: int, told: str
    ) -> tuple[float, ...]:
        """Return the accuracies of so many fits, ``told`` so, of those kept by name."""
        while len(scores := self._known.get(name, [])) < n_repeats:
            self._progress(f"{told}, run {len(scores) + 1} of {n_repeats} ...")
            self.add(name, params)
        return tuple(scores[:n_repeats])

    def add(self, name: str, params: Mapping[str, Any]) -> None:
        """Fit with these parameters, and keep the accuracy under the name.

        Of a fit that overflows it is 0.
        """
        X, y, X_test, y_test = self._data
        private = clone(self._estimator).set_params(**params)
        # their huge epsilon is no promise
        with without_warnings(PrivacyWarning):
            try:
                score = float(private.fit(X, y).score(X_test, y_test))
            except FloatingPointError:
                score = 0.0
        self._known.setdefault(name, []).append(score)
        if self._path is not None:
            found = {"search": self._searched, "accuracies": self._known}
            write_atomically(self._path, f"{json.dumps(found, indent=2)}\n".encode())


def _read(path: Path | None, searched: dict[str, Any]) -> dict[str, list[float]]:
    """Return the accuracies that the file of a search holds; none if there is none."""
    if path is None or not path.exists():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        same, known = found["search"] == searched, dict(found["accuracies"])
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} must be a file of a search.") from error
    if not same:
        raise ValueError(
            f"{path} must be of a search with these parameters and records, but is of "
            "another. Name a new file."
        )
    return known
