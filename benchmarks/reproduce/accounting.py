"""The noise multipliers that the paper uses at an (epsilon, delta)."""

import math

from scipy.optimize import brentq, minimize_scalar


def zcdp_rho(epsilon: float, delta: float) -> float:
    """Return rho with ``epsilon = rho + 2 sqrt(rho ln(1/delta))``; inf at infinity."""
    if math.isinf(epsilon):
        return math.inf
    log = math.log(1 / delta)
    return (math.sqrt(log + epsilon) - math.sqrt(log)) ** 2


def renyi_rho(epsilon: float, delta: float) -> float:
    """Return rho at which TensorFlow Privacy's Rényi accountant gives ``epsilon``.

    Appendix B.1 of the paper uses it for DP-Adam. ``T`` full-batch steps with noise
    multiplier ``s`` have Rényi divergence ``rho order``, ``rho = T / (2 s**2)``.
    """
    if math.isinf(epsilon):
        return math.inf

    def spent(rho: float) -> float:
        def at(log_excess: float) -> float:
            excess = math.exp(log_excess)
            order = 1 + excess
            tail = (math.log(1 / delta) - math.log(order)) / excess
            return rho * order + tail + math.log1p(-1 / order)

        best = minimize_scalar(at, bounds=(-6, 20), method="bounded")
        return max(float(best.fun), 0.0)

    low = zcdp_rho(epsilon, delta) * 0.5
    return float(brentq(lambda rho: spent(rho) - epsilon, low, epsilon + 10 * low))
