"""Choose clip norm and learning rate of DP-SGD on public records.

References
----------
.. [1] Kurakin et al. Toward Training at ImageNet Scale with Differential Privacy. 2022.
   Section 3.3.
.. [2] Sander, Stock & Sablayrolles. TAN Without a Burn: Scaling Laws of DP-SGD. ICML
   2023. Section 3.4.
"""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from privfeat._checks import check_int, check_positive, check_real
from privfeat.analysis.tuning.kept import PublicFits

Step = Literal["no clipping", "clipping", "noise", "same product"]
# Their steps are in proportion to the gradients, so that a rate and a clip norm act by
# their product; those of Adam are not.
OPTIMIZERS = ("sgd", "heavy_ball", "nesterov")
RATES = (0.03, 0.1, 0.3, 1.0)
CLIP_NORMS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
_RATE_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
_CLIP_FACTORS = (0.25, 4.0)


class Trial(NamedTuple):
    """One setting that was tried, and the accuracy of each of its fits.

    ``noise_multiplier`` is that of the private fit, whose noise was simulated; 0
    without noise. ``clip_norm`` is ``inf`` without clipping.
    """

    step: Step
    clip_norm: float
    learning_rate: float
    noise_multiplier: float
    accuracies: tuple[float, ...]

    @property
    def accuracy(self) -> float:
        """Mean accuracy."""
        return float(np.mean(self.accuracies))


class ClippingRecipe(NamedTuple):
    """What was tried, in order, and the setting that was chosen.

    ``close`` says whether clipping without noise cost at most ``tolerance`` at some
    clip norm; if not, the norm is that of the highest accuracy.
    """

    trials: tuple[Trial, ...]
    chosen: Trial
    close: bool


