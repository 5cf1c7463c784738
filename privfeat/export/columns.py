"""The graph of declared columns: values of a table to features.

It makes in ONNX what ``privfeat/preprocessing/values.py`` makes in NumPy. Each column
is an input of shape (n_samples, 1): a category is text, and all others are float64,
where NaN is a missing value, a boolean 0 or 1, a date its seconds since 1970 in UTC.
"""

import math

import numpy as np

from privfeat.export.graph import DOUBLE, Graph
from privfeat.preprocessing.declaration import INDICATOR, NO_CATEGORY, REFUSE, Column

# what a category is beside its own numbers
_MISSING, _REFUSED = -2, -3


def add_columns(graph: Graph, declared: tuple[Column, ...]) -> tuple[str, str]:
    """Return features of rows, and which rows are refused, of shape (n_samples, 1)."""
    features, refused = [], []
    for column in declared:
        if column.outputs:
            read = _category if column.kind == "category" else _number
            made, missing, wrong = read(graph, column)
            features.append(made)
            if column.missing == INDICATOR:
                features.append(graph.op("Cast", missing, to=DOUBLE))
            refused.append(wrong)
            if column.missing == REFUSE:
                refused.append(missing)
    any_refused = refused[0]
    for more in refused[1:]:
        any_refused = graph.op("Or", any_refused, more)
    return graph.op("Concat", *features, axis=1), any_refused


def _category(graph: Graph, column: Column) -> tuple[str, str, str]:
    """Return one feature for each category, what is missing, and what is refused."""
    codes: dict[str, int] = {text: _MISSING for text in {"", *column.texts}}
    codes = {text: code for code, text in enumerate(column.categories)} | codes
    found = graph.op(
        "LabelEncoder",
        graph.take(column.name, "str", 1),
        keys_strings=list(codes),
        values_int64s=list(codes.values()),
        default_int64=_REFUSED if column.unseen is None else column.unseen,
    )
    missing = graph.op("Equal", found, _MISSING)
    fill = NO_CATEGORY if math.isnan(column.fill) else int(column.fill)
    code = graph.op("Where", missing, fill, found)
    places = np.arange(len(column.categories))
    features = graph.op("Cast", graph.op("Equal", code, places), to=DOUBLE)
    return features, missing, graph.op("Equal", found, _REFUSED)


def _number(graph: Graph, column: Column) -> tuple[str, str, str]:
    """Return the feature of a number, what is missing, and what is refused."""
    value = graph.take(column.name, "float64", 1)
    missing = graph.op("IsNaN", value)
    for number in sorted(column.numbers):
        missing = graph.op("Or", missing, graph.op("Equal", value, number))
    wrong = graph.op("And", missing, False)  # no value is refused
    if column.kind in ("integer", "boolean"):
        allowed = graph.op("Equal", graph.op("Floor", value), value)
        if column.kind == "boolean":
            known = graph.op("Equal", value, 0.0), graph.op("Equal", value, 1.0)
            allowed = graph.op("Or", *known)
        wrong = graph.op("Not", graph.op("Or", missing, allowed))
    (low, high), fill = column.bounds, column.fill
    middle = low + (high - low) / 2.0 if math.isnan(fill) else fill
    clipped = graph.op("Clip", graph.op("Where", missing, middle, value), low, high)
    if column.treatment == "raw":
        return clipped, missing, wrong
    if column.treatment == "log":
        clipped = graph.op("Log", clipped)
        low, high = math.log(low), math.log(high)
    share = graph.op("Div", graph.op("Sub", clipped, low), high - low)
    scaled = graph.op("Sub", graph.op("Mul", share, 2.0), 1.0)
    feature = graph.op("Clip", scaled, -1.0, 1.0)
    if math.isnan(fill):  # the middle of logarithms is another
        feature = graph.op("Where", missing, 0.0, feature)
    return feature, missing, wrong
