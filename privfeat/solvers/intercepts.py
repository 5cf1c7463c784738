"""Intercepts that make the mean of predictions right, from one noisy gradient."""

import math

import numpy as np
from jaxtyping import Float
from scipy.special import logit

from privfeat._types import Loss
from privfeat.core.noise.release import Release


def first_intercepts(
    noisy_gradient: Release,
    *,
    loss: Loss,
    n_records: float,
    constant: float,
    largest: float,
) -> Float[np.ndarray, " m"]:
    """Return intercepts from the gradient at coefficients of zero, in its units.

    ``noisy_gradient`` is ``sum (p - y) x^T``, of shape (n_outputs, n_columns), whose
    last column is that of the ``constant`` coordinate of a row. ``n_records`` is
    released, or public, and ``largest`` the norm to which residuals of the longest rows
    were clipped.

    At zero all records have the same ``p``: ``1 / m`` for the softmax of ``m`` classes,
    one half for the sigmoid, 0 for the squared loss. So the last column, over the
    constant, is ``D_j = n p - n_j`` for ``n_j`` records of class ``j``, and noise of a
    known stddev ``s`` (of the softmax, less its mean, since these sum to zero). All
    residuals have the same norm, or for several labels and the squared loss at most
    about that, so clipping is undone by one factor. ``D`` is shrunk by ``max(0, 1 - q
    s**2 / norm(D)**2)``, as by James and Stein, but with ``q = k + 3 sqrt(2 k)`` for
    ``k`` degrees of freedom: noise alone has ``k``, and three standard deviations more
    in one draw of a hundred. So classes of which noise hides that they differ stay
    equal. A count that may be zero is lifted to ``s``, the least that is told from it.
    The intercepts are then the logarithms of the shares, their log odds, or the shares.
    """
    n_outputs = len(noisy_gradient.value)
    length, share = {
        "softmax": (math.sqrt(1.0 - 1.0 / n_outputs), 1.0 / n_outputs),
        "sigmoid": (math.sqrt(n_outputs) / 2.0, 0.5),
        "squared": (1.0, 0.0),
    }[loss]
    scale = max(1.0, length / largest) / constant
    missing = noisy_gradient.value[:, -1] * scale
    noise = noisy_gradient.noise_stddev * scale
    degrees = n_outputs
    if loss == "softmax":
        missing, degrees = missing - missing.mean(), n_outputs - 1
    energy = float(missing @ missing)
    if energy > 0.0:
        hidden = (degrees + 3.0 * math.sqrt(2.0 * degrees)) * noise**2
        missing = missing * max(0.0, 1.0 - hidden / energy)
    n_records = max(n_records, 1.0)
    least = min(max(noise, 1.0) / n_records, share) if share else 0.0
    shares = np.clip(share - missing / n_records, least, 1.0 - least)
    if loss == "squared":
        found = shares
    else:
        found = logit(shares) if loss == "sigmoid" else np.log(shares / share)
    return np.asarray(found / constant)
