"""Features in memory, and the exact sums that all trials share."""

from functools import cached_property, lru_cache

import numpy as np
import scipy.linalg

CHUNK_BYTES = 4 * 2**20
KEPT_GRAMS = 64  # of classes: of ten for each clip norm


class Problem:
    """Training and test rows of one data set, sorted by class, in float32.

    Parameters
    ----------
    X, y, X_test, y_test : arrays
        Rows as they are, and labels ``0, ..., n_classes - 1``.
    n_classes : int, optional
        By default one more than the largest label.
    """

    def __init__(self, X, y, X_test, y_test, n_classes=None):
        order = np.argsort(y, kind="stable")
        self.X = np.ascontiguousarray(np.asarray(X, np.float32)[order])
        self.y = np.asarray(y)[order].astype(np.int64)
        self.X_test = np.asarray(X_test, np.float32)
        self.y_test = np.asarray(y_test)
        self.n, self.d = self.X.shape
        self.m = int(n_classes or max(self.y.max(), self.y_test.max()) + 1)
        self.norms = np.maximum(np.linalg.norm(self.X, axis=1), 1e-12)
        self.radius = float(np.median(self.norms))
        self.gram = lru_cache(self._gram)
        self.class_gram = lru_cache(KEPT_GRAMS)(self._class_gram)
        self.class_sums = lru_cache(self._class_sums)

    @cached_property
    def with_constant(self):
        """The same rows with a last column of ones, whose coefficient is a bias."""
        ones = [np.ones((len(rows), 1), np.float32) for rows in (self.X, self.X_test)]
        rows = [
            np.hstack(pair) for pair in zip((self.X, self.X_test), ones, strict=True)
        ]
        return Problem(rows[0], self.y, rows[1], self.y_test, self.m)

    def clipped(self, clip_norm, rows=slice(None)):
        """Return rows of norm at most ``clip_norm``."""
        factor = np.minimum(1, clip_norm / self.norms[rows]).astype(np.float32)
        return self.X[rows] * factor[:, None]

    def class_rows(self, label):
        """Return where the rows of a class are."""
        return slice(*np.searchsorted(self.y, [label, label + 1]))

    def accuracy(self, coefs):
        """Return the test accuracy of each of the stacked coefficients (K, m, d)."""
        scores = [self.X_test @ coef.T for coef in np.nan_to_num(coefs)]
        return np.array([np.mean(s.argmax(axis=1) == self.y_test) for s in scores])

    @cached_property
    def _unit_gram(self):
        rows = self.clipped(1.0) / np.minimum(self.norms, 1)[:, None]
        return rows.T @ rows

    def _gram(self, clip_norm):
        if clip_norm <= self.norms.min():
            return np.float32(clip_norm) ** 2 * self._unit_gram
        rows = self.clipped(clip_norm)
        return rows.T @ rows

    def _class_gram(self, label, clip_norm):
        """Return ``A_j``, the sum of ``x x^T`` over a class."""
        rows = self.clipped(clip_norm, self.class_rows(label))
        return rows.T @ rows

    def _class_sums(self, clip_norm):
        rows = map(self.class_rows, range(self.m))
        return np.stack([self.clipped(clip_norm, part).sum(axis=0) for part in rows])


def clipped_gradients(problem, coefs, clip_norms, bias):
    """Return the sums of clipped gradients of the sigmoid loss for all trials.

    Parameters
    ----------
    problem : Problem
    coefs : float32 array of shape (K, m, d)
        One matrix of coefficients a trial.
    clip_norms : array of shape (K,)
        Bound on the norm of one record's gradient.
    bias : float
        Added to every logit and not trained, as in the authors' code.

    Returns
    -------
    sums : float32 array of shape (K, m, d)

    Notes
    -----
    A record's gradient is ``(p - y) x^T``, of norm ``norm(p - y) norm(x)``: clipping
    scales a row of residuals, and all trials share the two large matrix products.
    """
    n_trials, n_classes, width = coefs.shape
    stacked = coefs.reshape(-1, width)
    sums = np.zeros_like(stacked)
    size = max(256, CHUNK_BYTES // (4 * len(stacked)))
    for start in range(0, problem.n, size):
        rows = problem.X[start : start + size]
        residuals = sigmoid(rows @ stacked.T, bias).reshape(-1, n_trials, n_classes)
        residuals[np.arange(len(rows)), :, problem.y[start : start + size]] -= 1
        norms = np.sqrt(np.einsum("rkm,rkm->rk", residuals, residuals))
        norms *= problem.norms[start : start + size, None]
        scale = np.minimum(1, clip_norms / np.maximum(norms, 1e-30))
        residuals *= scale.astype(np.float32)[:, :, None]
        sums += residuals.reshape(len(rows), -1).T @ rows
    return sums.reshape(coefs.shape)


def start_of(problem, n_trials, bias, trained):
    """Return initial coefficients, and what is added to every logit.

    Parameters
    ----------
    trained : bool
        ``bias`` is where the last column's coefficients start (`with_constant`), as
        the paper prints it; otherwise it is fixed, as in the authors' code.
    """
    coefs = np.zeros((n_trials, problem.m, problem.d), np.float32)
    if trained:
        coefs[:, :, -1] = bias
    return coefs, 0.0 if trained else bias


def sigmoid(logits, bias=0.0):
    """Return ``1 / (1 + exp(-logits - bias))``, in place."""
    with np.errstate(over="ignore"):
        np.negative(logits, out=logits)
        logits -= np.float32(bias)
        np.exp(logits, out=logits)
        logits += 1
        return np.reciprocal(logits, out=logits)


def noisy_symmetric(exact, stddev, rng, *, project):
    """Return a matrix with independent noise in every entry.

    ``project`` makes it symmetric and positive semidefinite afterwards, as the
    authors' code does; otherwise it is left as the paper prints it.
    """
    noise = rng.standard_normal(exact.shape, dtype=np.float32)
    noisy = exact + np.float32(stddev) * noise
    if not project:
        return noisy
    values, vectors = spectrum(noisy)
    return (vectors * np.maximum(values, 0)) @ vectors.T


def spectrum(matrix):
    """Return eigenvalues and eigenvectors of the symmetric part of a matrix."""
    return scipy.linalg.eigh((matrix + matrix.T) / 2, driver="evd", check_finite=False)
