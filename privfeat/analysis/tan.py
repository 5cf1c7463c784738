"""TAN: the total amount of noise of DP-SGD, and what epsilon should follow from it.

Notation of [1]_: ``q = B / N`` is our ``sampling_prob``, ``sigma`` our
``noise_multiplier`` and ``S`` our ``n_iter``. The closed form is an **estimate** for
choosing settings; what a training costs is `TAN.epsilon`.

References
----------
.. [1] Sander, Stock & Sablayrolles. TAN Without a Burn: Scaling Laws of DP-SGD.
   ICML 2023.
.. [2] Mironov, Talwar & Zhang. Rényi Differential Privacy of the Sampled Gaussian
   Mechanism. 2019.
.. [3] Canonne, Kamath & Steinke. The Discrete Gaussian for Differential Privacy.
   NeurIPS 2020.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, xlog1py

from privfeat._checks import check_choice, check_int, check_positive, check_real
from privfeat.core.accounting.conversions import check_delta
from privfeat.core.accounting.plan import PlannedRelease, Query
from privfeat.core.accounting.pld import pld_epsilon

# Noise multipliers between which epsilon costs least compute.
SWEET_SPOT = (2.0, 4.0)
# Of the Rényi divergences; the formula is for whole ones.
_ROUNDED_UP = 1.0 + 2.0**-20
_ORDERS = np.array([*range(2, 33), 36, 40, 48, 64, 96, 128, 256, 512, 1024])


@dataclass(frozen=True)
class TAN:
    """The privacy settings of a training with Poisson batches, and what they imply.

    Parameters
    ----------
    sampling_prob : float
        Expected batch size over number of records, in [1e-9, 1].
    noise_multiplier : float
        Stddev of the noise over the clip norm, in the *sum* of a batch; > 0.
    n_iter : int
        Number of steps.

    Raises
    ------
    TypeError, ValueError
        If an argument is out of range.

    Examples
    --------
    >>> imagenet = TAN(16384 / 1_281_167, 2.5, 72_000)
    >>> print(f"{imagenet.eta:.3f} {imagenet.closed_form_epsilon(8e-7):.2f}")
    0.971 8.22
    >>> imagenet.warnings()
    ()
    """

    sampling_prob: float
    noise_multiplier: float
    n_iter: int

    def __post_init__(self) -> None:
        check_real("sampling_prob", self.sampling_prob, low=1e-9, high=1.0)
        check_positive("noise_multiplier", self.noise_multiplier)
        check_int("n_iter", self.n_iter, low=1)

    @property
    def eta_step(self) -> float:
        """Signal-to-noise ratio of one record in one step, ``q / (sqrt(2) sigma)``."""
        return self.sampling_prob / (math.sqrt(2.0) * self.noise_multiplier)

    @property
    def eta(self) -> float:
        """Signal-to-noise ratio of one record, ``sqrt(S) eta_step``: Definition 3.1."""
        return math.sqrt(self.n_iter) * self.eta_step

    @property
    def total_noise(self) -> float:
        """Total amount of noise, ``1 / eta``."""
        return 1.0 / self.eta

    def closed_form_epsilon(self, delta: float) -> float:
        """Return `closed_form_epsilon` of the settings.

        It is an estimate for noise multipliers from 2 on, and not a guarantee.
        """
        return closed_form_epsilon(self.eta, delta)

    def epsilon(self, delta: float, *, accountant: str = "pld") -> float:
        """Return the epsilon that an accountant proves, for add/remove.

        Parameters
        ----------
        delta : float
            In [1e-100, 1).
        accountant : {"pld", "rdp"}
            Loss distributions, or the Rényi bounds of the paper: about 7 % larger and
            always fast, but far too large above an epsilon of about 30.
        """
        check_choice("accountant", accountant, ("pld", "rdp"))
        prob, noise = float(self.sampling_prob), float(self.noise_multiplier)
        if accountant == "rdp":
            return _renyi_epsilon(prob, noise, self.n_iter, check_delta(delta))
        query = Query("gradient", 1.0, count=self.n_iter, sampling_prob=prob)
        return pld_epsilon(PlannedRelease(query, noise).event(), delta)

    def overcharge(self, delta: float) -> float:
        """Return the Rényi epsilon over the closed form: far above 1 behind the wall.

        Both have the same source, so that their ratio shows the wall alone.
        """
        proved = self.epsilon(delta, accountant="rdp")
        return proved / self.closed_form_epsilon(delta)

    def warnings(self) -> tuple[str, ...]:
        """Return sentences that speak against the settings; often none."""
        low, high = SWEET_SPOT
        if self.noise_multiplier < low:
            return (
                f"noise_multiplier should be >= {low:g}, got "
                f"{self.noise_multiplier:g}: epsilon is overcharged (the privacy "
                "wall). Double it together with the batch size: same noise in a step, "
                "smaller epsilon, twice the compute.",
            )
        if self.noise_multiplier > high:
            return (
                f"noise_multiplier should be <= {high:g}, got "
                f"{self.noise_multiplier:g}: halve it together with the batch size for "
                "half the compute at nearly the same epsilon.",
            )
        return ()

    def with_more_data(self, factor: float) -> "TAN":
        """Return the settings with ``factor`` times the records, same batches.

        Divide delta by ``factor`` as well, if it is one over the number of records.
        """
        return replace(
            self, sampling_prob=self.sampling_prob / check_positive("factor", factor)
        )


@cache
def _binomials() -> tuple[NDArray[Any], ...]:
    """Return, for the orders ``a`` one after the other, ``a``, ``j`` from 2 to ``a``.

    And the logarithms of their binomial coefficients, and where each order begins.
    """
    starts = np.cumsum(_ORDERS - 1) - (_ORDERS - 1)
    a = np.repeat(_ORDERS, _ORDERS - 1)
    j = np.arange(len(a)) - np.repeat(starts, _ORDERS - 1) + 2
    return a, j, gammaln(a + 1) - gammaln(j + 1) - gammaln(a - j + 1), starts


def _renyi_epsilon(
    sampling_prob: float, noise_multiplier: float, n_iter: int, delta: float
) -> float:
    """Return the Rényi epsilon at whole orders; it needs no dp-accounting.

    `core.accounting.rdp.rdp_epsilon` has fractional orders too, and is no larger.

    Of whole order ``a`` the divergence of a step is ``log(sum_j C(a, j) (1 - q)^(a - j)
    q^j exp(j (j - 1) / (2 sigma^2))) / (a - 1)``: [2]_ Section 3.3. The weights sum to
    1, so 1 plus the same with ``expm1`` has no terms 0 and 1, and nothing cancels.
    Conversion by [3]_ Proposition 12.
    """
    a, j, log_binomials, starts = _binomials()
    weights = log_binomials + xlog1py(a - j, -sampling_prob)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        exponents = j * (j - 1) / 2.0 / noise_multiplier / noise_multiplier
        terms = weights + j * math.log(sampling_prob) + exponents
        terms += np.log(-np.expm1(-exponents))
        total = np.logaddexp(0.0, np.logaddexp.reduceat(terms, starts))
        divergences = n_iter * total / (_ORDERS - 1)
        epsilons = divergences + np.log1p(-1.0 / _ORDERS)
        epsilons -= np.log(delta * _ORDERS) / (_ORDERS - 1)
    # NaN, or a divergence that was rounded away: fail closed
    proved = (divergences > 0.0) & ~np.isnan(epsilons)
    # rounding takes off less than a hundredth of what is added
    return float(np.maximum(epsilons[proved], 0.0).min(initial=math.inf)) * _ROUNDED_UP


class Simulation(NamedTuple):
    """Cheap settings that train as the reference does, and are **not** as private.

    Attributes
    ----------
    settings : TAN
        Smaller batches with proportionally less noise: the same ``eta_step``, the same
        number of steps.
    compute_saved : float
        Part of the examples processed that is saved, in [0, 1).
    """

    settings: TAN
    compute_saved: float


def simulate(
    sampling_prob: float, noise_multiplier: float, n_iter: int, factor: float
) -> Simulation:
    """Return settings that simulate a training at ``1 / factor`` of its compute.

    Parameters
    ----------
    sampling_prob, noise_multiplier : float
        With ``n_iter`` the reference, see `TAN`.
    n_iter : int
    factor : float
        Batch size and noise multiplier are divided by it; >= 1.

    Notes
    -----
    Section 3.4 of [1]_. For **public** data, or data whose cost is accounted for: the
    simulation itself has an epsilon far above that of the reference.

    Examples
    --------
    >>> run = simulate(0.0128, 2.5, 72_000, factor=128)
    >>> print(run.settings.noise_multiplier, f"{run.compute_saved:.3f}")
    0.01953125 0.992
    """
    factor = check_real("factor", factor, low=1.0, include_high=False)
    TAN(sampling_prob, noise_multiplier, n_iter)  # checks the reference
    small = TAN(sampling_prob / factor, noise_multiplier / factor, n_iter)
    return Simulation(small, 1.0 - 1.0 / factor)


class TrainingSettings(NamedTuple):
    """One candidate of `constant_tan_settings`."""

    batch_size: int
    n_iter: int
    learning_rate: float


def constant_tan_settings(
    batch_size: int,
    n_iter: int,
    learning_rate: float,
    *,
    step_factors: Sequence[float] = (0.125, 0.25, 1.0, 4.0),
) -> list[TrainingSettings]:
    """Return settings with the total amount of noise of a reference: [1]_ Table 3.

    Parameters
    ----------
    batch_size, n_iter, learning_rate
        The reference ``(B, S)`` and its rate. The noise multiplier is kept.
    step_factors : sequence of float
        Each gives ``(B / sqrt(f), f S)``, so that ``q^2 S`` and hence eta stay, with
        the rate divided by ``f``.

    Examples
    --------
    >>> for settings in constant_tan_settings(256, 72_000, 8.0):
    ...     print(*settings)
    724 9000 64.0
    512 18000 32.0
    256 72000 8.0
    128 288000 2.0
    """
    check_int("batch_size", batch_size, low=1)
    check_int("n_iter", n_iter, low=1)
    check_positive("learning_rate", learning_rate)
    return [
        TrainingSettings(
            max(1, round(batch_size / math.sqrt(factor))),
            max(1, round(factor * n_iter)),
            learning_rate / factor,
        )
        for factor in (check_positive("step_factors", f) for f in step_factors)
    ]


def closed_form_epsilon(eta: float, delta: float) -> float:
    """Return ``eta**2 + 2 eta sqrt(ln(1/delta))``, Equation 4 of Sander et al. 2023."""
    eta = check_positive("eta", eta)
    return eta * eta + 2.0 * eta * math.sqrt(-math.log(check_delta(delta)))
