"""Pictures of the privacy wall: Figures 2 and 3 of Sander et al. 2023."""

import math
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from privfeat.analysis._axes import axes_or_new
from privfeat.analysis.tan import TAN, closed_form_epsilon, rdp_ratio, wall_curve


class PrivacyWallDisplay:
    """Epsilon against the noise multiplier at constant eta, a line for each ``S``.

    Parameters
    ----------
    noise_multipliers : array of shape (n_noises,)
    curves : mapping of int to array of shape (n_noises,)
        Rényi epsilon for each number of steps; NaN where no sampling reaches eta.
    closed_form : float
        The epsilon that depends on eta alone.

    Attributes
    ----------
    ax_, figure_ : matplotlib artists
        After `plot`.
    """

    def __init__(
        self,
        noise_multipliers: NDArray[np.float64],
        curves: dict[int, NDArray[np.float64]],
        closed_form: float,
    ) -> None:
        self.noise_multipliers = noise_multipliers
        self.curves = curves
        self.closed_form = closed_form

    @classmethod
    def from_eta(
        cls,
        eta: float,
        *,
        delta: float,
        n_iters: Sequence[int] = (1_000, 10_000, 100_000),
        noise_multipliers: Sequence[float] | None = None,
        ax: Any = None,
    ) -> Self:
        """Compute the curves and draw them: Figure 2."""
        noises = np.asarray(
            np.geomspace(0.4, 8.0, 25)
            if noise_multipliers is None
            else noise_multipliers,
            np.float64,
        )
        curves = {n: wall_curve(eta, n, noises.tolist(), delta) for n in n_iters}
        return cls(noises, curves, closed_form_epsilon(eta, delta)).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on ``ax``, or on new axes."""
        self.ax_, self.figure_ = axes_or_new(ax)
        for n_iter, curve in self.curves.items():
            self.ax_.plot(self.noise_multipliers, curve, label=f"{n_iter:,} steps")
        self.ax_.axhline(self.closed_form, color="0.4", linestyle=":")
        self.ax_.axvline(2.0, color="0.7", linewidth=1)
        self.ax_.set_xscale("log", base=2)
        self.ax_.xaxis.set_major_formatter("{x:g}")
        self.ax_.set_yscale("log")
        self.ax_.set_xlabel("noise multiplier, eta constant")
        self.ax_.set_ylabel("epsilon (dots: closed form)")
        self.ax_.legend()
        return self


class RdpRatioDisplay:
    """Rényi divergence of a step over ``order eta_step**2``, a line for each noise.

    Parameters
    ----------
    orders : array of shape (n_orders,)
    curves : mapping of float to array of shape (n_orders,)
        The ratio for each noise multiplier.

    Attributes
    ----------
    ax_, figure_ : matplotlib artists
        After `plot`.
    """

    def __init__(
        self, orders: NDArray[np.int_], curves: dict[float, NDArray[np.float64]]
    ) -> None:
        self.orders = orders
        self.curves = curves

    @classmethod
    def from_eta_step(
        cls,
        eta_step: float,
        *,
        noise_multipliers: Sequence[float] = (0.5, 1.0, 2.0, 4.0),
        orders: Sequence[int] = tuple(range(2, 33)),
        ax: Any = None,
    ) -> Self:
        """Compute the ratios and draw them: Figure 3."""
        curves = {
            noise: rdp_ratio(TAN(eta_step * math.sqrt(2.0) * noise, noise, 1), orders)
            for noise in noise_multipliers
        }
        return cls(np.asarray(orders), curves).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on ``ax``, or on new axes."""
        self.ax_, self.figure_ = axes_or_new(ax)
        for noise, curve in self.curves.items():
            self.ax_.plot(self.orders, curve, label=f"noise multiplier {noise:g}")
        self.ax_.axhline(1.0, color="0.4", linestyle=":")
        self.ax_.set_yscale("log")
        self.ax_.set_xlabel("Rényi order")
        self.ax_.set_ylabel("divergence / (order × eta_step²)")
        self.ax_.legend()
        return self
