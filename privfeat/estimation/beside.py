"""Public parts beside a private one: tried before its charge, not refused after."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from sklearn.base import clone
from sklearn.utils.metadata_routing import get_routing_for_object

from privfeat._messages import without_data, without_warnings
from privfeat.core.callers.stack import callers
from privfeat.core.callers.stateless import is_exactly
from privfeat.core.ledger.privacy_ledger import PrivacyLedger

# Whether the records are those of a run that was charged before it began.
_CHARGED: ContextVar[bool] = ContextVar("charged", default=False)
# What fits part after part.
_SIDE_BY_SIDE = {"sklearn": {"ColumnTransformer", "FeatureUnion"}}


def try_what_stands_beside() -> None:
    """Raise what the parts that follow a private one refuse of the records.

    A ``ColumnTransformer`` or ``FeatureUnion`` fits part after part. A private one was
    charged, and lost, where a later part refused a record: so copies of the later ones
    are fitted first. Parts that run in other threads or processes see no container.
    """
    tried: Any = None
    for _, function, frame in callers("sklearn"):
        if function not in ("fit", "fit_transform"):
            continue
        known = frame.f_locals
        around = known.get("self")
        if around is not tried and is_exactly(around, _SIDE_BY_SIDE):
            tried, later = around, _after_the_private(around)
            if later is None:
                continue
            given = known.get("params", known.get("fit_params", {}))
            if given:  # what no remaining part asks for is refused
                asked = get_routing_for_object(later).consumes("fit_transform", given)
                given = {name: given[name] for name in asked}
            with without_warnings():  # the fit that follows warns
                later.fit_transform(own_rows(known["X"]), known.get("y"), **given)


def own_rows(X: Any) -> Any:
    """Return a copy of rows for a trial: a step may write into what it is given.

    The rows of a feature file are read anew, and no step can write them.
    """
    return without_data(X.copy) if hasattr(X, "copy") else X


def _after_the_private(container: Any) -> Any:
    """Return a copy without private parts, and what is before them; None if empty."""
    name = "transformers" if hasattr(container, "transformers") else "transformer_list"
    parts = [part[:2] for part in getattr(container, name)]
    if hasattr(container, "remainder"):
        parts.append(("remainder", container.remainder))
    private = [place for place, (_, part) in enumerate(parts) if _has_ledger(part)]
    first = min(private, default=len(parts))
    dropped = {
        name: "drop"
        for place, (name, _) in enumerate(parts)
        if place <= first or place in private
    }
    if len(dropped) == len(parts):
        return None
    return clone(container).set_params(verbose=False, **dropped)


def _has_ledger(part: Any) -> bool:
    params = part.get_params() if hasattr(part, "get_params") else {}
    return any(isinstance(value, PrivacyLedger) for value in params.values())


@contextmanager
def charged_before() -> Iterator[None]:
    """Let no public step refuse a number in the body: errors would tell of records."""
    token = _CHARGED.set(True)
    try:
        yield
    finally:
        _CHARGED.reset(token)


def is_charged() -> bool:
    """Return whether this is within `charged_before`."""
    return _CHARGED.get()
