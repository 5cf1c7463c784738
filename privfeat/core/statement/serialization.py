"""The fields of a privacy statement as JSON: infinite numbers are the string "inf".

Nothing here, nor in ``PrivacyStatement.from_json``, computes whether the costs that are
read are those of the noise: `persistence/loading` does, of models. A ledger reads what
it has written itself, under a checksum.
"""

import json
import math
from typing import Any

import numpy as np

from privfeat.core.accounting.plan import ReleaseRecord
from privfeat.core.bounds.strategy import Banded
from privfeat.exceptions import PrivacyError

STATEMENT_VERSION = 1
# Fields of text, of which "inf" is a word.
_TEXTS = ("name", "public", "version")


def dumps(fields: dict[str, Any]) -> str:
    """Return fields as JSON, with the version of the format.

    ``statement.schema.json`` beside this module is its schema.
    """
    fields = fields | {"statement_version": STATEMENT_VERSION}
    return json.dumps(_encode(fields), indent=2, allow_nan=False)


def loads(text: str) -> dict[str, Any]:
    """Return the fields that `dumps` wrote.

    Raises
    ------
    PrivacyError
        If they are of a version this release cannot read.
    ValueError
        If the text is not an object in JSON, or holds no version.
    """
    fields: Any = _decode(json.loads(text, parse_constant=_refuse_constant))
    if not isinstance(fields, dict) or "statement_version" not in fields:
        raise ValueError("text must be an object in JSON with a statement_version.")
    version = fields.pop("statement_version")
    if version != STATEMENT_VERSION:
        raise PrivacyError(
            f"statement_version must be {STATEMENT_VERSION}, got {version!r}. "
            "Upgrade privfeat to read it."
        )
    return fields


def release_of(fields: dict[str, Any]) -> ReleaseRecord:
    """Return a release; what it is made of is a TypeError or ValueError if it is none.

    Only releases with correlated noise have a strategy.
    """
    if "strategy" in fields:
        fields = fields | {"strategy": Banded(**fields["strategy"])}
    return ReleaseRecord(**fields)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"JSON must not hold {name}.")


def _encode(value: Any) -> Any:
    """Return a value as JSON, infinity as ``"inf"``, no strategy left out."""
    if isinstance(value, dict):
        independent = ("strategy", None)
        kept = [each for each in value.items() if each != independent]
        return {key: _encode(item) for key, item in kept}
    if isinstance(value, list | tuple):
        return [_encode(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return "inf" if value == math.inf else value


def _decode(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: v if k in _TEXTS else _decode(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_decode(item) for item in value]
    return math.inf if value == "inf" else value
