"""Fits on public features with the noise that private records will get."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from privfeat._checks import check_int, check_positive
from privfeat._messages import without_warnings
from privfeat._types import Adjacency
from privfeat.analysis.planning import ESTIMATORS, make
from privfeat.exceptions import PrivacyWarning

# Inverse ridge of the non-private baseline on rows of unit norm.
_C = 10.0


@dataclass(frozen=True)
class Trial:
    """Accuracies of one estimator on public features."""

    estimator: str
    # of scikit-learn's ``LogisticRegression`` on the same rows: regularized as a fit
    # without noise is not, so that few rows do not overfit
    non_private: float
    accuracies: tuple[float, ...]  # one for each fit with noise

    @property
    def accuracy(self) -> float:
        """Mean accuracy with noise."""
        return float(np.mean(self.accuracies))

    @property
    def loss(self) -> float:
        """What privacy costs, in accuracy; it may be a little below 0."""
        return self.non_private - self.accuracy


def run_trials(
    X: NDArray[Any],
    y: NDArray[Any],
    *,
    n_samples: int,
    epsilon: float,
    delta: float = 1e-5,
    adjacency: Adjacency = "add_remove",
    estimators: Sequence[str] = ESTIMATORS[:4],
    n_repeats: int = 3,
    max_rows: int = 4000,
    clip_norm: float | None = None,
) -> list[Trial]:
    """Fit **public** records with the noise that ``n_samples`` private ones get.

    ``X`` and ``y`` are **public**: features from the same network, and labels, not of
    the private classes, but of as many, as hard to tell apart. They get no protection.
    At most ``max_rows`` of them train, and a third of their number test. ValueError,
    among others, if a class has fewer than two public records. ``clip_norm`` as for
    `privfeat.analysis.planning.plan`.

    All statistics are sums. So the noise on ``m`` public records is multiplied by ``m /
    n_samples``, which makes means as noisy as those of the private fit. What privacy
    costs carries over; what few records cost does not: compare with ``non_private``,
    which is measured on the same rows.
    """
    check_int("n_samples", n_samples, low=1)
    check_int("n_repeats", n_repeats, low=1)
    check_int("max_rows", max_rows, low=2)
    check_positive("epsilon", epsilon)
    classes, codes = np.unique(y, return_inverse=True)
    n_train = min(max_rows, (3 * len(X)) // 4)
    train, test, y_train, y_test = train_test_split(
        X,
        codes,
        train_size=n_train,
        test_size=min(len(X) - n_train, max(n_train // 3, len(classes))),
        stratify=codes,
        random_state=0,
    )
    free = LogisticRegression(C=_C, max_iter=300)
    if clip_norm is None:
        free = make_pipeline(Normalizer(), free)
    with without_warnings(ConvergenceWarning):
        baseline = float(free.fit(train, y_train).score(test, y_test))
    trials = []
    # their large epsilon, of little noise on few records, is no promise
    with without_warnings(PrivacyWarning):
        for name in estimators:
            private = make(name, len(classes), epsilon, delta, adjacency, clip_norm)
            planned = private.planned(X.shape[1]).releases[-1]
            # of a release with weight 1, which is what the parameter sets
            multiplier = planned.noise_multiplier * planned.query.weight**0.5
            scaled = private.set_params(
                epsilon=None, noise_multiplier=multiplier * len(train) / n_samples
            )
            scores = [
                float(scaled.fit(train, y_train).score(test, y_test))
                for _ in range(n_repeats)
            ]
            trials.append(Trial(name, baseline, tuple(scores)))
    return trials
