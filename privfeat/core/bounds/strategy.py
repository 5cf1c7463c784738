"""Noise that later releases take back in part: banded matrix factorization.

Release ``t`` of a query is ``y_t = x_t + w_t``, of an exact sum ``x_t``, where noise
``w`` solves ``w_t = (z_t - c_1 w_(t-1) - ... - c_(b-1) w_(t-b+1)) / c_0`` for
independent ``z_t`` of the planned stddev: ``w = C^-1 z`` for the banded Toeplitz matrix
``C`` of the coefficients ``c``, the *strategy*. Sums of releases then have less noise
than with ``w = z`` ([1]_). Each record is in one of ``b`` groups at random, and can be
in the releases of its turn alone: release ``t`` samples group ``t mod b``.

A fit may begin anew at a release whose number is a multiple of ``b``: with new groups,
and without earlier noise. Releases between two such points are a *stretch*. (Each may
even be of another data set: neighbours then differ in one record in all of these.) That
a record is in the releases of its turn alone is up to callers: they sample it by
`GaussianMechanism.sampler`.

**Theorem** ([1]_, Theorem 4, which supposes one stretch and fixed groups). ``count``
releases cost no more than ``ceil(count / b)`` releases with independent noise of that
stddev, each of which sees every record with the probability that a record has in its
turn.

*Proof.* Let neighbours differ in the record ``r``. Groups are drawn for each record by
itself, so those of others have one law with and without ``r``, as have their coins. We
fix all of them, and the groups of ``r``: what holds for each choice holds on average.
In each stretch ``u = C y = C x + z`` tells as much as ``y``, since ``C`` is triangular
with ``c_0 > 0``: ``u_t = c_0 x_t + ... + c_(b-1) x_(t-b+1) + z_t``, without terms from
before the stretch. Two turns of ``r`` in a stretch are ``b`` steps or more apart, so at
most one of these terms holds something of ``r``. Take a turn ``s``, and the block of
``u_s, ..., u_(s+b-1)``, as far as the stretch goes. All that other records add to it is
a function of earlier releases, and the same for both neighbours. To it ``r`` adds
``(c_0 g, ..., c_(b-1) g)`` if the coin of the turn says so, and zeros otherwise, where
``g``, of at most the declared sensitivity, depends on releases before ``s``. As
``c_0^2 + ... + c_(b-1)^2 <= 1``, which `Banded` checks without rounding, this is no
longer than ``g``. So the block is one sampled Gaussian release of the declared
sensitivity, given what came before it, as subtracting what is known shows. Blocks do
not overlap, and outside of them nothing depends on ``r``: the fit is an adaptive
composition of as many such releases as ``r`` has turns. It has one in each of the
``ceil(count / b)`` cycles that begin at a multiple of ``b``, and stretches are made of
whole cycles, but for the last. Under replace-one the same holds for two records that
take one place, without sampling: what they add differs by ``c_i (g - g')``.

Rounding: ``w`` is computed in float64 from ``z`` alone, so that it is some noise that
is the same function of ``z`` for all data. It differs from ``C^-1 z`` by parts of
``2**-52`` in each release, which add up and do not grow: those of ``c_0 C^-1`` are in
[-1, 1]. For coefficients fall, so ``(1 - x) c(x) / c_0`` is 1 less a polynomial whose
coefficients, none of them negative, sum to 1. One over it is a series of numbers in
[0, 1], as of a renewal process, and ``c_0 / c(x)`` one of their differences.

References
----------
.. [1] Choquette-Choo et al. (Amplified) Banded Matrix Factorization: A unified approach
   to private training. NeurIPS 2023 (arXiv:2306.08153).
"""

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from privfeat._checks import check_real

MOST_BANDS = 256


@dataclass(frozen=True)
class Banded:
    """The coefficients of a banded strategy, the first of them that of a new ``x``.

    Attributes
    ----------
    coefficients : tuple of float
        From 2 to 256 of them, > 0, falling, with squares that sum to at most 1. One
        coefficient would be independent noise.

    Raises
    ------
    TypeError, ValueError
        If they are something else.

    Examples
    --------
    >>> Banded((0.75, 0.5)).participations(5)
    3
    """

    coefficients: tuple[float, ...]

    def __post_init__(self) -> None:
        # JSON has lists
        numbers = tuple(
            check_real("a coefficient", number, low=1e-6, high=1.0)
            for number in self.coefficients
        )
        if not 2 <= len(numbers) <= MOST_BANDS:
            raise ValueError(
                f"coefficients must be 2 to {MOST_BANDS}, got {len(numbers)}."
            )
        falling = all(second < first for first, second in pairwise(numbers))
        if not falling or sum(Fraction(number) ** 2 for number in numbers) > 1:
            raise ValueError(
                "coefficients must fall, with squares that sum to at most 1, got "
                f"{numbers}."
            )
        object.__setattr__(self, "coefficients", numbers)

    @property
    def bands(self) -> int:
        """The number of coefficients: a record has a turn in so many releases."""
        return len(self.coefficients)

    def participations(self, count: int) -> int:
        """Return in how many of ``count`` releases a record has its turn, at most."""
        return -(-count // self.bands)
