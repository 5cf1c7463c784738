"""A noisy Gram matrix and its regularized inverse."""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from privfeat.core.noise.release import Release


def noise_edge(noise_stddev: float, size: int) -> float:
    """Return the spectral norm to expect of a symmetric noise matrix of ``d`` rows.

    For a diagonal of stddev ``s``, and ``tau = s / sqrt(2)`` off it: ``s sqrt(2 d)``,
    the edge ``2 tau sqrt(d)`` of Wigner's semicircle. It varies by ``s d**(-1/6)``.
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
    return _with_eigenvalues(noisy_gram, lambda values: values)


def step_noise_ridge(
    noisy_gram: Release,
    *,
    step_noise_stddev: float,
    n_steps: int,
    learning_rate: float,
    row_norm: float,
    score_noise: float = 0.75,
) -> float:
    """Return the ridge at which the noise of all steps moves a score by little.

    Parameters
    ----------
    noisy_gram : Release
        Sets the floor of `noise_ridge`.
    step_noise_stddev : float
        ``s``, of the noise in an entry of each gradient, in gradient units.
    n_steps, learning_rate
        ``T`` steps of ``-eta g (G + ridge I)^-1``, with rate ``eta``.
    row_norm : float
        ``C``, of a row.
    score_noise : float
        Stddev to allow in a softmax score, which has no unit.

    Notes
    -----
    Where ``G`` is far below the ridge, ``T`` steps move the coefficients by ``eta
    sqrt(T) s / ridge`` of noise in every coordinate, and so the score of a row by
    ``eta sqrt(T) s C / ridge``. The ridge sets that to ``score_noise``. Scores with
    noise far above 1 saturate the softmax at random; far below 1, the steps end before
    the softmax leaves its linear range and weak directions are learned. Steps, rate and
    ``n_features`` cancel: at one ``score_noise``, accuracy hardly depends on them.
    """
    moved = learning_rate * math.sqrt(n_steps) * step_noise_stddev * row_norm
    return moved / score_noise + noise_ridge(noisy_gram, scale=0.0)


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
    """
    if noisy_gram.symmetric:
        inverse = _with_eigenvalues(noisy_gram, lambda values: 1.0 / (values + ridge))
    else:
        with jax.enable_x64(True):
            matrix = jnp.asarray(noisy_gram.value)
            inverse = np.asarray(jnp.linalg.inv(matrix + ridge * jnp.eye(len(matrix))))
    if not np.all(np.isfinite(inverse)):
        raise FloatingPointError(
            f"ridge must make the noisy Gram matrix invertible, got {ridge!r}. "
            "Pass a larger one."
        )
    return inverse


def _with_eigenvalues(
    noisy_gram: Release, changed: Callable[[Array], Array]
) -> Float[np.ndarray, "d d"]:
    """Return the matrix with changed eigenvalues; negative ones are noise, and cut."""
    with jax.enable_x64(True):
        values, vectors = jnp.linalg.eigh(jnp.asarray(noisy_gram.value))
        values = changed(jnp.maximum(values, 0.0))
        return np.asarray((vectors * values[None, :]) @ vectors.T)