def clipping_recipe(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    X_test: Any,
    y_test: ArrayLike,
    *,
    n_samples: int,
    learning_rates: Sequence[float] = RATES,
    clip_norms: Sequence[float] = CLIP_NORMS,
    tolerance: float = 0.02,
    n_repeats: int = 1,
    path: Path | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> ClippingRecipe:
    """Find clip norm and learning rate on **public** records, as [1]_ recommends.

    1. Without clipping, the rate of the highest accuracy.
    2. At this rate, clipping without noise: the smallest clip norm whose accuracy is
       within ``tolerance`` of that.
    3. At this norm, with noise: the rate of the highest accuracy.
    4. The same product of rate and norm, with a quarter and four times the norm: below
       a threshold it should not matter. The best of 3 and 4 is chosen.

    Parameters
    ----------
    estimator : DPSGDClassifier
        With the budget, the batch and the steps of the private fit; cloned. Its
        optimizer must be one of `OPTIMIZERS`.
    X, y, X_test, y_test
        **Public** records: the fits protect nothing of them, and no statement covers
        what is chosen by records that are not public.
    n_samples : int
        Number of private records.
    learning_rates, clip_norms : sequence of float
        What steps 1 and 2 try; > 0.
    tolerance : float
        In [0, 1].
    n_repeats : int
        Fits of each setting.
    path : Path, optional
        A JSON file that holds each accuracy from when it is known: what was interrupted
        goes on from there.
    progress : callable
        Gets a line before each fit.

    Raises
    ------
    TypeError, ValueError
        If an argument is out of range, the budget is infinite, clipping is not by fixed
        bounds, or the public records are too few.

    Notes
    -----
    A fit on ``m`` public records takes as many steps as the private one, with its
    sampling probability. So a batch is ``m / n_samples`` times as large, and as much
    smaller noise makes the mean of a batch as noisy as that of the private fit ([2]_).
    With more public records than private ones, batch and noise are those of the private
    fit.

    Examples
    --------
    >>> import numpy as np
    >>> from privfeat import DPSGDClassifier
    >>> X = np.repeat(np.arange(2), 100)[:, None] + np.zeros((200, 3))
    >>> y = X[:, 0].astype(int)
    >>> private = DPSGDClassifier(
    ...     model="mlp", epsilon=8.0, classes=[0, 1], n_iter=3, optimizer="sgd",
    ...     expected_batch_size=None,
    ... )
    >>> found = clipping_recipe(
    ...     private, X, y, X, y, n_samples=200, learning_rates=[1.0], clip_norms=[1.0]
    ... )
    >>> len(found.trials), found.chosen in found.trials
    (9, True)
    """
    _check(estimator, learning_rates, clip_norms)
    check_real("tolerance", tolerance, low=0.0, high=1.0)
    check_int("n_repeats", n_repeats, low=1)
    check_int("n_samples", n_samples, low=1)
    planned = estimator.planned(n_samples)
    (release,) = planned.releases
    if not planned.private:
        raise ValueError("epsilon must be finite, got inf. Pass the budget of the fit.")
    share = min(1.0, len(X) / n_samples)
    # with correlated noise the probability is that of a record that has its turn
    turns = getattr(release.query.strategy, "bands", 1)
    batch = share * release.query.sampling_prob * n_samples / turns
    if not batch >= 1.0:
        raise ValueError(
            "X must hold a record for each batch of the private fit, or more: at least "
            f"{math.ceil(len(X) / batch)}, got {len(X)}. Pass more public records, or "
            "larger batches."
        )
    same = {"expected_batch_size": batch, "n_iter": release.query.count, "ledger": None}
    fits = PublicFits(
        clone(estimator).set_params(**same),
        (X, y, X_test, y_test),
        path,
        {"n_samples": n_samples},
        progress,
    )

    def tried(step: Step, clip_norm: float, rate: float) -> Trial:
        noise = 0.0 if "clipping" in step else release.noise_multiplier
        params: dict[str, Any] = {"learning_rate": rate, "noise_multiplier": None}
        if math.isfinite(clip_norm):
            params |= {"clip_norm": clip_norm, "epsilon": None}
            params["noise_multiplier"] = noise * share
        else:
            params["epsilon"] = math.inf
        name = f"{step}: clip norm {clip_norm:.12g}, rate {rate:.12g}"
        scores = fits.accuracies(name, params, n_repeats, told=name)
        return Trial(step, clip_norm, rate, noise, scores)

    plain = [tried("no clipping", math.inf, rate) for rate in learning_rates]
    rate = _best(plain).learning_rate
    norms = sorted(clip_norms)
    clipped = [tried("clipping", norm, rate) for norm in norms]
    least = _best(plain).accuracy - tolerance
    near = [trial for trial in clipped if trial.accuracy >= least]
    norm = (near[0] if near else _best(clipped)).clip_norm
    noisy = [tried("noise", norm, rate * factor) for factor in _RATE_FACTORS]
    rate = _best(noisy).learning_rate
    noisy += [tried("same product", norm * k, rate / k) for k in _CLIP_FACTORS]
    trials = (*plain, *clipped, *noisy)
    return ClippingRecipe(trials, _best(noisy), bool(near))


def _best(trials: Sequence[Trial]) -> Trial:
    return max(trials, key=lambda trial: trial.accuracy)


def _check(
    estimator: Any, learning_rates: Sequence[float], clip_norms: Sequence[float]
) -> None:
    """Check that a clip norm and a rate are all that there is to find."""
    for name, values in (
        ("learning_rates", learning_rates),
        ("clip_norms", clip_norms),
    ):
        if not len(values):
            raise ValueError(f"{name} must hold a number, got none.")
        for value in values:
            check_positive(name, value)
    if estimator.optimizer not in OPTIMIZERS:
        raise ValueError(
            f"optimizer must be one of {', '.join(OPTIMIZERS)}, got "
            f"{estimator.optimizer!r}: the steps of others do not grow with the clip "
            "norm."
        )
    if (estimator.clipping, estimator.clip_factor) != ("fixed", "abadi"):
        raise ValueError(
            "clipping must be 'fixed' and clip_factor 'abadi', got "
            f"{estimator.clipping!r} and {estimator.clip_factor!r}. Others clip every "
            "gradient."
        )
    if estimator.checkpoint_dir is not None or estimator.max_group_size is not None:
        raise ValueError(
            "checkpoint_dir and max_group_size must be None for fits on public records."
        )
