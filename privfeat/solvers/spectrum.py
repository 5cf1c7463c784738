"""A noisy Gram matrix and its regularized inverse."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from privfeat.core.release import Release


def noise_edge(noise_stddev: float, size: int) -> float:
    """Return the spectral norm to expect of a symmetric noise matrix.

    Parameters
    ----------
    noise_stddev : float
        Stddev ``s`` of the diagonal; off it ``s / sqrt(2)``.
    size : int
        Number of rows ``d``.

    Returns
    -------
    edge : float
        ``s sqrt(2 d)``: the edge ``2 tau sqrt(d)`` of Wigner's semicircle for entries
        of stddev ``tau = s / sqrt(2)``. Fluctuations are of order ``s d**(-1/6)``.
    """
    return noise_stddev * math.sqrt(2.0 * size)


def noise_ridge(noisy_matrix: Release, *, scale: float) -> float:
    """Return a ridge for a noisy matrix: ``scale`` times the edge of its noise.

    Below the edge, directions of the matrix cannot be told from noise. A floor of
    ``1e-9`` of the mean eigenvalue keeps a matrix without noise invertible.
    """
    size = len(noisy_matrix.value)
    floor = 1e-9 * abs(float(np.trace(noisy_matrix.value))) / size
    return scale * noise_edge(noisy_matrix.noise_stddev, size) + floor + 1e-300


def positive_part(noisy_gram: Release) -> Float[np.ndarray, "d d"]:
    """Return the nearest positive semidefinite matrix of a symmetric release.

    In Frobenius norm (Higham 1988): never further from the exact Gram matrix.
    """
    with jax.enable_x64(True):
        values, vectors = jnp.linalg.eigh(jnp.asarray(noisy_gram.value))
        return np.asarray((vectors * jnp.maximum(values, 0.0)[None, :]) @ vectors.T)


def regularized_inverse(
    noisy_gram: Release, *, ridge: float
) -> Float[np.ndarray, "d d"]:
    """Return ``(P + ridge I)^-1``, ``P`` the nearest positive semidefinite matrix.

    Parameters
    ----------
    noisy_gram : Release
        Square. If not symmetric (the papers' full noise matrix) it is used as it is.
    ridge : float
        Added to the diagonal, in units of the Gram matrix; > 0.

    Raises
    ------
    FloatingPointError
        If the matrix cannot be inverted.

    Notes
    -----
    ``P`` keeps the eigenvectors and replaces negative eigenvalues, which can only be
    noise, by zero: the projection in Frobenius norm (Higham 1988), which never moves
    the estimate away from the exact Gram matrix.
    """
    with jax.enable_x64(True):
        if noisy_gram.symmetric:
            values, vectors = jnp.linalg.eigh(jnp.asarray(noisy_gram.value))
            scaled = vectors / (jnp.maximum(values, 0.0) + ridge)[None, :]
            inverse = np.asarray(scaled @ vectors.T)
        else:
            matrix = jnp.asarray(noisy_gram.value)
            size = matrix.shape[0]
            inverse = np.asarray(jnp.linalg.inv(matrix + ridge * jnp.eye(size)))
    if not np.all(np.isfinite(inverse)):
        raise FloatingPointError(
            f"ridge must make the noisy Gram matrix invertible, got {ridge!r}. "
            "Pass a larger one."
        )
    return inverse
