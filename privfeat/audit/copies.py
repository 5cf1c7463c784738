"""Fits of audits are thrown away, and must not spend the budget of the data."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sklearn.base import clone

from privfeat._messages import without_warnings
from privfeat.exceptions import PrivacyWarning


def throw_away(estimator: Any, **params: Any) -> Any:
    """Return a clone that charges no ledger and keeps no checkpoint, with ``params``.

    Where an estimator has no such parameter, it is not set.
    """
    model = clone(estimator, safe=False)
    params = {"ledger": None, "checkpoint_dir": None} | params
    for name, value in params.items():
        if hasattr(model, name):
            setattr(model, name, value)
    return model


@contextmanager
def without_privacy_warnings() -> Iterator[None]:
    """Silence warnings that mean nothing to a fit that is never published."""
    with without_warnings(PrivacyWarning):
        yield
