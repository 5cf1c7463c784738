"""How good the scores of a public prior are, beside those of what is learned."""

import math

import numpy as np
from jaxtyping import Float

from privfeat._types import Loss
from privfeat.core.noise.release import Release
from privfeat.solvers.beliefs import belief, hidden
from privfeat.solvers.spectrum import cleaned

Matrix = Float[np.ndarray, "m c"]

# Qualities: parts of the score of the right class that scores of their spread can have.
# A prior is worthless as likely as not, else of any quality; what is learned is of any
# order of magnitude. Beyond 0.9 the model of independent errors says nothing.
_OF_PRIOR = np.linspace(0.0, 0.9, 181)
_CHANCES = np.append(0.5, np.full(180, 0.5 / 180))
_LEAST, _MOST = 1e-3, 0.9
# Part of the squared norm of a centred row that the mean of its class has. It is 0.06
# to 0.47 on four sets of features (digits, CIFAR-10, Banking77, scattering).
_OF_CLASSES = 0.25


class PriorScores:
    """What is believed of a prior ``P`` and of learned coefficients ``D``.

    Scores are ``x (a P + D)^T``. All releases on ``P`` and ``D`` are two noisy numbers:
    how they are found, the solvers say (`privfeat.solvers.prior`, by gradients;
    `privfeat.solvers.prior_least_squares`).

    Parameters
    ----------
    prior : array of shape (n_outputs, n_columns)
        ``P``, for bounded rows. Public.
    loss : {"softmax", "sigmoid", "squared"}
    row_norm : float
        Of a bounded row.
    gram : Release, optional
        Of the rows. Without one its place is taken by rows of which some lie like
        those of the prior, as many as its scores tell, others in all directions alike.
    varied : float, default=1
        The least part of a row's squared norm that is not common to all rows, in (0,
        1]. What is common tells no class from another: scores have less spread.
    n_records : float, optional
        Released: for a matrix that is missing or mostly noise. Without it what the
        sums show, or as many, on a logarithmic scale, as their noise may hide.

    Notes
    -----
    **Quality.** All that releases know of labels is ``B = sum (y - mean y) x^T``.
    ``<B, P> / (n u)``, for ``n`` records and scores of spread ``u``, is the mean score
    of the right class in units of the spread: 0 for a prior that knows nothing, at most
    about ``sqrt(2 log m)``, the largest of ``m`` scores. Its part of that is the
    quality ``q``. That of ``D`` is found likewise.

    **Belief.** A prior is worthless with probability one half, else ``q`` is uniform;
    that of ``D`` is uniform on a logarithmic scale, and less than sums of this noise
    can teach: those of ``n`` unit rows in ``m`` classes have norm ``n / sqrt(m)``, of
    which a quarter tells classes apart. The means after the releases are seen are used.
    Where noise is large they keep the prior, since what is learned is then worth less;
    where it is small, they follow the evidence, and a worthless prior has next to none.

    **Weight.** Of two scores with qualities ``p``, ``q`` and correlation ``r`` the best
    linear combination has weights ``p - r q`` and ``q - r p`` over their spreads
    (Fisher's discriminant). If their errors are independent, ``r = p q``; where the
    Gram matrix shows a larger one, that counts. All is post-processing of releases.
    """

    def __init__(
        self,
        prior: Matrix,
        *,
        loss: Loss,
        row_norm: float,
        gram: Release | None = None,
        varied: float = 1.0,
        n_records: float | None = None,
    ) -> None:
        m, size = prior.shape
        self._varied = varied
        self.prior, self.gram = prior, gram
        self.energy = float(np.sum(prior**2))
        self._scale = {"softmax": 1.0 / m, "sigmoid": 0.25, "squared": 1.0}[loss]
        # two classes with one score: half of it for each
        self.best = math.sqrt(2.0 * math.log(m)) if m > 1 else 0.5
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
                self._trace = self._trace or hidden(noise / row_norm**2) * row_norm**2
                self._matrix = np.eye(size) / size
            self._found = float(np.sum((prior @ gram.value) * prior))
            self._error = gram.noise_stddev * float(np.linalg.norm(prior @ prior.T))

    def combined(
        self,
        on_prior: float,
        on_learned: tuple[float, float],
        learned: Matrix,
        stddev: float,
        prior: Matrix,
        unit: float,
    ) -> tuple[float, float]:
        """Return the weight beside ``D``, and of both together for the squared loss."""
        n, m, spread = self.records, len(prior), self.spread(learned)
        most = max(n * unit, 1e-300)
        p = self.quality(on_prior / most, stddev * float(np.linalg.norm(prior)) / most)
        if not spread > 0.0:  # nothing is learned yet
            return p * self.best * n * unit / (self._scale * self.own), 1.0
        most = n * self._norm / max(m * stddev * self.best, 1e-300)
        most *= _OF_CLASSES * self._varied
        grid = np.geomspace(_LEAST, min(max(most, 2.0 * _LEAST), _MOST), 200)
        score, error = (x / n for x in on_learned)
        q = belief(grid, grid**0.0, score, error, self.best)
        r = self.product(prior, learned) / max(m * n * unit * spread, 1e-300)
        r = min(max(r, p * q), _MOST)
        rest = max(q - r * p, 0.01 * q)
        part = rest / (1.0 - r**2) * self.best / (m * spread)
        return max(p - r * q, 0.0) / rest * spread / max(unit, 1e-300), part

    def quality(self, value: float, error: float) -> float:
        """Return what is believed of the prior's, of which a noisy value is known."""
        return belief(_OF_PRIOR, _CHANCES, value, error, self.best)

    def spread(self, coef: Matrix) -> float:
        """Return that of scores, at least as if rows pointed everywhere alike."""
        least = self._trace * float(np.sum(coef**2)) / coef.shape[1]
        own = max(self.product(coef, coef), least)
        return math.sqrt(own / (len(coef) * self.records))

    @property
    def records(self) -> float:
        """Return how many records there are, by what was released."""
        return float(self._trace / self._norm**2)

    @property
    def unit(self) -> float:
        """Return the spread of the scores of the prior, over records and outputs."""
        return math.sqrt(self.own / (len(self.prior) * self.records))

    @property
    def own(self) -> float:
        """Return what is believed of ``<P G, P>``.

        Its logarithm is equally likely to be anywhere between that of rows that point
        everywhere alike, where they vary, and of rows half of which lie like the prior.
        """
        least = self._trace * self.energy / self.prior.shape[1]
        likely = 0.5 * self._trace * self._overlap
        most = max(0.5 * least + likely / self.energy, self._found, 1.01 * least)
        grid = np.geomspace(self._varied * least, most, 200)
        error = max(self._error, 0.02 * least)
        return math.exp(belief(np.log(grid), grid**0.0, self._found, error, grid))

    def product(self, left: Matrix, right: Matrix) -> float:
        """Return ``<left G, right>``."""
        if self._matrix is not None:
            return self._trace * float(np.sum((left @ self._matrix) * right))
        alike = float(np.sum(left * right)) / left.shape[1]
        near = np.sum((left @ self.prior.T) * (right @ self.prior.T)) / self.energy
        # as many lie like those of the prior as its own scores tell; half at most
        least, most = self.energy / left.shape[1], self._overlap / self.energy
        part = (self.own / self._trace - least) / max(most - least, 1e-300)
        part = min(max(part, 0.0), 0.5)
        return float(self._trace * (part * near + (1.0 - part) * alike))
