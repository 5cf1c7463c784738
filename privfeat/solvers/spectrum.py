"""A noisy Gram matrix: what it costs, what noise hides of it, and its inverse."""

import math
import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.linalg import eigh
from scipy.linalg.lapack import dpotrf, dpotri

from privfeat._memory import memory_bytes
from privfeat._process import one_thread_a_product
from privfeat._warnings import warn
from privfeat.core.noise.release import Release

# Rows from which eigenvectors take long enough for float32 to be worth a check.
_LARGE = 512
# Rows up to which they are taken by one thread. Several wait for each other at every
# column: with one core of two to spare, they took ten times as long.
_HUGE = 4097
# Matrices of float64 that a fit holds at once, at least: the sum and its copies, the
# noise, eigenvectors and their workspace.
_N_MATRICES = 6
# Copies of a release that are made at once, at least: the sum, words of noise, noise,
# their total, and what a solver makes of it.
_N_COPIES = 8
# Fits of fewer columns take seconds, and are not worth a trial.
_MANY_COLUMNS = 4096
_LONG_SECONDS = 120.0
# Eigenvalues below this part of their mean are what rounding leaves of zero.
SINGULAR = 1e-12


def check_release_cost(name: str, n_entries: int, there: float | None = None) -> None:
    """Refuse a release of so many numbers, a public size, that has no room.

    ValueError if its copies need more than the memory of the machine, or what is
    ``there``.
    """
    there = memory_bytes() if there is None else there
    if 8.0 * _N_COPIES * n_entries > there:
        raise ValueError(
            f"what {name} releases, {n_entries:,} numbers a time, must fit into "
            "memory, and does not. Pass fewer columns, classes or levels."
        )


def check_gram_cost(
    name: str, n_columns: int, n_outputs: int, remedy: str, *, intercept: bool = True
) -> None:
    """Refuse a fit whose Gram matrix has no room, and warn of one that takes minutes.

    By public sizes alone: of the records nothing counts, not their number either.
    ValueError if the matrices of the fit need more than the memory of the machine, or
    ``n_outputs`` rows of so many columns do.
    """
    bytes_each, there = 8.0 * n_columns**2, memory_bytes()
    check_release_cost(name, n_outputs * n_columns, there)
    most = math.isqrt(int(min(there, 2.0**80) / (8 * _N_MATRICES)))
    got = f"{n_columns:,}" + (" (with that of an intercept)" if intercept else "")
    if n_columns > most:
        raise ValueError(
            f"X must have at most {most:,} columns for {name}, got {got}: its Gram "
            f"matrix and what is made of it take "
            f"{_gib(_N_MATRICES * bytes_each)}, and there are {_gib(there)}. {remedy}"
        )
    if n_columns <= _MANY_COLUMNS:
        return
    seconds = time_of_eigenvectors(n_columns)
    if seconds >= _LONG_SECONDS:
        warn(
            f"X should have fewer columns for {name}, got {got}: eigenvectors of its "
            f"Gram matrix take up to "
            f"{seconds / 60.0:.0f} minutes here, and the fit takes at least "
            f"{_gib(_N_MATRICES * bytes_each)}. {remedy}",
            UserWarning,
        )


def _gib(size: float) -> str:
    return f"{size / 2**30:.1f} GiB"


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


def shrunk_towards(
    total: Float[np.ndarray, " d"],
    noise_stddev: float,
    target: Float[np.ndarray, " d"] | None = None,
) -> Float[np.ndarray, " d"]:
    """Return a noisy vector, shrunk towards zero, or towards a part of ``target``.

    What is left of ``total`` beside ``t target`` is multiplied by ``max(0, 1 - d s**2 /
    norm**2)`` (James and Stein 1961), for noise of stddev ``s`` in each entry. The part
    ``t``, in [0, 1], is the projection of ``total``: one noisy number. A target that
    points elsewhere gets a part near 0, and the result is nearly that without it.
    """
    base = None
    if target is not None and (length := float(target @ target)) > 0.0:
        base = min(max(float(total @ target) / length, 0.0), 1.0) * target
    rest = total if base is None else total - base
    energy = float(rest @ rest)
    noise = len(total) * noise_stddev**2
    shrink = max(0.0, 1.0 - noise / energy) if energy > 0.0 else 0.0
    return rest * shrink if base is None else base + rest * shrink


