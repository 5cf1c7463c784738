"""The weight of a public prior, found from releases alone: least squares."""

import math

import numpy as np
from jaxtyping import Float

from privfeat._types import Loss
from privfeat.core.noise.release import Release
from privfeat.solvers.spectrum import cleaned, regularized_inverse

Matrix = Float[np.ndarray, "m c"]
Vector = Float[np.ndarray, " q"]

# Qualities: parts of the score of the right class that scores of their spread can have.
# A prior is worthless as likely as not, else of any quality; what is learned is of any
# order of magnitude. Beyond 0.9 the model of independent errors says nothing.
_OF_PRIOR = np.linspace(0.0, 0.9, 181)
_CHANCES = np.append(0.5, np.full(180, 0.5 / 180))
LEAST, MOST = 1e-3, 0.9


class PriorWeight:
    """The weight ``a`` of a prior ``P``, beside coefficients ``D`` that are learned.

    Scores are ``x (a P + D)^T``. Of all releases together the projections on ``P`` and
    ``D`` are two numbers with noise of known variance. `least_squares` finds both from
    class sums; for gradients see `privfeat.solvers.prior_slope.SlopeWeight`.

    Parameters
    ----------
    prior : array of shape (n_outputs, n_columns)
        ``P``, for bounded rows. Public.
    loss : {"softmax", "sigmoid", "squared"}
    row_norm : float
        Of a bounded row.
    gram : Release, optional
        Of the rows. Without one its place is taken by rows of which half lie like
        those of the prior and half in all directions alike.
    n_records : float, optional
        Released: for a matrix that is missing or mostly noise. Without it what the
        sums show, or as many, on a logarithmic scale, as their noise may hide.

    Notes
    -----
    **Evidence.** All that releases know of labels is ``B = sum (y - mean y) x^T``.
    ``<B, P> / (n u)``, for ``n`` records and scores of spread ``u``, is the mean score
    of the right class in units of the spread: 0 for a prior that knows nothing, and at
    most about ``sqrt(2 log m)``, the largest of ``m`` scores. Its part of that is the
    quality ``q``. That of ``D`` is found likewise, less what its own noise adds.

    **Belief.** A prior is worthless with probability one half, else ``q`` is uniform;
    that of ``D`` is uniform on a logarithmic scale, and less than sums of this noise
    can teach: those of ``n`` unit rows in ``m`` classes have norm ``n / sqrt(m)``. The
    means after the releases are seen are used. Where noise is large they keep the
    prior, since what is learned is then worth less; where it is small, they follow the
    evidence, and a worthless prior has next to none.

    **Weight.** Of two scores with qualities ``p``, ``q`` and correlation ``r`` the best
    linear combination has weights ``p - r q`` and ``q - r p`` over their spreads
    (Fisher's discriminant). If their errors are independent, ``r = p q``; where the
    Gram matrix tells of more, that counts.

    **Privacy.** All of it is post-processing of releases and public facts.
    """

    def __init__(
        self,
        prior: Matrix,
        *,
        loss: Loss,
        row_norm: float,
        gram: Release | None = None,
        n_records: float | None = None,
    ) -> None:
        m, size = prior.shape
        self.prior, self._gram = prior, gram
        self._energy = float(np.sum(prior**2))
        self._scale = {"softmax": 1.0 / m, "sigmoid": 0.25, "squared": 1.0}[loss]
        # two classes with one score: half of it for each
        self._best = math.sqrt(2.0 * math.log(m)) if m > 1 else 0.5
        self._norm = row_norm
        self._overlap = float(np.sum((prior @ prior.T) ** 2))
        self._trace: float = (
            0.0 if n_records is None else max(n_records, 1.0) * row_norm**2
        )
        self._matrix: Matrix | None = None  # in units of its trace
        self._found, self._error = 0.0, math.inf
        if gram is not None:
            trace = float(np.trace(gram.value))
            noise = gram.noise_stddev * math.sqrt(size)
            if trace > 3.0 * noise:
                self._trace = trace
                matrix = cleaned(gram) if gram.symmetric else gram.value
                self._matrix = matrix / max(float(np.trace(matrix)), 1e-300)
            else:  # next to nothing but noise
                self._trace = (
                    self._trace or hidden_count(noise / row_norm**2) * row_norm**2
                )
                self._matrix = np.eye(size) / size
            self._found = float(np.sum((prior @ gram.value) * prior))
            self._error = gram.noise_stddev * float(np.linalg.norm(prior @ prior.T))

    def least_squares(self, sums: Release, *, ridge: float) -> Matrix:
        """Return coefficients from noisy sums ``B`` of the rows times their targets.

        Notes
        -----
        ``D = (B - b P G) (G + ridge I)^-1`` is what ``b P`` leaves to learn, for the
        weight ``b`` of the prior alone. From ``<D, B>`` the mean of what noise
        contributes, ``s**2 tr (G + ridge I)^-1`` for each output, is taken off.
        """
        if (gram := self._gram) is None:
            raise TypeError("gram must be a release for least squares, got None.")
        stddev, prior = sums.noise_stddev, self.prior
        total = sums.value - sums.value.mean(axis=0)
        inverse = regularized_inverse(gram, ridge=ridge)
        on_prior = float(np.sum(prior * total))
        unit = self._records * self._unit
        quality = self._quality(on_prior / unit, stddev * self._energy**0.5 / unit)
        alone = quality * self._best * unit / self._own
        learned = (total - alone * (prior @ gram.value)) @ inverse.T
        noise = stddev**2 * (len(prior) - 1) * float(np.trace(inverse))
        on_learned = float(np.sum(learned * total)) - noise
        spread = self._spread(learned) or math.inf
        error = stddev * math.sqrt(2.0 * float(np.sum(learned**2))) / spread
        found = on_learned / spread, error
        weight, part = self._weight(on_prior, found, learned, stddev)
        common = (sums.value - total) @ inverse.T
        return np.asarray(min(part, 1.0) * (weight * prior + learned) + common)

    def _weight(
        self,
        on_prior: float,
        on_learned: tuple[float, float],
        learned: Matrix,
        stddev: float,
    ) -> tuple[float, float]:
        """Return the weight beside ``D``, and of both together for the squared loss."""
        n, unit, m = self._records, self._unit, len(self.prior)
        spread = self._spread(learned)
        p = self._quality(
            on_prior / (n * unit), stddev * math.sqrt(self._energy) / (n * unit)
        )
        if not spread > 0.0:  # nothing is learned
            return p * self._best * n * unit / (self._scale * self._own), 1.0
        q = self._quality_learned(on_learned[0] / n, on_learned[1] / n, stddev)
        r = self._product(self.prior, learned) / (m * n * unit * spread)
        r = min(max(r, p * q), MOST)
        rest = max(q - r * p, 0.01 * q)
        part = rest / (1.0 - r**2) * self._best / (m * spread)
        return max(p - r * q, 0.0) / rest * spread / unit, part

    def _quality_learned(self, value: float, error: float, stddev: float) -> float:
        """Return that of ``D``, for sums with this noise in every entry."""
        most = self._records * self._norm
        most /= max(len(self.prior) * stddev * self._best, 1e-300)
        grid = np.geomspace(LEAST, min(max(most, 2.0 * LEAST), MOST), 200)
        return _mean(grid, grid**0.0, value, error, self._best)

    def _quality(self, value: float, error: float) -> float:
        return _mean(_OF_PRIOR, _CHANCES, value, error, self._best)

    def _spread(self, coef: Matrix) -> float:
        """Return that of scores, at least as if rows pointed everywhere alike."""
        least = self._trace * float(np.sum(coef**2)) / coef.shape[1]
        own = max(self._product(coef, coef), least)
        return math.sqrt(own / (len(coef) * self._records))

    @property
    def _records(self) -> float:
        return float(self._trace / self._norm**2)

    @property
    def _unit(self) -> float:
        """Return the spread of the scores of the prior, over records and outputs."""
        return math.sqrt(self._own / (len(self.prior) * self._records))

    @property
    def _own(self) -> float:
        """Return what is believed of ``<P G, P>``.

        Before the release is seen, with its standard error, the logarithm is equally
        likely to be anywhere between that of rows that point everywhere alike and that
        of rows of which half lie like those of the prior.
        """
        least = self._trace * self._energy / self.prior.shape[1]
        likely = 0.5 * self._trace * self._overlap
        most = max(0.5 * least + likely / self._energy, self._found, 1.01 * least)
        grid = np.geomspace(least, most, 200)
        error = max(self._error, 0.02 * least)
        misfit = ((grid - self._found) / error) ** 2 + self._misfit(grid)
        chances = np.exp(-0.5 * np.minimum(misfit - misfit.min(), 1500.0))
        return math.exp(float(chances @ np.log(grid) / np.sum(chances)))

    def _misfit(self, own: Vector) -> Vector:
        """Return squared standard errors of what else was seen of ``<P G, P>``."""
        return np.zeros_like(own)

    def _product(self, left: Matrix, right: Matrix) -> float:
        """Return ``<left G, right>``."""
        if self._matrix is not None:
            return self._trace * float(np.sum((left @ self._matrix) * right))
        alike = float(np.sum(left * right)) / left.shape[1]
        near = (left @ self.prior.T) * (right @ self.prior.T)
        return float(0.5 * self._trace * (np.sum(near) / self._energy + alike))


def hidden_count(most: float) -> float:
    """Return the mean of a number, of any order of magnitude, from 1 to ``most``."""
    return most / math.log(most) if most > math.e else 1.0


def _mean(
    grid: Vector, chances: Vector, value: float, error: float, scale: float | Vector
) -> float:
    """Return the mean of what is on a grid, after ``value`` is seen.

    ``value`` is normal with mean ``scale * grid``, or ``scale`` where that is an array.
    """
    means = scale if isinstance(scale, np.ndarray) else scale * grid
    near = means[np.argmin(np.abs(means - value))]
    with np.errstate(over="ignore"):
        far = (means - near) * (means + near - 2.0 * value) / max(error, 1e-150) ** 2
    chances = chances * np.exp(-0.5 * np.minimum(far, 1500.0))
    return float(chances @ grid / np.sum(chances))
