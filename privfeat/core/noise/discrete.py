"""Draws whose distribution is exact, from random bits alone.

A draw is accepted if a uniform real number is below a real probability. Of the number
as many bits are drawn as the comparison needs. Float64 decides it if 64 bits differ
from the computed probability by more than any rounding error. If they do not, once in
``2**35`` comparisons, exact bounds on the probability and more bits decide.

References
----------
.. [1] Canonne, Kamath & Steinke. The Discrete Gaussian for Differential Privacy.
   NeurIPS 2020 (arXiv:2004.00010).
"""

import decimal
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from jaxtyping import Bool, Int64, UInt64

from privfeat._checks import check_int
from privfeat.core.noise.keys import KeyStream

# Stddevs beyond 2**58 would leave too few bits for the sum that the noise is added to.
MAX_VARIANCE = 2**116
_BATCH = 2**16
# Bound on the error of a probability in float64, in units of 2**-64 (see `_accepted`).
_MARGIN = 2.0**28
_WORD = 2**64


def discrete_gaussian(
    keys: KeyStream, shape: tuple[int, ...], variance: int
) -> Int64[np.ndarray, "..."]:
    """Return independent draws of ``P(x) ~ exp(-x^2 / (2 variance))``, x an integer.

    ``variance`` is the parameter ``s^2``, a whole number in [1, 2**116]; the variance
    of a draw is at most that ([1]_, Corollary 9). Draws, and sums of them, are modulo
    ``2**64``.

    Notes
    -----
    **Method.** Rejection, as in [1]_, Algorithm 3, from a proposal that takes fewer
    bits than its discrete Laplace. Let ``t`` be a power of two. Propose a sign, a block
    ``v >= 0`` with probability ``2**-(v + 1)`` (the trailing zeros of random bits) and
    an offset ``u``, uniform in ``[0, t)``: the magnitude ``x = v t + u``. Reject a
    negative zero; accept with probability ``A = 2**v exp(-x^2 / (2 s^2)) / D``.

    **Proof.** Each signed integer is proposed with probability ``2**-(v + 2) / t`` and
    zero once, so it is returned with a probability proportional to ``exp(-x^2 / (2
    s^2))``, provided that ``A <= 1``. For that, ``D`` must be at least ``2**v exp(-(v
    t)^2 / (2 s^2))`` for every ``v``. The logarithm of this is concave in ``v`` with
    its maximum at ``ln(2) (s / t)^2``, below 2.01 as ``s <= 1.7 t``; hence the maximum
    over whole ``v`` is at one of 0 to 3. About half of the proposals are accepted.

    Examples
    --------
    >>> discrete_gaussian(KeyStream(7), (5,), 100)
    array([ 17,  -3,  -1, -13,  17])
    """
    hat = _Hat.of(check_int("variance", variance, low=1, high=MAX_VARIANCE))
    draws = np.empty(math.prod(shape), np.int64)
    filled = 0
    while filled < draws.size:
        left = draws.size - filled
        accepted = _accepted(keys, hat, min(_BATCH, 2 * left + 64))[:left]
        draws[filled : filled + accepted.size] = accepted
        filled += accepted.size
    return draws.reshape(shape)


def bernoulli(
    keys: KeyStream, n_samples: int, probability: float | Fraction
) -> Bool[np.ndarray, " n"]:
    """Return independent draws, True with exactly the given probability in [0, 1).

    A float is the rational number that it holds.
    """
    whole, rest = divmod(Fraction(probability) * _WORD, 1)
    words = keys.draw_words(n_samples)
    mask = words < np.uint64(whole)
    ties = np.flatnonzero(words == np.uint64(whole))
    if rest and ties.size:
        mask[ties] = bernoulli(keys, ties.size, rest)
    return np.asarray(mask)


@dataclass(frozen=True)
class _Hat:
    """The proposal of `discrete_gaussian`: ``t = 2**shift`` and the bound ``D``."""

    variance: int
    shift: int
    bound: float

    @classmethod
    def of(cls, variance: int) -> "_Hat":
        stddev = math.sqrt(variance)
        shift = max(0, math.ceil(math.log2(stddev / 1.69)))
        ratio = math.ldexp(1.0, shift) / stddev
        bound = max(2.0**v * math.exp(-((v * ratio) ** 2) / 2.0) for v in range(4))
        return cls(variance, shift, 1.001 * bound)  # above the rounding errors

    def accepts(self, keys: KeyStream, leading: int, block: int, offset: int) -> bool:
        """Decide exactly whether a number with these leading bits is below ``A``."""
        x = (block << self.shift) + offset
        factor = Fraction(2**block) / Fraction(self.bound)
        return is_below(keys, leading, factor, Fraction(x * x, 2 * self.variance))


