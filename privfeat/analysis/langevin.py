"""DP-SGD as a sampler of a posterior: the rate at which its noise is the right one.

References
----------
.. [1] Bu, Wang & Long. On the Convergence and Calibration of Deep Learning with
   Differential Privacy. TMLR 2023. Section 4.5.
.. [2] Chen, Fox & Guestrin. Stochastic Gradient Hamiltonian Monte Carlo. ICML 2014.
   Equation 15.
"""

from privfeat._checks import check_int, check_positive, check_real


def posterior_rate(
    n_samples: int,
    expected_batch_size: float,
    noise_multiplier: float,
    clip_norm: float,
    *,
    momentum: float = 0.0,
) -> float:
    """Return the rate at which DP-SGD is Langevin dynamics, if nothing is clipped.

    Parameters
    ----------
    n_samples : int
    expected_batch_size : float
        Above 0, at most ``n_samples``.
    noise_multiplier, clip_norm : float
        Above 0: the noise of a sum of gradients has their product as stddev.
    momentum : float, default=0.0
        In [0, 1). With it DP-SGD is stochastic gradient Hamiltonian Monte Carlo.

    Returns
    -------
    rate : float
        ``2 (1 - momentum) B^2 / (n sigma^2 R^2)``.

    Raises
    ------
    TypeError, ValueError
        If a parameter is out of range.

    Notes
    -----
    A step of DP-SGD is ``-r g`` and noise of stddev ``r sigma R / B``, for the mean
    gradient ``g``. One of Langevin dynamics that samples the posterior of ``n`` records
    is ``-r g`` and noise of variance ``2 r / n``. The two are one where
    ``r = 2 B^2 / (n sigma^2 R^2)``: with ``r = n eta / 2`` that is
    ``sigma R n / (2 B) = 1 / sqrt(eta)``, as [1]_ has it. With momentum ``m`` the noise
    of [2]_ has the variance ``2 (1 - m) r / n``, and that of DP-SGD stays.

    A smaller rate samples a posterior that is colder: sharper about its modes.

    Examples
    --------
    >>> posterior_rate(50_000, 1_000, noise_multiplier=1.0, clip_norm=1.0)
    40.0
    """
    n = check_int("n_samples", n_samples, low=1)
    batch = check_real(
        "expected_batch_size", expected_batch_size, low=0.0, high=n, include_low=False
    )
    noise = check_positive("noise_multiplier", noise_multiplier)
    bound = check_positive("clip_norm", clip_norm)
    kept = check_real("momentum", momentum, low=0.0, high=1.0, include_high=False)
    return 2.0 * (1.0 - kept) * (batch / (noise * bound)) ** 2 / n
