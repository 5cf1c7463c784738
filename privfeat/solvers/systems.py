"""One noisy positive definite system per class."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from privfeat.core.noise.release import Release
from privfeat.solvers.spectrum import regularized_inverse


def solve_regularized(
    noisy_matrix: Release, rhs: Float[np.ndarray, " d"], *, ridge: float
) -> Float[np.ndarray, " d"]:
    """Return ``(A + ridge I)^-1 rhs`` for a noisy Gram-like matrix ``A``.

    Parameters
    ----------
    noisy_matrix : Release
        Square ``A``, of shape (d, d).
    rhs : array of shape (d,)
        Computed from releases.
    ridge : float
        In units of the matrix; > 0.

    Notes
    -----
    By Cholesky. Where noise has made the matrix indefinite in spite of the ridge, by
    its projection to the positive semidefinite matrices (`regularized_inverse`); the
    choice depends on releases alone.

    Raises
    ------
    FloatingPointError
        If the matrix cannot be inverted.
    """
    if noisy_matrix.symmetric:
        shifted = np.array(noisy_matrix.value)
        shifted[np.diag_indices_from(shifted)] += ridge
        if not np.all(np.isfinite(shifted)) or not np.all(np.isfinite(rhs)):
            raise FloatingPointError(
                "the system must be finite, got overflow; the budget is spent. Pass a "
                "smaller learning_rate or a larger ridge."
            )
        try:
            factor = cho_factor(shifted, lower=True, overwrite_a=True)
        except LinAlgError:
            inverse = regularized_inverse(noisy_matrix, ridge=ridge)
            return np.asarray(inverse @ rhs)
        return np.asarray(cho_solve(factor, rhs))
    with jax.enable_x64(True):
        size = len(rhs)
        matrix = jnp.asarray(noisy_matrix.value) + ridge * jnp.eye(size)
        solution = np.asarray(jnp.linalg.solve(matrix, jnp.asarray(rhs)))
    if not np.all(np.isfinite(solution)):
        raise FloatingPointError(
            f"ridge must make the noisy matrix invertible, got {ridge!r}. "
            "Pass a larger one."
        )
    return solution


def weighted_sum(first: Release, second: Release, weight: float) -> Release:
    """Return the release ``first + weight * second`` of two independent releases."""
    stddev = float(np.hypot(first.noise_stddev, weight * second.noise_stddev))
    value = first.value + weight * second.value
    symmetric = first.symmetric and second.symmetric
    return Release(f"{first.name}+{second.name}", value, stddev, symmetric)