def positive_part(noisy_gram: Release) -> Float[np.ndarray, "d d"]:
    """Return the nearest positive semidefinite matrix of a symmetric release.

    In Frobenius norm (Higham 1988): never further from the exact Gram matrix.
    """
    if _factor(noisy_gram.value, 0.0) is not None:
        return np.array(noisy_gram.value)
    return _with_eigenvalues(noisy_gram, lambda values: values)


def cleaned(noisy_gram: Release) -> Float[np.ndarray, "d d"]:
    """Return a symmetric release with eigenvalues from which noise is taken.

    With the same eigenvectors, the matrix nearest to the exact one that is to be
    expected: ``x_i - s**2 sum_j (x_i - x_j) / ((x_i - x_j)**2 + h**2)`` for noise of
    stddev ``s`` and a smoothing ``h = s``, not below zero, in the order of the ``x_i``
    (Bun, Allez, Bouchaud & Potters 2016, additive noise). Equal eigenvalues, which
    noise spreads over twice its edge, become equal again.
    """
    values, vectors = np.linalg.eigh(noisy_gram.value)
    if (stddev := noisy_gram.noise_stddev) > 0.0:
        apart = ((x - values) / stddev for x in values)
        spread = np.array([np.sum(a / (a**2 + 1.0)) for a in apart])
        values = np.maximum.accumulate(values - stddev * spread)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


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

    ``T`` steps of ``-eta g (G + ridge I)^-1``, with rate ``eta`` and noise of stddev
    ``s`` in an entry of each gradient, on rows of norm ``C``. Where ``G`` is far below
    the ridge, they move the coefficients by ``eta sqrt(T) s / ridge`` of noise in every
    coordinate, and so the score of a row by ``eta sqrt(T) s C / ridge``. The ridge sets
    that to ``score_noise``, a stddev in a softmax score, which has no unit. Scores with
    noise far above 1 saturate the softmax at random; far below 1, the steps end before
    the softmax leaves its linear range and weak directions are learned. Steps, rate and
    ``n_features`` cancel: at one ``score_noise``, accuracy hardly depends on them.
    ``noisy_gram`` sets the floor of `noise_ridge`.
    """
    moved = learning_rate * math.sqrt(n_steps) * step_noise_stddev * row_norm
    return moved / score_noise + noise_ridge(noisy_gram, scale=0.0)


def regularized_inverse(
    noisy_gram: Release, *, ridge: float
) -> Float[np.ndarray, "d d"]:
    """Return ``(P + ridge I)^-1``, ``P`` the nearest positive semidefinite matrix.

    A matrix that is not symmetric (the papers' full noise matrix) is used as it is.
    ``ridge`` is in units of the Gram matrix; >= 0. FloatingPointError if the matrix is
    not finite.

    Where noise has left nothing of an eigenvalue, and ``ridge`` is (nearly) zero, the
    inverse is zero in that direction: the charge is spent, so a solution is returned.

    By Cholesky where no eigenvalue is below ``-2**-20 ridge``, so that the cut changes
    nothing; else by eigenvectors, ten times the work. These are taken in float32 where
    its rounding is far below the noise and the ridge. The choice depends on the release
    alone.
    """
    least = SINGULAR * abs(float(np.trace(noisy_gram.value))) / len(noisy_gram.value)
    shift = 2.0**-20 * ridge if ridge > least else -least
    if not noisy_gram.symmetric:
        damped = noisy_gram.value + ridge * np.eye(len(noisy_gram.value))
        of = jnp.linalg.inv if ridge else partial(jnp.linalg.pinv, rtol=SINGULAR)
        with jax.enable_x64(True):
            inverse = np.asarray(of(jnp.asarray(damped)))
    elif _factor(noisy_gram.value, shift) is not None:
        lower = dpotri(_factor(noisy_gram.value, ridge), lower=1)[0]
        inverse = lower + np.tril(lower, -1).T  # it is zero above the diagonal
    else:
        inverted = partial(_inverted, ridge=ridge, least=least)
        inverse = _with_eigenvalues(noisy_gram, inverted, ridge)
    if not np.all(np.isfinite(inverse)):
        raise FloatingPointError(
            "the inverse of the noisy Gram matrix must be finite, got overflow; the "
            "budget is spent. Pass a larger ridge."
        )
    return inverse


def _inverted(
    values: Float[np.ndarray, " d"], ridge: float, least: float
) -> Float[np.ndarray, " d"]:
    """Return ``1 / (values + ridge)``, and 0 where that is at most ``least``."""
    kept = values + ridge > least
    return np.where(kept, 1.0 / np.where(kept, values + ridge, 1.0), 0.0)


def time_of_eigenvectors(size: int, trial_size: int = 1024) -> float:
    """Return the seconds that eigenvectors of ``size`` rows take on this machine.

    At most: by one thread, and the cube of the sizes, from the time of a trial.
    """
    matrix = np.eye(trial_size) + 1.0 / (1.0 + np.arange(trial_size))
    for _ in range(2):  # an accelerator compiles at first
        start = time.perf_counter()
        eigenvectors(matrix + matrix.T)
    return (time.perf_counter() - start) * (size / trial_size) ** 3


def _factor(
    matrix: Float[np.ndarray, "d d"], ridge: float
) -> Float[np.ndarray, "d d"] | None:
    """Return the lower Cholesky factor of ``matrix + ridge I``, or None without one."""
    if not np.all(np.isfinite(matrix)):
        return None
    shifted = np.array(matrix, order="F")
    shifted[np.diag_indices_from(shifted)] += ridge
    factor, failed = dpotrf(shifted, lower=1, overwrite_a=1)
    return None if failed else factor


def _with_eigenvalues(
    noisy_gram: Release,
    changed: Callable[[Float[np.ndarray, " d"]], Float[np.ndarray, " d"]],
    ridge: float = 0.0,
) -> Float[np.ndarray, "d d"]:
    """Return the matrix with changed eigenvalues; negative ones are noise, and cut.

    ``changed`` values are not negative, and follow the old ones smoothly on the scale
    of ``ridge``. Float32 rounds a matrix by some ``2**-24`` of its norm: it is used
    where that is far below noise and ridge, and changes the result by some ``1e-4``.
    """
    matrix = noisy_gram.value
    edge = noise_edge(noisy_gram.noise_stddev, len(matrix))
    if len(matrix) >= _LARGE and np.linalg.norm(matrix) <= 2.0**9 * min(edge, ridge):
        matrix = matrix.astype(np.float32)
    if not np.all(np.isfinite(matrix)):
        return np.full_like(noisy_gram.value, np.nan)
    values, vectors = eigenvectors(matrix)
    values = changed(np.maximum(values, 0.0).astype(np.float64))
    half = vectors * np.sqrt(values).astype(vectors.dtype)
    return np.asarray(half @ half.T, np.float64)  # half of the work of two factors


def eigenvectors(
    matrix: Float[np.ndarray, "d d"],
) -> tuple[Float[np.ndarray, " d"], Float[np.ndarray, "d d"]]:
    """Return eigenvalues, ascending, and eigenvectors, of a symmetric matrix."""
    if jax.default_backend() == "cpu":
        few = len(matrix) <= _HUGE
        with one_thread_a_product() if few else nullcontext():
            values, vectors = eigh(matrix, driver="evd", check_finite=False)
        return values, vectors
    with jax.enable_x64(True):
        values, vectors = map(np.asarray, jnp.linalg.eigh(jnp.asarray(matrix)))
    return values, vectors
