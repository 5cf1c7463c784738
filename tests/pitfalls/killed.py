"""Fits that are killed after so many draws."""

import pytest


class KilledError(Exception):
    """Stands for a crash."""


def noise_before_a_kill(plant, n_draws, fit):
    """Run a fit that is killed after so many draws; return their stddevs."""
    genuine, drawn = plant.genuine("Gaussian noise"), []

    def dying(key, shape, stddev):
        if len(drawn) == n_draws:
            raise KilledError
        drawn.append(stddev)
        return genuine(key, shape, stddev)

    with plant.context() as patch:
        patch("Gaussian noise", dying)
        with pytest.raises(KilledError):
            fit()
    return drawn
