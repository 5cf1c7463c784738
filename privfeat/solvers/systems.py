"""One noisy positive definite system per class."""

from contextlib import suppress

import numpy as np
from jaxtyping import Float
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from privfeat.core.noise.release import Release
from privfeat.solvers.spectrum import regularized_inverse


def solve_regularized(
    noisy_matrix: Release, rhs: Float[np.ndarray, " d"], *, ridge: float
) -> Float[np.ndarray, " d"]:
    """Return ``(A + ridge I)^-1 rhs`` for a noisy Gram-like matrix ``A``, (d, d).

    By Cholesky. Where noise has made the matrix indefinite in spite of the ridge, or it
    is not symmetric, by `regularized_inverse`; the choice depends on releases alone.
    ``rhs`` is computed from releases; ``ridge`` is in units of the matrix, >= 0.
    FloatingPointError if the system is not finite.
    """
    if noisy_matrix.symmetric:
        shifted = np.array(noisy_matrix.value)
        shifted[np.diag_indices_from(shifted)] += ridge
        if not np.all(np.isfinite(shifted)) or not np.all(np.isfinite(rhs)):
            raise FloatingPointError(
                "the system must be finite, got overflow; the budget is spent. Pass a "
                "smaller learning_rate or a larger ridge."
            )
        with suppress(LinAlgError):
            factor = cho_factor(shifted, lower=True, overwrite_a=True)
            return np.asarray(cho_solve(factor, rhs))
    return np.asarray(regularized_inverse(noisy_matrix, ridge=ridge) @ rhs)


def weighted_sum(first: Release, second: Release, weight: float) -> Release:
    """Return the release ``first + weight * second`` of two independent releases."""
    stddev = float(np.hypot(first.noise_stddev, weight * second.noise_stddev))
    value = first.value + weight * second.value
    symmetric = first.symmetric and second.symmetric
    return Release(f"{first.name}+{second.name}", value, stddev, symmetric)
