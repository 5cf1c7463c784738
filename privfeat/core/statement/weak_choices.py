"""What a fit is warned of: legal choices with which a statement promises little."""

import math

from privfeat._warnings import warn
from privfeat.core.statement.privacy_statement import PrivacyStatement

LARGE_DELTA = 1e-4
LARGE_EPSILON = 20.0


def is_large_delta(delta: float, n_units: int) -> bool:
    """Return whether ``delta`` promises little to ``n_units`` records, or users.

    A delta of one over their number allows publishing one of them whole.

    Under add/remove the number is secret, and the answer depends on it. Only the owner
    of the records sees the answer: ``fit`` warns on stderr, in the words of the warning
    of any large delta, and writes nothing into a statement, report or model.
    """
    return delta > LARGE_DELTA or delta * n_units > 1.0


def warn_of_weak_choices(
    cost: PrivacyStatement, *, classes_read: bool, n_units: int
) -> None:
    """Warn, in the name of ``fit``, of what is legal and weakens privacy."""
    messages = []
    if cost.epsilon > LARGE_EPSILON:
        messages.append(
            f"epsilon should be at most {LARGE_EPSILON:g} to promise anything, got "
            f"{cost.epsilon:.6g}."
        )
    private = math.isfinite(cost.epsilon)
    if private and classes_read:
        messages.append(
            "classes=None reads the set of labels from y and treats it as public. "
            "Pass classes= to keep a rare label from showing."
        )
    if private and cost.seeded:
        messages.append(
            "random_state makes the noise reproducible: not private against anyone who "
            "knows or guesses the seed. Pass None for a real release."
        )
    if private and is_large_delta(cost.delta, n_units):
        messages.append(
            "delta should be well below one over the number of records, got "
            f"{cost.delta!r}. Pass a smaller one."
        )
    for message in messages:
        warn(message)
