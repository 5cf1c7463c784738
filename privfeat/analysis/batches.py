"""Noise against batch size in DP-SGD, and the learning rate that goes with it.

References
----------
.. [1] van der Veen, Seggers, Bloem & Patrini. Three Tools for Practical Differential
   Privacy. 2018. Section 2.3.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from privfeat._checks import check_int, check_positive
from privfeat.analysis.tan import TAN
from privfeat.core.accounting.conversions import bisect


class BatchSetting(NamedTuple):
    """One batch size at a fixed budget and number of epochs."""

    batch_size: int
    n_iter: int
    noise_multiplier: float
    noise_per_example: float
    learning_rate: float


def noise_by_batch_size(
    n_samples: int,
    batch_sizes: Sequence[int],
    *,
    epsilon: float,
    delta: float,
    n_epochs: float,
    base_batch_size: int = 128,
    base_learning_rate: float = 0.01,
) -> list[BatchSetting]:
    """Return the least noise that meets a budget, for each batch size.

    Parameters
    ----------
    n_samples : int
    batch_sizes : sequence of int
        Expected sizes of Poisson batches, each at most ``n_samples``.
    epsilon, delta : float
        Budget of the whole training, by Rényi divergences: never less noise than
        needed, a few per cent more than by loss distributions.
    n_epochs : float
        Passes over the data; fixes the number of steps.
    base_batch_size, base_learning_rate
        The rate is scaled linearly with the batch: [1]_ Section 2.3. Large batches pay
        only with the scaled rate (Table 1: 66.9 % with it, 47.2 % without).

    Returns
    -------
    settings : list of BatchSetting
        ``noise_per_example`` is the noise multiplier over the batch size.

    Raises
    ------
    ValueError
        Also if no noise multiplier up to 1e6 meets the budget.

    Examples
    --------
    >>> rows = noise_by_batch_size(
    ...     60_000, [128, 1024], epsilon=2.0, delta=1e-5, n_epochs=10
    ... )
    >>> rows[1].noise_per_example < rows[0].noise_per_example / 3
    True
    >>> rows[1].learning_rate
    0.08
    """
    check_int("n_samples", n_samples, low=1)
    check_positive("epsilon", epsilon)
    check_positive("n_epochs", n_epochs)
    check_int("base_batch_size", base_batch_size, low=1)
    check_positive("base_learning_rate", base_learning_rate)
    found = []
    for size in batch_sizes:
        check_int("batch_size", size, low=1, high=n_samples)
        n_iter = max(1, math.ceil(n_epochs * n_samples / size))
        noise = _least_noise(size / n_samples, n_iter, epsilon, delta)
        rate = base_learning_rate * size / base_batch_size
        found.append(BatchSetting(size, n_iter, noise, noise / size, rate))
    return found


def _least_noise(
    sampling_prob: float, n_iter: int, epsilon: float, delta: float
) -> float:
    """Return the smallest noise multiplier, to 0.001, that meets the budget."""

    def affordable(noise: float) -> bool:
        settings = TAN(sampling_prob, noise, n_iter)
        return settings.epsilon(delta, accountant="rdp") <= epsilon

    high = 0.1
    while not affordable(high):
        high *= 2.0
        if high > 1e6:
            raise ValueError(
                "epsilon must be reached by a noise multiplier of at most 1e6, got "
                f"{epsilon!r}. Pass a larger epsilon or delta."
            )
    return bisect(affordable, good=high, bad=high / 2.0, tol=1e-3)
