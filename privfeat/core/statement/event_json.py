"""dp-accounting events as JSON, for accountants that read a ledger."""

import json
from typing import Any

from privfeat.core.statement.privacy_statement import PrivacyStatement
from privfeat.exceptions import UnsupportedEventError


def event_json(statement: PrivacyStatement) -> str | None:
    """Return the event of a fit as JSON, or None if dp-accounting has none for it."""
    try:
        return json.dumps(_fields(statement.event()))
    except UnsupportedEventError:
        return None


def _fields(value: Any) -> Any:
    """Return an event, and all in it, as dictionaries and lists of plain values."""
    from dp_accounting import DpEvent

    if isinstance(value, DpEvent):
        value = value.to_named_tuple()
    if hasattr(value, "_asdict"):
        return {name: _fields(item) for name, item in value._asdict().items()}
    if isinstance(value, list | tuple):
        return [_fields(item) for item in value]
    return value
