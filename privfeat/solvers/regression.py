"""Ridge regression from one noisy matrix of second moments."""

import numpy as np
from jaxtyping import Float

from privfeat.core.noise.release import Release
from privfeat.solvers.spectrum import positive_part


def centred_ridge(
    noisy_moments: Release, *, n_features: int, ridge: float
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
    """
    moments = positive_part(noisy_moments)
    means = np.zeros(n_features + 1)
    if len(moments) > n_features + 1:
        count = max(moments[-1, -1], noisy_moments.noise_stddev, 1e-300)
        means = moments[:-1, -1] / count
        moments = moments[:-1, :-1] - np.outer(means, moments[:-1, -1])
    gram, cross = moments[:n_features, :n_features], moments[:n_features, n_features]
    slopes = np.linalg.solve(gram + ridge * np.eye(n_features), cross)
    return slopes, float(means[n_features] - means[:n_features] @ slopes)
