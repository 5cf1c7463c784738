"""Train the simulations of settings that share a total amount of noise.

References
----------
.. [1] Sander, Stock & Sablayrolles. TAN Without a Burn: Scaling Laws of DP-SGD.
   ICML 2023. Section 4.3, Table 3.
"""

import json
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from privfeat._checks import check_int, check_positive, check_real
from privfeat._files import write_atomically
from privfeat._messages import without_warnings
from privfeat.analysis.tan import TrainingSettings
from privfeat.exceptions import PrivacyWarning


class SimulatedSettings(NamedTuple):
    """Settings, and the test accuracy of each of their simulations."""

    settings: TrainingSettings
    accuracies: tuple[float, ...]

    @property
    def accuracy(self) -> float:
        """Mean accuracy."""
        return float(np.mean(self.accuracies))


def simulate_settings(
    estimator: Any,
    candidates: Iterable[TrainingSettings],
    X: Any,
    y: ArrayLike,
    X_test: Any,
    y_test: ArrayLike,
    *,
    noise_multiplier: float,
    factor: float,
    n_repeats: int = 1,
    path: Path | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> list[SimulatedSettings]:
    """Train each of some settings on **public** records, with a part of its compute.

    Parameters
    ----------
    estimator : DPSGDClassifier
        Cloned; the settings take the place of its own.
    candidates : iterable of TrainingSettings
        Such as `tan.constant_tan_settings` returns.
    X, y, X_test, y_test
        **Public** records: the simulations protect nothing of them.
    noise_multiplier, factor : float
        That of the settings; batch size and noise are divided by ``factor``, as in
        `tan.simulate`.
    n_repeats : int
        Trainings with fresh noise.
    path : Path, optional
        A JSON file that holds each accuracy from when it is known: a search that was
        interrupted goes on from there.
    progress : callable
        Gets a line before each training.

    Raises
    ------
    TypeError, ValueError
        If an argument is out of range, if a simulated batch has more than all public
        records, or if ``path`` is of another search.

    Notes
    -----
    [1]_ finds the best of four settings with a batch of 256 instead of 16,384. Rates
    that are divided by the number of steps are for plain SGD.
    """
    check_positive("noise_multiplier", noise_multiplier)
    check_real("factor", factor, low=1.0, include_high=False)
    check_int("n_repeats", n_repeats, low=1)
    candidates = list(candidates)
    for settings in candidates:
        if not settings.batch_size / factor <= len(X):
            raise ValueError(
                f"factor must make batches of at most the {len(X)} public records, got "
                f"{factor:g} for a batch of {settings.batch_size}. Pass a larger one."
            )
    shared = {"noise_multiplier": noise_multiplier / factor, "epsilon": None}
    basis = clone(estimator).set_params(**shared)
    searched = {
        "estimator": repr(basis),
        "factor": factor,
        "records": [list(np.shape(rows)) for rows in (X, X_test)],
        "labels": [zlib.crc32(np.asarray(v).tobytes()) for v in (y, y_test)],
    }
    known = _read(path, searched)
    results = []
    for settings in candidates:
        name = "{} {} {:.17g}".format(*settings)
        scores = known.setdefault(name, [])
        while len(scores) < n_repeats:
            progress(
                f"{settings.n_iter} steps of {settings.batch_size / factor:g} records, "
                f"run {len(scores) + 1} of {n_repeats} ..."
            )
            private = clone(basis).set_params(
                expected_batch_size=settings.batch_size / factor,
                n_iter=settings.n_iter,
                learning_rate=settings.learning_rate,
            )
            # their huge epsilon is no promise
            with without_warnings(PrivacyWarning):
                scores.append(float(private.fit(X, y).score(X_test, y_test)))
            if path is not None:
                found = {"search": searched, "accuracies": known}
                write_atomically(path, f"{json.dumps(found, indent=2)}\n".encode())
        results.append(SimulatedSettings(settings, tuple(scores[:n_repeats])))
    return results


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
