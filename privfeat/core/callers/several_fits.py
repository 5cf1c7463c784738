"""Functions of scikit-learn that fit several times, charge each, and return all.

Where a later fit is refused, by the budget or for its target, those before it were
charged and are lost. So a ledger refuses the first one.
"""

from typing import Any

from privfeat.core.callers.stack import callers
from privfeat.core.callers.stateless import CONTAINERS, is_exactly

_INSTEAD = {
    "sklearn.multiclass": (
        "A classifier of privfeat takes all classes, for the budget of one fit: fit it "
        "itself."
    ),
    "sklearn.multioutput": (
        "A classifier of privfeat takes a y of 0 and 1 with a column for each label, "
        "for the budget of one fit: fit it itself. Else fit one estimator for each "
        "column."
    ),
}
_SIDE_BY_SIDE = (
    "Use privfeat.PrivatePipeline, which is charged once, or fit each by itself and "
    "wrap it in sklearn.frozen.FrozenEstimator."
)


def several_fits() -> tuple[str, str] | None:
    """Return what around this call makes several fits, and what to do instead."""
    for module, function, frame in callers("sklearn"):
        if module in _INSTEAD:
            return f"{module}.{function}", _INSTEAD[module]
        around = frame.f_locals.get("self")
        if _n_private(around) > 1:
            return f"{type(around).__name__} of several private steps", _SIDE_BY_SIDE
    return None


def _n_private(part: Any) -> int:
    """Return how many parts of a container take a ledger, or whether a part does.

    Also if one was left out: only fits with a ledger ask, and it would not be charged.
    """
    if not is_exactly(part, CONTAINERS):
        return int("ledger" in getattr(part, "__dict__", {}))  # not of a frozen one
    names = ("steps", "transformer_list", "transformers")
    parts = [each[1] for name in names for each in getattr(part, name, ())]
    return sum(map(_n_private, [*parts, getattr(part, "remainder", None)]))
