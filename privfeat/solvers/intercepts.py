"""Intercepts that make the mean of predictions right, from noisy gradients."""

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray
from scipy.special import logit, softmax

from privfeat._types import Loss
from privfeat.core.noise.release import Release

# Probability of the commonest class at a gradient that counts records: they are what
# moves the sums from those at zero.
_COMMON = 0.9
# Steps from which one of them may count: a tenth of rho at most, as for the mean.
_LEAST_STEPS = 10


class InterceptSearch:
    """What the first gradient, at coefficients of zero, tells of the intercepts.

    Where the number of records is not known (``n_records`` is None) the softmax needs a
    second one. The first tells by how many records a class is short of its part. If
    that is more than noise, the next is taken at coefficients of zero again, with the
    probability of the commonest class moved to 0.9. Both together are linear in the
    class sums (`class_sums`), whose constants count the records of each class.

    It is not taken where gradients at zero are clipped, which ``largest`` says, of rows
    that are not ``alike`` in norm: longer ones lose more. Nor with a loss whose labels
    need not exclude each other, or in fewer than ten steps. With a number of records
    the first gradient is used as it is. ``n_records``, ``constant`` and ``largest`` as
    of `first_intercepts`.
    """

    def __init__(
        self,
        *,
        loss: Loss,
        n_records: float | None,
        n_iter: int,
        constant: float,
        largest: float,
        alike: bool,
    ) -> None:
        self.done, self._count, self._n_iter = False, n_records, n_iter
        self._loss, self._constant, self._largest = loss, constant, largest
        self._alike = alike
        self._first: Release | None = None
        self._probe: NDArray[np.float64] | None = None

    def at(self, coef: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return where the next gradient is to be taken, ``coef`` or beside it."""
        if self.done or self._probe is None:
            return coef
        probing = np.zeros_like(coef)
        probing[:, -1] = self._probe / self._constant
        return probing

    def take(
        self, gradient: Release
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """Return intercepts, and the gradient at them for the first step, once `done`.

        Or None: the step is as ever, or while not `done`, none.
        """
        if self._probe is not None and self._first is not None:
            self.done = True
            logits = [np.zeros_like(self._probe), self._probe]
            sums, noise = class_sums(
                [self._first, gradient], logits, largest=self._largest
            )
            total = sums.sum(axis=0)
            # one standard deviation more: intercepts are rather too equal
            count = float(total[-1] + noise) / self._constant
            first, slope = self._first, -sums
        elif self._count is not None:
            self.done, count, total = True, self._count, None
            first, slope = gradient, np.array(gradient.value)
        else:
            self.done = True
            if self._counts(len(gradient.value)):
                missing, _ = missing_records(
                    gradient,
                    loss=self._loss,
                    constant=self._constant,
                    largest=self._largest,
                )
                if np.any(missing):
                    self._first, self._probe = gradient, _probing(missing)
                    self.done = False
            return None
        found = first_intercepts(
            first,
            loss=self._loss,
            n_records=count,
            constant=self._constant,
            largest=self._largest,
        )
        if total is not None:
            slope += np.outer(softmax(found * self._constant), total)
        slope[:, -1] = 0.0  # the step is taken
        return found, slope

    def _counts(self, n_outputs: int) -> bool:
        return (
            self._loss == "softmax"
            and self._n_iter >= _LEAST_STEPS
            and (self._alike or self._largest >= _start("softmax", n_outputs)[0])
        )


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
    missing, noise = missing_records(
        noisy_gradient, loss=loss, constant=constant, largest=largest
    )
    share = _start(loss, len(missing))[1]
    n_records = max(n_records, 1.0)
    least = min(max(noise, 1.0) / n_records, share) if share else 0.0
    shares = np.clip(share - missing / n_records, least, 1.0 - least)
    if loss == "squared":
        found = shares
    else:
        found = logit(shares) if loss == "sigmoid" else np.log(shares / share)
    return np.asarray(found / constant)


def missing_records(
    noisy_gradient: Release, *, loss: Loss, constant: float, largest: float
) -> tuple[Float[np.ndarray, " m"], float]:
    """Return ``D`` of `first_intercepts`, shrunk, and the stddev of its noise."""
    n_outputs = len(noisy_gradient.value)
    length, _ = _start(loss, n_outputs)
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
    return missing, noise


def class_sums(
    gradients: Sequence[Release],
    logits: Sequence[NDArray[np.float64]],
    *,
    largest: float,
) -> tuple[NDArray[np.float64], float]:
    """Return sums of the rows of each class, (n_outputs, n_columns), of the softmax.

    And the stddev of the noise in a column of their total.

    ``gradients``, of this shape and with noise of one stddev, are at coefficients of
    zero beside these ``logits``: ``sum_j s_j (p - e_j) S_j^T`` for classes whose rows
    sum to ``S_j`` and whose residuals ``p - e_j`` are clipped to ``largest``, by
    factors ``s_j``. That is linear in ``S``, and one gradient alone leaves the total
    open: its rows add up to zero.
    """
    factors = []
    for each in logits:
        residuals = softmax(each)[:, None] - np.eye(len(each))
        norms = np.linalg.norm(residuals, axis=0)
        factors.append(residuals * np.minimum(1.0, largest / norms))
    inverse = np.linalg.pinv(np.concatenate(factors))
    sums = inverse @ np.concatenate([gradient.value for gradient in gradients])
    noise = gradients[0].noise_stddev * float(np.linalg.norm(inverse.sum(axis=0)))
    return sums, noise


def _probing(missing: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return logits at which the class that is missed least has most."""
    logits = np.zeros(len(missing))
    odds = (len(missing) - 1) * _COMMON / (1.0 - _COMMON)
    logits[np.argmin(missing)] = math.log(odds)
    return logits


def _start(loss: Loss, n_outputs: int) -> tuple[float, float]:
    """Return the norm of a residual, and the probability of a class, at zero."""
    return {
        "softmax": (math.sqrt(1.0 - 1.0 / n_outputs), 1.0 / n_outputs),
        "sigmoid": (math.sqrt(n_outputs) / 2.0, 0.5),
        "squared": (1.0, 0.0),
    }[loss]
