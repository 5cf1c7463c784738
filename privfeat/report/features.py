"""What the features of a model are, in sentences."""

from collections.abc import Mapping
from typing import Any

_TABLE = (
    "Each row of a table became numbers by what is publicly declared of its columns, "
    "and by nothing else: no other row had a part in it."
)
_STEPS = (
    "Then each step made numbers of those before it. What a step learned of all "
    "records is among the releases, inside the promise."
)
_FIRST = "Steps that learn nothing made numbers of each record by itself."
_RECORDS = "The network was trained on the records themselves, from the input on."
_PARTLY = (
    "Parts of the network kept the values that they started with; the others were "
    "trained on the records themselves."
)
_STARTED = (
    "It started from weights of another training: what that one learned of its own "
    "records is not covered by the promise."
)
_UNKNOWN = (
    "The model was fitted to arrays of numbers (features), and does not know how they "
    "were made. If other records had a part in those of one record, as in a scaler "
    "that was fitted to all, the promise does not cover that."
)
_ALONE = "each by itself: no other record had a part in it."
_WEIGHTS = (
    "What the weights of this network were trained on is not covered by the promise."
)


def features_in_words(
    origin: Mapping[str, Any] | None,
    *,
    table: bool = False,
    network: bool = False,
    frozen: bool = False,
    weights: bool = False,
    steps: bool = False,
) -> str:
    """Return what the features are, and what of them the promise covers.

    ``origin`` is how they were made: `privfeat.data.FeatureFile.origin`, None if nobody
    knows. ``table``: they are the columns of a table. ``network``: one was trained on
    the records, so that there are no features; ``frozen`` parts of it not, and it had
    ``weights`` to start with. ``steps``: those of a pipeline come
    between them and the model.
    """
    if network:
        told = [_TABLE] * table + [_FIRST] * steps + [_PARTLY if frozen else _RECORDS]
        return " ".join(told + [_STARTED] * weights)
    if steps:
        return f"{_made(origin, table=table)} {_STEPS}"
    return _made(origin, table=table)


def _made(origin: Mapping[str, Any] | None, *, table: bool) -> str:
    """Return the sentences that say how the features were made."""
    if table:
        return _TABLE
    origin = origin or {}
    if not origin.get("model"):
        return _UNKNOWN
    if "pooling" not in origin:  # which the extractor always names
        return f"{_UNKNOWN} Their author says that they are of {origin['model']}."
    name = origin.get("model_name") or origin["model"]
    if origin["model"] == "ngrams":
        return (
            "The records are texts. Pieces of a few letters or words were counted, by "
            f"public numbers of the pieces and without a vocabulary, {_ALONE}"
        )
    if is_of_texts(origin):
        cut = origin.get("max_length")
        longer = f" Texts longer than {cut} tokens were cut there." if cut else ""
        return (
            f"The records are texts. A fixed network, {name}, made numbers of them, "
            f"{_ALONE}{longer} {_WEIGHTS}"
        )
    if origin["model"] == "scattering":
        return (
            "The records are images. A transform by wavelets, which has no weights, "
            f"made numbers of them, {_ALONE}"
        )
    return f"A fixed network, {name}, made numbers of the records, {_ALONE} {_WEIGHTS}"


def is_of_texts(origin: Mapping[str, Any] | None) -> bool:
    """Return whether the features are those of texts."""
    known = origin or {}
    return known.get("model") == "ngrams" or "max_length" in known
