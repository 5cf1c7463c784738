"""TAN: the total amount of noise of DP-SGD, and what epsilon should follow from it.

Notation of [1]_: ``q = B / N`` is our ``sampling_prob``, ``sigma`` our
``noise_multiplier`` and ``S`` our ``n_iter``. The closed form is an **estimate** for
choosing settings; what a training costs is `TAN.epsilon`.

References
----------
.. [1] Sander, Stock & Sablayrolles. TAN Without a Burn: Scaling Laws of DP-SGD.
   ICML 2023.
"""

import math
from dataclasses import dataclass, replace

from privfeat._checks import check_choice, check_int, check_positive, check_real
from privfeat.core.accounting.conversions import check_delta
from privfeat.core.accounting.plan import PlannedRelease, Query
from privfeat.core.accounting.pld import pld_epsilon, rdp_epsilon

WALL = 2.0
SWEET_SPOT = (2.0, 4.0)
ACCOUNTANTS = ("pld", "rdp")


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
        """Return ``eta**2 + 2 eta sqrt(ln(1/delta))``, Equation 4: not a guarantee.

        An estimate that holds where the noise multiplier is at least 2.
        """
        return closed_form_epsilon(self.eta, delta)

    def epsilon(self, delta: float, *, accountant: str = "pld") -> float:
        """Return the epsilon that an accountant proves, for add/remove.

        Parameters
        ----------
        delta : float
            In [1e-100, 1).
        accountant : {"pld", "rdp"}
            dp-accounting's loss distributions, or its Rényi bounds, which the paper
            uses: about 7 % larger and always fast. Of whole orders, so behind the
            privacy wall, above an epsilon of about 30, far too large.
        """
        check_choice("accountant", accountant, ACCOUNTANTS)
        query = Query(
            "gradient",
            1.0,
            count=self.n_iter,
            sampling_prob=float(self.sampling_prob),
        )
        event = PlannedRelease(query, float(self.noise_multiplier)).event()
        if accountant == "pld":
            return pld_epsilon(event, delta)
        return rdp_epsilon(event, delta)

    def overcharge(self, delta: float) -> float:
        """Return the Rényi epsilon over the closed form: far above 1 behind the wall.

        Both have the same source, so that their ratio shows the wall alone.
        """
        proved = self.epsilon(delta, accountant="rdp")
        return proved / self.closed_form_epsilon(delta)

    def warnings(self) -> tuple[str, ...]:
        """Return what speaks against the settings, in plain words; often nothing."""
        found = []
        if self.noise_multiplier < WALL:
            found.append(
                f"noise_multiplier should be >= {WALL:g}, got "
                f"{self.noise_multiplier:g}: epsilon is overcharged (the privacy "
                "wall). Double it together with the batch size: same noise in a step, "
                "smaller epsilon, twice the compute."
            )
        if self.noise_multiplier > SWEET_SPOT[1]:
            found.append(
                f"noise_multiplier should be <= {SWEET_SPOT[1]:g}, got "
                f"{self.noise_multiplier:g}: halve it together with the batch size for "
                "half the compute at nearly the same epsilon."
            )
        return tuple(found)

    def with_more_data(self, factor: float) -> "TAN":
        """Return the settings with ``factor`` times the records, same batches.

        The sampling probability, and so eta, is divided by ``factor``. Divide delta as
        well, if it is one over the number of records.
        """
        return replace(
            self, sampling_prob=self.sampling_prob / check_positive("factor", factor)
        )


@dataclass(frozen=True)
class Simulation:
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
    sampling_prob, noise_multiplier, n_iter
        The reference, see `TAN`.
    factor : float
        Batch size and noise multiplier are divided by it; >= 1.

    Notes
    -----
    Section 3.4 of [1]_. For **public** data, or data whose cost is accounted for: the
    simulation itself has an epsilon far above that of the reference.

    References
    ----------
    .. [1] Sander et al. TAN Without a Burn. ICML 2023.

    Examples
    --------
    >>> run = simulate(0.0128, 2.5, 72_000, factor=128)
    >>> print(run.settings.noise_multiplier, f"{run.compute_saved:.3f}")
    0.01953125 0.992
    """
    factor = check_real("factor", factor, low=1.0, include_high=False)
    reference = TAN(sampling_prob, noise_multiplier, n_iter)
    small = TAN(
        reference.sampling_prob / factor, reference.noise_multiplier / factor, n_iter
    )
    return Simulation(small, 1.0 - 1.0 / factor)


def closed_form_epsilon(eta: float, delta: float) -> float:
    """Return ``eta**2 + 2 eta sqrt(ln(1/delta))``, Equation 4 of Sander et al. 2023."""
    eta = check_positive("eta", eta)
    return eta * eta + 2.0 * eta * math.sqrt(-math.log(check_delta(delta)))


def eta_for(epsilon: float, delta: float) -> float:
    """Return the eta whose `closed_form_epsilon` is ``epsilon``.

    Examples
    --------
    >>> print(f"{eta_for(1.0, 1e-6):.2f} {eta_for(8.0, 1e-6):.2f}")
    0.13 0.95
    """
    epsilon = check_positive("epsilon", epsilon)
    log_term = -math.log(check_delta(delta))
    return epsilon / (math.sqrt(log_term + epsilon) + math.sqrt(log_term))
