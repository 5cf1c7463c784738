"""The privacy wall: Figures 2 and 3 of Sander, Stock & Sablayrolles 2023.

``benchmarks/tan_figures.py`` prints and draws them.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

from privfeat.analysis.tan import TAN, closed_form_epsilon


def wall_curve(
    eta: float, n_iter: int, noise_multipliers: Sequence[float], delta: float
) -> NDArray[np.float64]:
    """Return the Rényi epsilon at each noise multiplier, eta held constant: Figure 2.

    The sampling probability follows, ``q = eta sqrt(2 / S) sigma``; NaN where it would
    exceed 1.
    """
    curve = []
    for noise in noise_multipliers:
        sampling_prob = eta * math.sqrt(2.0 / n_iter) * noise
        curve.append(
            TAN(sampling_prob, noise, n_iter).epsilon(delta, accountant="rdp")
            if sampling_prob <= 1.0
            else math.nan
        )
    return np.array(curve)


def rdp_ratio(settings: TAN, orders: Sequence[int]) -> NDArray[np.float64]:
    """Return the Rényi divergence of a step over ``order eta_step**2``: Figure 3.

    Parameters
    ----------
    settings : TAN
        ``n_iter`` is not used.
    orders : sequence of int
        Whole Rényi orders >= 2.

    Notes
    -----
    For whole orders, ``g = ln(sum_k C(order, k) (1-q)^(order-k) q^k
    exp((k^2 - k) / (2 sigma^2))) / (order - 1)``: Mironov, Talwar & Zhang 2019, Section
    3.3. Close to 1 in front of the privacy wall.
    """
    q, sigma = settings.sampling_prob, settings.noise_multiplier
    ratios = []
    for order in orders:
        k = np.arange(order + 1)
        log_terms = (
            gammaln(order + 1)
            - gammaln(k + 1)
            - gammaln(order - k + 1)
            + (k * k - k) / (2.0 * sigma**2)
            + k * math.log(q)
        )
        if q < 1.0:
            log_terms += (order - k) * math.log1p(-q)
            log_moment = logsumexp(log_terms)
        else:
            log_moment = log_terms[-1]
        divergence = log_moment / (order - 1)
        ratios.append(divergence / (order * settings.eta_step**2))
    return np.array(ratios)


def eta_for(epsilon: float, delta: float) -> float:
    """Return the eta whose `closed_form_epsilon` is ``epsilon``."""
    log_term = -math.log(delta)
    return epsilon / (math.sqrt(log_term + epsilon) + math.sqrt(log_term))


def draw_wall(
    eta: float, n_iters: Sequence[int], noises: Sequence[float], delta: float, ax: Any
) -> None:
    """Draw the Rényi epsilon at constant eta, a line for each number of steps."""
    for n_iter in n_iters:
        curve = wall_curve(eta, n_iter, noises, delta)
        ax.plot(noises, curve, label=f"{n_iter:,} steps")
    ax.axhline(closed_form_epsilon(eta, delta), color="0.4", linestyle=":")
    ax.axvline(2.0, color="0.7", linewidth=1)
    ax.set_xscale("log", base=2)
    ax.xaxis.set_major_formatter("{x:g}")
    ax.set_yscale("log")
    ax.set_xlabel("noise multiplier, eta constant")
    ax.set_ylabel("epsilon (dots: closed form)")
    ax.legend()


def draw_ratios(
    eta_step: float, noises: Sequence[float], orders: Sequence[int], ax: Any
) -> None:
    """Draw the ratio at constant eta of a step, a line for each noise."""
    for noise in noises:
        ratios = rdp_ratio(TAN(eta_step * math.sqrt(2.0) * noise, noise, 1), orders)
        ax.plot(orders, ratios, label=f"noise multiplier {noise:g}")
    ax.axhline(1.0, color="0.4", linestyle=":")
    ax.set_yscale("log")
    ax.set_xlabel("Rényi order")
    ax.set_ylabel("divergence / (order × eta_step²)")
    ax.legend()
