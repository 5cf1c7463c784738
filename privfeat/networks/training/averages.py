"""Averages of the parameters over steps: post-processing of releases."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Average:
    """What is kept of the parameters of all steps; public numbers.

    Attributes
    ----------
    ema_decay : float
        Of an exponential moving average.
    start : float or None
        Instead, the share of the steps after which a plain mean begins (Polyak &
        Juditsky 1992).
    """

    ema_decay: float
    start: float | None = None

    def weight(self, step: int, n_iter: int) -> float:
        """Return what the parameters after step ``step``, from 0, count in it."""
        if self.start is not None:
            return 1.0 / max(step + 1 - round(self.start * n_iter), 1)
        # a young average forgets faster, so that it is not of the first values
        return 1.0 - min(self.ema_decay, (1.0 + step) / (10.0 + step))
