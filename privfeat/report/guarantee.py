"""What a privacy statement implies: curves and plain words. It decides nothing."""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from privfeat.core.accounting.calibration import MIN_DELTA, MIN_SAMPLED_DELTA
from privfeat.core.accounting.conversions import gaussian_delta, gaussian_epsilon
from privfeat.core.accounting.pld import pld_epsilons
from privfeat.core.statement.privacy_statement import PrivacyStatement
from privfeat.core.statement.rounding import rounded_up
from privfeat.report.words import WHOLE

# Where the curve of sampled records is computed.
_DELTAS = (
    *(MIN_SAMPLED_DELTA, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.06),
    *(0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
)
_WEAK = (
    "That is a weak guarantee: it does not rule out an attack that is right about most "
    "people."
)


def epsilon_delta_curve(
    statement: PrivacyStatement,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return epsilons and deltas whose pairs all hold at once.

    Gaussian fits have an exact curve, fits of sampled records the loss distribution at
    some deltas, a selection the stated pair alone. Empty without privacy.
    """
    if not math.isfinite(statement.epsilon):
        return np.empty(0), np.empty(0)
    if statement.mu is not None:
        highest = max(1.5 * statement.epsilon, 0.1)
        epsilons = np.linspace(0.0, highest, 40)
        deltas = np.array([gaussian_delta(statement.mu, e) for e in epsilons])
        shown = deltas >= MIN_DELTA
        return epsilons[shown], deltas[shown]
    if statement.selection is not None:
        return np.array([statement.epsilon]), np.array([statement.delta])
    epsilons = np.array(_sampled_epsilons(statement))
    # of several deltas at epsilon 0 the first says all
    proved = np.isfinite(epsilons) & (np.append(math.inf, epsilons[:-1]) > 0.0)
    return epsilons[proved], np.array(_DELTAS)[proved]


@lru_cache(maxsize=4)
def _sampled_epsilons(statement: PrivacyStatement) -> tuple[float, ...]:
    return tuple(pld_epsilons(statement.event(), _DELTAS))


def membership_tradeoff(
    statement: PrivacyStatement, false_positive_rate: ArrayLike
) -> NDArray[np.float64]:
    """Return the largest true-positive rate of any membership inference.

    At this rate, in [0, 1], the attack takes non-members for members. 1 everywhere for
    a fit without privacy, or with a seed.

    For ``mu``-GDP ``1 - Phi(Phi^-1(1 - a) - mu)``: Dong, Roth & Su 2022, Definition 3;
    else the two lines of (epsilon, delta)-DP, their Equation 4 (Wasserman & Zhou 2010),
    for all pairs of `epsilon_delta_curve`: each holds, so the least bound does.
    """
    rate = np.asarray(false_positive_rate, np.float64)
    if not statement.private:
        return np.ones_like(rate)
    if statement.mu is not None:
        return np.asarray(ndtr(statement.mu - ndtri(1.0 - rate)))
    curve = epsilon_delta_curve(statement)
    epsilons = np.append(curve[0], statement.epsilon)
    deltas = np.append(curve[1], statement.delta)
    # exp(epsilon) may overflow to inf, which is right: no bound
    with np.errstate(over="ignore", invalid="ignore"):
        steep = np.multiply.outer(rate, np.exp(epsilons)) + deltas
    flat = 1.0 - np.exp(-epsilons) * (1.0 - deltas - rate[..., None])
    least = np.fmin(steep, flat).min(axis=-1)
    return np.asarray(np.clip(least, 0.0, 1.0))


def in_words(statement: PrivacyStatement) -> list[str]:
    """Return what the statement promises, as sentences for people."""
    if not math.isfinite(statement.epsilon):
        return ["This model has no privacy guarantee: no noise was added."]
    if statement.seeded:
        return [
            "This model is not private against anyone who knows or guesses the seed of "
            "its noise. The numbers below hold only for those who cannot."
        ]
    # in tenths of a per cent, rounded up
    best = math.ceil(1000.0 * float(membership_tradeoff(statement, 0.01))) / 10.0
    change = "were left out" if statement.adjacency == "add_remove" else "were replaced"
    if statement.unit == "record":
        change = change.replace("were", "was")
    return [
        f"If {WHOLE[statement.unit]} {change}, nothing that anyone finds out or does "
        f"with the model would become more than {_times(statement.epsilon)} times as "
        "likely, or as unlikely, give or take a probability of "
        f"{rounded_up(statement.delta, 3)}.",
        f"An attacker who infers from the model whether a {statement.unit} took part, "
        "and is wrong about 1 in 100 of those who did not, recognizes at most "
        f"{best:.3g} in 100 of those who did. (By guessing, 1.)",
        "This holds for attackers who know all other records, and for anything made of "
        "the model, predictions included.",
        *([_WEAK] if best > 50.0 else []),
    ]


def several_records(statement: PrivacyStatement, n_records: int) -> tuple[float, float]:
    """Return epsilon and delta for ``n_records`` of what the statement protects.

    One person is behind so many records (or users), at least 1. Both are infinite or 1
    where nothing can be said.

    Group privacy: ``k`` changes of a ``mu``-GDP fit are ``k mu``-GDP (Dong, Roth & Su
    2022, Theorem 2.14), which gives epsilon at the same delta. Else, of (epsilon,
    delta)-DP, ``(k epsilon, delta (1 + e^epsilon + ... + e^((k-1) epsilon)))`` (Vadhan,
    The Complexity of Differential Privacy, 2017, Lemma 2.2).
    """
    epsilon, delta = statement.epsilon, statement.delta
    if not math.isfinite(epsilon) or n_records == 1:
        return epsilon, delta
    if statement.mu is not None:
        return gaussian_epsilon(n_records * statement.mu, delta), delta
    with np.errstate(over="ignore"):
        total = delta * float(np.exp(epsilon * np.arange(n_records)).sum())
    # one part in 1e12 pays for the rounding of the sum
    return n_records * epsilon, min(total * (1.0 + 1e-12), 1.0)


def _times(epsilon: float) -> str:
    """Return ``exp(epsilon)``, never rounded down."""
    if epsilon > 50.0:
        return f"exp({math.ceil(epsilon)})"
    factor = math.exp(epsilon)
    return f"{math.ceil(factor):,}" if factor > 100 else rounded_up(factor, 3)
