"""Train the simulations of settings that share a total amount of noise.

References
----------
.. [1] Sander, Stock & Sablayrolles. TAN Without a Burn: Scaling Laws of DP-SGD.
   ICML 2023. Section 4.3, Table 3.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from privfeat._checks import check_int, check_positive, check_real
from privfeat.analysis.tan import TrainingSettings
from privfeat.analysis.tuning.kept import PublicFits


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

    ``candidates``, such as `tan.constant_tan_settings` returns, take the place of the
    settings of ``estimator``, a DPSGDClassifier, which is cloned. The simulations
    protect nothing of the records. Batch size and ``noise_multiplier`` are divided by
    ``factor``, as in `tan.simulate`; ``n_repeats`` trainings have fresh noise. ``path``
    is a JSON file that holds each accuracy from when it is known: a search that was
    interrupted goes on from there. ``progress`` gets a line before each training.

    TypeError or ValueError if an argument is out of range, if a simulated batch has
    more than all public records, or if ``path`` is of another search.

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
    fits = PublicFits(
        clone(estimator).set_params(**shared),
        (X, y, X_test, y_test),
        path,
        {"factor": factor},
        progress,
    )
    results = []
    for settings in candidates:
        batch = settings.batch_size / factor
        params = {**settings._asdict(), "expected_batch_size": batch}
        del params["batch_size"]
        scores = fits.accuracies(
            "{} {} {:.17g}".format(*settings),
            params,
            n_repeats,
            told=f"{settings.n_iter} steps of {batch:g} records",
        )
        results.append(SimulatedSettings(settings, scores))
    return results
