"""A fit with checkpoints in a process of its own that is killed on the way."""

import numpy as np

from privfeat import DPSGDClassifier, PrivacyLedger
from tests.core.ledgers import kill_this_process
from tests.planting import Plant


def make_records():
    draw = np.random.default_rng(3)
    return draw.normal(size=(30, 5)), draw.integers(0, 3, 30)


def make_classifier(folder, **params):
    params = {"noise_multiplier": 1.0, "n_iter": 7, "expected_batch_size": 8} | params
    params = {"checkpoint_dir": folder, "checkpoint_every": 2} | params
    params = {"ema_decay": 0.9, "model": "mlp"} | params
    return DPSGDClassifier(
        classes=range(3),
        microbatch_size=4,
        **params,
    )


def make_charged(folder, ledger):
    """Return one whose cost is quick to compose: all records in every step."""
    return make_classifier(folder, ledger=ledger, expected_batch_size=None)


def steps_in(folder):
    """Return the names of the checkpoints."""
    return sorted(entry.name for entry in folder.iterdir() if entry.is_dir())


def fit_until_killed(folder, ledger_path, n_draws):
    """Fit; killed after so many draws of noise."""
    plant = Plant()
    release = plant.genuine("release of a sum")
    left = n_draws

    def release_dying(self, *args, **kwargs):
        nonlocal left
        released = release(self, *args, **kwargs)
        left -= 1
        if not left:
            kill_this_process()
        return released

    plant("release of a sum", release_dying)
    ledger = PrivacyLedger(ledger_path, dataset="x")
    make_charged(folder, ledger).fit(*make_records())
