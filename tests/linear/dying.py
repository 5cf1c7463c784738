"""A fit in a process of its own that is killed on the way; imported there by name."""

from pathlib import Path

import numpy as np

from privfeat import DPLeastSquares
from tests.core.ledgers import kill_this_process
from tests.planting import Plant

# What a fit has just done, or is about to do.
STEPS = ("before charge", "after charge", "draw 1", "finish")


def fit_until_killed(ledger, noise, step):
    """Fit, writing to the file ``noise`` after every draw; killed at ``step``."""

    def reach(name):
        if name == step:
            kill_this_process()

    plant = Plant()
    charge = plant.genuine("charge of a ledger")
    release = plant.genuine("release of a sum")
    finish = plant.genuine("mark that a fit is done")
    n_draws = 0

    def charge_dying(self, *args, **kwargs):
        reach("before charge")
        number = charge(self, *args, **kwargs)
        reach("after charge")
        return number

    def release_dying(self, *args, **kwargs):
        nonlocal n_draws
        released = release(self, *args, **kwargs)
        n_draws += 1
        Path(noise).write_text(str(n_draws))
        reach(f"draw {n_draws}")
        return released

    def finish_dying(*args):
        reach("finish")
        finish(*args)

    plant("charge of a ledger", charge_dying)
    plant("release of a sum", release_dying)
    plant("mark that a fit is done", finish_dying)
    y = np.arange(30) % 3
    X = np.eye(3, 4)[y]
    DPLeastSquares(epsilon=0.1, classes=range(3), ledger=ledger).fit(X, y)
