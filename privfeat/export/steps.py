"""The graph of private steps of a pipeline: rows to rows.

Each makes in ONNX what its ``transform`` makes in NumPy (``privfeat/preprocessing``).
"""

from typing import Any

import numpy as np

from privfeat.export.graph import Graph
from privfeat.preprocessing import DPPCA, DPStandardScaler

STEPS = (DPStandardScaler, DPPCA)


def add_step(graph: Graph, rows: str, step: Any) -> str:
    """Return the rows that a fitted step of `STEPS` makes of rows, in float64."""
    if type(step) is DPStandardScaler:
        low, high = step.bounds_of(len(step.mean_))
        cut = graph.op("Min", graph.op("Max", rows, low[None]), high[None])
        return graph.op("Div", graph.op("Sub", cut, step.mean_), step.scale_)
    shifted = graph.op("Sub", rows, step.mean_)
    return graph.op("MatMul", shifted, np.ascontiguousarray(step.components_.T))