def _accepted(keys: KeyStream, hat: _Hat, n_proposals: int) -> Int64[np.ndarray, " a"]:
    """Return the accepted ones of so many proposals.

    **Error of float64.** With ``e = x^2 / (2 s^2)`` and ``v <= 63`` the exponent ``v
    ln(2) - e`` has an absolute error below ``(44 + e) 2**-49``, its exponential (NumPy
    states 4 units in the last place) and the other steps a relative one below
    ``2**-49``. Where ``e <= 500`` that is below ``2**-39`` of ``A <= 1``; where it is
    not, ``A`` and its computed value are below ``2**-600``. Rounding the 64 bits to
    float64 adds ``2**-53``: together less than ``2**-36``, the margin. A block of 63
    stands for all from 63 on, whose probabilities are below the margin as well.
    """
    first, second, uniform = keys.draw_words(3 * n_proposals).reshape(3, n_proposals)
    negative = first >> np.uint64(63) == 1
    block = _trailing_zeros(first | np.uint64(1 << 63))
    offset = second & np.uint64((1 << hat.shift) - 1)
    scaled = block + offset * 2.0**-hat.shift
    exponent = block * math.log(2.0) - scaled**2 * (4.0**hat.shift / hat.variance / 2.0)
    gap = np.exp(exponent) * (_WORD / hat.bound) - uniform.astype(np.float64)
    accepted = gap > 0.0
    for i in np.flatnonzero(np.abs(gap) <= _MARGIN):
        if block[i] == 63:
            block[i] += _more_zeros(keys)
        accepted[i] = hat.accepts(keys, *(int(a[i]) for a in (uniform, block, offset)))
    accepted &= ~(negative & (block == 0) & (offset == 0))
    magnitude = offset + (block << np.uint64(hat.shift))
    signed = np.where(negative, ~magnitude + np.uint64(1), magnitude)
    return np.asarray(signed[accepted].view(np.int64))


def is_below(
    keys: KeyStream, leading: int, factor: Fraction, exponent: Fraction
) -> bool:
    """Return whether a uniform number in [0, 1) is below ``factor exp(-exponent)``.

    ``leading`` are its first 64 bits; more are drawn, and the exponential is bounded
    more closely, until the comparison is decided.
    """
    n_bits, digits = 64, 50
    while True:
        low, high = exp_bounds(exponent, digits)
        if Fraction(leading + 1, 2**n_bits) <= factor * low:
            return True
        if Fraction(leading, 2**n_bits) >= factor * high:
            return False
        leading = leading << 64 | int(keys.draw_words(1)[0])
        n_bits, digits = n_bits + 64, digits + 20


def exp_bounds(exponent: Fraction, digits: int) -> tuple[Fraction, Fraction]:
    """Return a lower and an upper bound on ``exp(-exponent)``, for an exponent >= 0.

    Quotients are rounded down, and ``Decimal.exp`` is correctly rounded: the
    neighbours of what it returns are bounds.
    """
    context = decimal.Context(
        digits, decimal.ROUND_FLOOR, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX
    )
    with decimal.localcontext(context):
        below = decimal.Decimal(exponent.numerator) / exponent.denominator
        low = (-below.next_plus()).exp().next_minus()
        high = (-below).exp().next_plus()
    return Fraction(low), Fraction(high)


def _trailing_zeros(words: UInt64[np.ndarray, " n"]) -> UInt64[np.ndarray, " n"]:
    below = ~words & (words - np.uint64(1))
    return np.asarray(np.bitwise_count(below), np.uint64)


def _more_zeros(keys: KeyStream) -> int:
    """Return the trailing zeros of an endless random word."""
    count = 0
    while not (word := int(keys.draw_words(1)[0])):
        count += 64
    return count + (word & -word).bit_length() - 1
