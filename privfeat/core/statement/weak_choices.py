"""Warnings to the owner of a fit of choices that are legal and weaken its privacy."""

import math

from privfeat._warnings import warn
from privfeat.core.statement.privacy_statement import PrivacyStatement

LARGE_DELTA = 1e-4
LARGE_EPSILON = 20.0


def warn_of_weak_choices(
    cost: PrivacyStatement, *, classes_read: bool, n_units: int
) -> None:
    """Warn, in the name of ``fit``, of what is legal and weakens privacy."""
    private = math.isfinite(cost.epsilon)
    if cost.epsilon > LARGE_EPSILON:
        most = f"at most {LARGE_EPSILON:g} to promise anything"
        warn(f"epsilon should be {most}, got {cost.epsilon:.6g}.")
    if private and classes_read:
        warn(
            "classes=None reads the set of labels from y, or from the columns of an "
            "indicator matrix, and treats it as public. Pass classes= to keep a rare "
            "label from showing."
        )
    if private and cost.seeded:
        warn(
            "random_state makes the noise reproducible: not private against anyone who "
            "knows or guesses the seed. Pass None for a real release."
        )
    if private and is_large_delta(cost.delta, n_units):
        rule = f"delta should be well below one over the number of {cost.unit}s"
        warn(f"{rule}, got {cost.delta!r}. Pass a smaller one.")


def is_large_delta(delta: float, n_units: int) -> bool:
    """Return whether one of so many may be published whole; only their owner knows."""
    return delta > LARGE_DELTA or delta * n_units > 1.0
