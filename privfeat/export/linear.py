"""The graph of a linear model: rows to scores, probabilities and classes.

Each function makes in ONNX what the function of the same name makes in NumPy, in
``privfeat/estimation``.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfeat.estimation.predictor import LinearPredictor
from privfeat.export.graph import DOUBLE, INT64, Graph


def add_linear(
    graph: Graph, rows: str, refused: str, model: LinearPredictor, temperature: float
) -> None:
    """Add what ``model`` makes of rows, and the outputs.

    ``refused``, of shape (n_samples, 1): rows that ``predict`` refuses. Their numbers
    are NaN. Their result is looked up at a place that does not exist, so that the
    runtime fails.
    """
    refused = graph.op("Or", refused, graph.op("Not", all_finite(graph, rows)))
    scores = linear_scores(graph, rows, model)
    if model.classes is None:
        low, high = model.bounds
        give_numbers(graph, refused, graph.op("Clip", scores, low, high), 1)
        return
    n_classes = len(model.classes)
    if model.multilabel:
        found = label_probabilities(graph, scores, model)
        chosen = graph.op("Cast", graph.op("Greater", found, 0.5), to=INT64)
        label = graph.op("Gather", np.arange(2), _or_none(graph, refused, chosen, 2))
        graph.give("label", label, "int64", n_classes)
    else:
        found = class_probabilities(graph, scores, model, n_classes)
        found = with_temperature(graph, found, temperature)
        chosen = best_classes(graph, scores, n_classes)
        give_label(graph, refused, chosen, model.classes)
    found = graph.op("Where", refused, np.nan, found)
    graph.give("probabilities", found, "float64", n_classes)
    shown = graph.op("Where", refused, np.nan, scores)
    if n_classes == 2 and not model.multilabel:
        graph.give("scores", graph.op("Squeeze", shown, [1]), "float64")
    else:
        graph.give("scores", shown, "float64", n_classes)


def give_numbers(graph: Graph, refused: str, found: str, n_outputs: int) -> None:
    """Make predicted numbers, of shape (n_samples, n_outputs), the output."""
    nothing = graph.op("Gather", [0.0], _or_none(graph, refused, 0, 1))
    found = graph.op("Where", refused, np.nan, graph.op("Add", found, nothing))
    if n_outputs == 1:
        graph.give("prediction", graph.op("Squeeze", found, [1]), "float64")
    else:
        graph.give("prediction", found, "float64", n_outputs)


def give_label(graph: Graph, refused: str, chosen: str, known: NDArray[Any]) -> None:
    """Make the classes at these places, of shape (n_samples, 1), an output."""
    none = _or_none(graph, refused, chosen, len(known))
    classes = _plain(known)
    label = graph.op("Squeeze", graph.op("Gather", classes, none), [1])
    kind = "str" if classes.dtype.kind in "UO" else classes.dtype.name
    graph.give("label", label, kind)


def with_temperature(graph: Graph, found: str, temperature: float) -> str:
    """Return probabilities as `TemperatureScaling` has them."""
    if temperature == 1.0:
        return found
    floor = graph.op("Log", graph.op("Max", found, 1e-12))
    return graph.op("Softmax", graph.op("Div", floor, temperature), axis=1)


def linear_scores(graph: Graph, rows: str, model: LinearPredictor) -> str:
    """Return scores, of shape (n_samples, n_outputs)."""
    unit = model.row_scaling == "unit"
    scaled = unit_rows(graph, rows) if unit else rows
    if np.any(model.center):
        scaled = graph.op("Sub", scaled, model.center)
    if unit:
        scaled = unit_rows(graph, scaled)
    coef = np.atleast_2d(model.coef)
    products = graph.op("MatMul", scaled, np.ascontiguousarray(coef.T))
    return graph.op("Add", products, np.atleast_1d(model.intercept))


def unit_rows(graph: Graph, rows: str) -> str:
    """Return rows divided by their norms; zero rows stay zero."""
    largest = graph.op("ReduceMax", graph.op("Abs", rows), [1], keepdims=1)
    rows = graph.op("Div", rows, _or_one(graph, largest))
    squares = graph.op("ReduceSum", graph.op("Mul", rows, rows), [1], keepdims=1)
    return graph.op("Div", rows, _or_one(graph, graph.op("Sqrt", squares)))


def best_classes(graph: Graph, scores: str, n_classes: int) -> str:
    """Return the place of the class with the highest score, of shape (n_samples, 1)."""
    if n_classes == 2:
        return graph.op("Cast", graph.op("Greater", scores, 0.0), to=INT64)
    return graph.op("ArgMax", scores, axis=1, keepdims=1)


def class_probabilities(
    graph: Graph, scores: str, model: LinearPredictor, n_classes: int
) -> str:
    """Return probabilities of classes that exclude each other."""
    one_score = n_classes == 2
    if model.loss == "squared":
        if one_score:
            scores = graph.op("MatMul", scores, [[-0.5, 0.5]])
        return project_on_simplex(graph, scores, n_classes)
    if one_score:
        return graph.op("Sigmoid", graph.op("MatMul", scores, [[-1.0, 1.0]]))
    if model.loss == "sigmoid":
        negative = graph.op("Neg", scores)
        scores = graph.op("Neg", graph.op("Softplus", negative))
    return graph.op("Softmax", scores, axis=1)


def label_probabilities(graph: Graph, scores: str, model: LinearPredictor) -> str:
    """Return the probability of each label on its own, never quite 0 or 1."""
    if (weight := model.negative_weight) is not None:
        tiny = float(np.finfo(float).tiny)
        rest = graph.op("Max", graph.op("Sub", 1.0, scores), tiny)
        weighed = graph.op("Min", graph.op("Mul", scores, weight), rest)
        scores = graph.op("Div", weighed, rest)
    if model.loss == "sigmoid":
        scores = graph.op("Sigmoid", scores)
    margin = float(np.finfo(float).eps)
    return graph.op("Clip", scores, margin, 1.0 - margin)


def project_on_simplex(graph: Graph, scores: str, n_classes: int) -> str:
    """Return the point of the probability simplex nearest to each row."""
    ordered, _ = graph.ops("TopK", scores, [n_classes], n_outputs=2, axis=1)
    excess = graph.op("Sub", graph.op("CumSum", ordered, 1), 1.0)
    counts = np.arange(1.0, n_classes + 1.0)
    above = graph.op("Greater", ordered, graph.op("Div", excess, counts))
    support = graph.op(
        "ReduceSum", graph.op("Cast", above, to=INT64), [1], keepdims=1
    )  # NaN is above nothing
    last = graph.op("Max", graph.op("Sub", support, 1), 0)
    at_last = graph.op("GatherElements", excess, last, axis=1)
    threshold = graph.op("Div", at_last, graph.op("Cast", support, to=DOUBLE))
    return graph.op("Max", graph.op("Sub", scores, threshold), 0.0)


def all_finite(graph: Graph, rows: str) -> str:
    """Return whether all values of a row are finite, of shape (n_samples, 1)."""
    below = graph.op("Less", graph.op("Abs", rows), np.inf)  # false for NaN
    finite = graph.op("Cast", below, to=INT64)
    least = graph.op("ReduceMin", finite, [1], keepdims=1)
    return graph.op("Equal", least, 1)


def _or_none(graph: Graph, refused: str, places: str | int, n_places: int) -> str:
    """Return places, and one that does not exist for rows that are refused."""
    return graph.op("Where", refused, n_places, places)


def _or_one(graph: Graph, values: str) -> str:
    """Return what a row is divided by: 1 where it would be 0."""
    return graph.op("Where", graph.op("Greater", values, 0.0), values, 1.0)


def _plain(classes: NDArray[Any]) -> NDArray[Any]:
    """Return classes as ONNX has them: texts, booleans, int64 or float64.

    TypeError if they are none of these.
    """
    kind = classes.dtype.kind
    if kind == "O" and all(isinstance(label, str) for label in classes):
        return classes
    if kind in "iu" and np.array_equal(whole := classes.astype(np.int64), classes):
        return whole
    if kind == "f":
        return classes.astype(np.float64)
    if kind in "bU":
        return classes
    raise TypeError(
        "classes must be texts, booleans or numbers of 64 bits to be exported, got "
        f"type {classes.dtype}."
    )
