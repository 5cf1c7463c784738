"""Ridge regression from one noisy matrix of second moments."""

import math

import numpy as np
from jaxtyping import Float

from privfeat.core.noise.release import Release
from privfeat.solvers.prior import shrunk
from privfeat.solvers.spectrum import positive_part

_DOUBT = 0.5


def centred_ridge(
    noisy_moments: Release,
    *,
    n_features: int,
    ridge: float,
    prior: Float[np.ndarray, " d"] | None = None,
    prior_offset: float | None = None,
) -> tuple[Float[np.ndarray, " d"], float]:
    """Return slopes and offset of the regression of the target on the features.

    Parameters
    ----------
    noisy_moments : Release
        ``sum z z^T`` for rows ``z`` of the features, the target and, for an offset, a
        constant coordinate.
    n_features : int
    ridge : float
        Added to the diagonal of the features' centred moments; > 0. The offset is not
        penalized.
    prior : array of shape (n_features,), optional
        Slopes ``p`` that are expected. Public.
    prior_offset : float, optional
        The offset that is expected; the one that is found is shrunk towards it.

    Returns
    -------
    slopes : array of shape (n_features,)
        Units of the target coordinate per unit of the features.
    offset : float
        Units of the target coordinate per unit of the constant one; 0 without.

    Notes
    -----
    The noisy matrix is first projected on the positive semidefinite ones. The Schur
    complement of the constant coordinate, which removes the means, is then
    positive semidefinite as well. A noisy count that could be zero is lifted to the
    stddev of its noise: the means shrink instead of exploding.

    With a prior slopes are ``a p + t D``, by the rules of
    `privfeat.solvers.prior.PriorWeight.least_squares`, with other beliefs: a prior has
    the units of the target, and its weight is 1, give or take a half.
    """
    moments = positive_part(noisy_moments)
    means = np.zeros(n_features + 1)
    if len(moments) > n_features + 1:
        count = max(moments[-1, -1], noisy_moments.noise_stddev, 1e-300)
        means = moments[:-1, -1] / count
        moments = moments[:-1, :-1] - np.outer(means, moments[:-1, -1])
    gram, cross = moments[:n_features, :n_features], moments[:n_features, n_features]
    if prior is None:
        slopes = np.linalg.solve(gram + ridge * np.eye(n_features), cross)
    else:
        slopes = _beside(prior, gram, cross, ridge, noisy_moments.noise_stddev)
    offset = float(means[n_features] - means[:n_features] @ slopes)
    if prior_offset is not None and len(means) < len(noisy_moments.value):
        sizes = 1.0 + float(slopes @ slopes) + 2.0 * offset**2
        variance = sizes / 2.0 * (noisy_moments.noise_stddev / count) ** 2
        change = offset - prior_offset
        offset = prior_offset + math.copysign(shrunk(abs(change), variance), change)
    return slopes, offset


def _beside(
    prior: Float[np.ndarray, " d"],
    gram: Float[np.ndarray, "d d"],
    cross: Float[np.ndarray, " d"],
    ridge: float,
    stddev: float,
) -> Float[np.ndarray, " d"]:
    """Return ``a p + t D``; the noise in ``cross`` has a variance of ``stddev**2 / 2``.

    That in ``p G p``, of stddev ``stddev |p|**2``, counts as if the prior were right.
    """
    energy, variance = float(prior @ prior), stddev**2 / 2.0
    own = max(float(prior @ gram @ prior), energy * float(np.trace(gram)) / len(gram))
    error = variance * (energy + 2.0 * energy**2) / max(own, 1e-300) ** 2
    gain = _DOUBT**2 / (_DOUBT**2 + error)
    mean = 1.0 + gain * (float(prior @ cross) / max(own, 1e-300) - 1.0)
    weight = shrunk(mean, _DOUBT**2 * (1.0 - gain))
    left = cross - weight * (gram @ prior)
    inverse = np.linalg.inv(gram + ridge * np.eye(len(gram)))
    learned = inverse @ left
    noise = variance * float(np.sum(inverse**2))
    found = float(learned @ left) - variance * float(np.trace(inverse))
    size = max(float(learned @ learned) - noise, 0.0)
    found = shrunk(found, variance * (2.0 * noise + 4.0 * size))
    part = min(found / max(float(learned @ gram @ learned), 1e-300), 1.0)
    return np.asarray(weight * prior + part * learned)
