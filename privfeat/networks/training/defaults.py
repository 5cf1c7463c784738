"""Defaults of networks: epochs, steps and batches, clip norm, views.

Epochs and batches follow from public numbers (`default_epochs`). Clip norm and views
are constants, for these reasons.

**Clip norm 1.** A record that the network has not learned has a longer gradient. Under
the softmax loss the gradient of the head alone has norm ``|p - e| sqrt(1 + |h|^2)``,
for probabilities ``p``, class ``e`` and inputs ``h`` of the head; at chance among ``m``
classes ``|p - e| = sqrt(1 - 1/m)``, and more where another class is likelier. Other
layers add theirs. So nearly all that is to be learned counts alike at 1 and at any
smaller bound: signal and noise shrink together, which Adam does not see. A larger bound
has as much more noise, but the signal grows to the norms of gradients at most.

**No views.** Views of a record cost no budget, but the time of as many epochs. They
narrow the gap between training and other records, which noise and ten epochs leave
small.

Measured (``benchmarks/default_views.py``; a network of two layers and 8,000 images of
8 pixels at epsilon 1 and 8): a tenth of the clip norm +0.1 and -0.3 points, ten times
-2.6 and -0.8; the gap is 2.0 and 3.4 points; four views -1.1 and -1.3 at four times the
cost, -3.8 and -6.4 at the same.
"""

import math
from typing import Literal, TypeAlias

from privfeat._types import Adjacency
from privfeat.core.accounting.conversions import gaussian_mu

BatchSize: TypeAlias = float | Literal["auto"] | None
STEPS = 200
_MOST_EPOCHS = 10.0  # for the sake of time
_NOISE = 4.0  # a multiplier from which on more epochs gain next to nothing


def fit_length(
    n_units: int,
    expected_batch_size: BatchSize,
    epochs: float | None,
    n_iter: int | None,
    epsilon: float | None,
    delta: float,
    adjacency: Adjacency,
) -> tuple[int, float]:
    """Return the number of steps and the expected batch size.

    ``n_units`` is the number of records, or of users: public, as the sampling
    probability is. An ``expected_batch_size`` of None is all; ``"auto"`` is what makes
    so many epochs of ``n_iter`` steps, and all under replace-one, which knows no
    sampling. ``epochs`` are by default those of `default_epochs`, and 10 without
    sampling; ``n_iter`` as many as the epochs need, of an ``"auto"`` batch 200. There
    is no ``epsilon`` where the noise is given.

    >>> fit_length(10_000, "auto", None, None, 8.0, 1e-5, "add_remove")
    (200, 500.0)
    >>> fit_length(10_000, 1000, None, None, 8.0, 1e-5, "add_remove")
    (100, 1000.0)
    """
    given = expected_batch_size
    if given == "auto" and adjacency == "replace_one":
        given = None
    if epochs is None:
        # without sampling no number of steps has less noise than another
        budget = None if given is None else epsilon
        epochs = default_epochs(budget, delta, n_iter or STEPS)
    if given == "auto":
        # more epochs than steps are steps with all records
        steps = int(n_iter or max(STEPS, math.ceil(epochs)))
        return steps, n_units * min(epochs / steps, 1.0)
    batch_size = float(given or n_units)
    if not batch_size <= n_units:
        raise ValueError(
            "expected_batch_size must be at most the number of records, or of users, "
            f"got {given!r}. Lower it (`privfeat train --batch`, or `--set "
            "expected_batch_size=` of an audit); None takes all."
        )
    return int(n_iter or math.ceil(epochs * n_units / batch_size)), batch_size


def default_epochs(epsilon: float | None, delta: float, n_iter: int = STEPS) -> float:
    """Return how many epochs a budget is worth: the more, the larger it is.

    At most 10, and 10 without a finite epsilon, or where the noise is given.

    ``T`` steps that take each record with probability ``q`` cost about ``mu**2 = q**2 T
    (exp(1 / s**2) - 1)`` of Gaussian DP at noise multiplier ``s`` (Bu et al. 2020,
    Theorem 5: a central limit, from which no noise is made here). The mean of ``n q``
    gradients has noise ``s / (n q)``, so that signal over noise of the whole fit is in
    proportion to ``n q sqrt(T) / s = n mu / (s sqrt(exp(1 / s**2) - 1))``. It grows
    with the epochs ``q T``, but to ``n mu`` at most, and at a given ``s`` it is the
    same for any number of steps (the constant noise of Sander et al. 2023): steps need
    only be enough to train. At ``s = 4`` it is 0.98 ``n mu``, and further epochs are
    lost: those of ``s = 4`` are ``3.9 mu sqrt(T)``, whatever ``n``, 10 at epsilon 0.65.
    More are not taken. By an accountant, signal over noise is then 0.93 of that of full
    batches at epsilon 1, 0.85 at 2 and 0.54 at 8: there more epochs are better, and
    slower.

    >>> [round(default_epochs(epsilon, 1e-5), 1) for epsilon in (0.1, 0.5, 1, 8)]
    [1.8, 7.9, 10.0, 10.0]
    """
    if epsilon is None or epsilon == math.inf:
        return _MOST_EPOCHS
    mu = gaussian_mu(epsilon, delta)
    return min(mu * math.sqrt(n_iter / math.expm1(_NOISE**-2)), _MOST_EPOCHS)
