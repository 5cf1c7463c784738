"""The graph of a network: its operations in JAX, one by one, as ONNX has them.

A network is traced for a number of records that stands for any (``_N``). What does not
depend on the records, such as a standardized kernel, is computed once. Where an array
would have an entry for each record and all are the same, it has one, and ONNX
repeats it as NumPy does.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from privfeat.export.graph import DOUBLE, FLOAT, Graph
from privfeat.export.linear import (
    all_finite,
    give_label,
    give_numbers,
    with_temperature,
)
from privfeat.networks.images.records import TO_UNIT_RANGE
from privfeat.networks.weights import network_of

_N = 1_000_003  # a prime, which no size of a record has

# A constant, or the name of a value of the graph.
Value = NDArray[Any] | str

_PLAIN = {
    "add": "Add",
    "div": "Div",
    "exp": "Exp",
    "max": "Max",
    "min": "Min",
    "mul": "Mul",
    "neg": "Neg",
    "sub": "Sub",
    "tanh": "Tanh",
}
_SAME = ("convert_element_type", "copy", "stop_gradient")


def add_scores(graph: Graph, rows: str, model: Any) -> str:
    """Return the scores of a fitted network, of shape (n_samples, n_outputs).

    ``rows`` are records as floats, of shape (n_samples, *input_shape_). TypeError if
    the network is made of an operation that is not written here.
    """
    network = network_of(model.model, model.input_shape_, model.n_outputs_)
    records: Any = jax.eval_shape(lambda: jnp.zeros((_N, *model.input_shape_), "f4"))
    leaves = {name: np.asarray(leaf) for name, leaf in model.parameters_.items()}
    traced = jax.make_jaxpr(network)(leaves, records)
    given = [*jax.tree.leaves(leaves), rows]
    (scores,) = _run(graph, traced.jaxpr, traced.consts, given)
    assert isinstance(scores, str)
    return scores


def add_network(graph: Graph, dtype: str, model: Any, temperature: float) -> None:
    """Add the records of a fitted network, what it makes of them, and the outputs.

    Bytes become floats as they do in training, and floats are taken as they are. The
    network computes in float32, and what is made of its scores in float64. Records that
    are not finite are refused, as in ``linear``.
    """
    rows = graph.take("X", dtype, *map(int, model.input_shape_))
    if dtype == "uint8":
        mean, deviation = getattr(model, "pixel_scale_", TO_UNIT_RANGE)
        shifted = graph.op("Sub", graph.op("Cast", rows, to=FLOAT), mean)
        rows = graph.op("Div", shifted, deviation)
    flat = graph.op("Reshape", rows, np.array([-1, math.prod(model.input_shape_)]))
    refused = graph.op("Not", all_finite(graph, graph.op("Cast", flat, to=DOUBLE)))
    scores = graph.op("Cast", add_scores(graph, rows, model), to=DOUBLE)
    n_outputs = int(model.n_outputs_)
    if not hasattr(model, "classes_"):
        give_numbers(graph, refused, scores, n_outputs)
        return
    chosen = graph.op("ArgMax", scores, axis=1, keepdims=1)
    give_label(graph, refused, chosen, model.classes_)
    found = with_temperature(graph, graph.op("Softmax", scores, axis=1), temperature)
    found = graph.op("Where", refused, np.nan, found)
    graph.give("probabilities", found, "float64", n_outputs)
    if n_outputs == 2:
        scores = graph.op("Squeeze", graph.op("MatMul", scores, [[-1.0], [1.0]]), [1])
        refused = graph.op("Squeeze", refused, [1])
    shown = graph.op("Where", refused, np.nan, scores)
    graph.give("scores", shown, "float64", *([n_outputs] if n_outputs > 2 else []))


def _run(graph: Graph, jaxpr: Any, constants: Any, given: list[Value]) -> list[Value]:
    """Return what a traced function makes of these values."""
    fixed = [np.asarray(constant) for constant in constants]
    names = [*jaxpr.constvars, *jaxpr.invars]
    known: dict[Any, Value] = dict(zip(names, [*fixed, *given], strict=True))

    def value(atom: Any) -> Value:
        if hasattr(atom, "val"):
            return np.asarray(atom.val, atom.aval.dtype)
        return known[atom]

    for equation in jaxpr.eqns:
        values = [value(atom) for atom in equation.invars]
        inner = equation.params.get("jaxpr", equation.params.get("call_jaxpr"))
        if inner is not None:
            made = _run(graph, inner.jaxpr, inner.consts, values)
        elif not any(isinstance(one, str) for one in values):
            made = [_computed(equation, values)]
        else:
            made = [_added(graph, equation, values)]
        known |= dict(zip(equation.outvars, made, strict=True))
    return [value(atom) for atom in jaxpr.outvars]


def _computed(equation: Any, values: list[Value]) -> Value:
    """Return what an operation makes of constants; of all records, of one."""
    params = {name: _of_one(value) for name, value in equation.params.items()}
    with jax.enable_x64(False):
        return np.asarray(equation.primitive.bind(*map(jnp.asarray, values), **params))


def _of_one(sizes: Any) -> Any:
    if isinstance(sizes, tuple) and all(isinstance(s, int | np.integer) for s in sizes):
        return tuple(1 if size == _N else int(size) for size in sizes)
    return sizes


def _added(graph: Graph, equation: Any, values: list[Value]) -> Value:
    """Return the value of the nodes of one operation."""
    name, shape = equation.primitive.name, equation.outvars[0].aval.shape
    if name in _SAME:
        return values[0]
    if name in _PLAIN:
        return graph.op(_PLAIN[name], *values)
    if name not in _NODES:
        raise TypeError(
            "networks must be made of operations that have a form in ONNX here to be "
            f"exported, got {name!r}. Export the arrays by export_safetensors."
        )
    sides = [atom.aval.shape for atom in equation.invars]
    return _NODES[name](graph, values, equation.params, sides, shape)


Sizes = tuple[int, ...]
Node = Callable[[Graph, Any, Mapping[str, Any], list[Sizes], Sizes], str]


def _reshape(graph: Graph, values: Any, _: Any, __: Any, shape: Sizes) -> str:
    return graph.op("Reshape", values[0], _sizes(shape, records=-1))


def _broadcast(
    graph: Graph, values: Any, params: Any, sides: list[Sizes], shape: Sizes
) -> str:
    """Add the nodes that repeat a value to ``shape``."""
    places = params["broadcast_dimensions"]
    kept = [1] * len(shape)
    for place, size in zip(places, sides[0], strict=True):
        kept[place] = size
    value = graph.op("Reshape", values[0], _sizes(tuple(kept), records=-1))
    if tuple(kept) == shape:
        return value
    return graph.op("Expand", value, _sizes(shape, records=1))


def _convolution(graph: Graph, values: Any, params: Any, _: Any, __: Any) -> str:
    """Add the nodes of a convolution, whose axes ONNX has in another order."""
    x, kernel = values
    found = params["dimension_numbers"]
    x = graph.op("Transpose", x, perm=list(found.lhs_spec))
    if isinstance(kernel, str):
        kernel = graph.op("Transpose", kernel, perm=list(found.rhs_spec))
    else:
        kernel = np.ascontiguousarray(np.transpose(kernel, found.rhs_spec))
    made = graph.op(
        "Conv",
        x,
        kernel,
        strides=list(params["window_strides"]),
        pads=_ends(params["padding"]),
        dilations=list(params["rhs_dilation"]),
        group=params["feature_group_count"],
    )
    return graph.op("Transpose", made, perm=np.argsort(found.out_spec).tolist())


def _product(graph: Graph, values: Any, params: Any, sides: list[Sizes], _: Any) -> str:
    """Return a product: of axes in both first, then those of each that are left."""
    (left, right), (both_left, both_right) = params["dimension_numbers"]
    one, two = [*"abcdefgh"[: len(sides[0])]], [*"ijklmnop"[: len(sides[1])]]
    for mine, theirs in zip((*left, *both_left), (*right, *both_right), strict=True):
        two[theirs] = one[mine]
    out = [one[place] for place in both_left]
    out += [one[i] for i in range(len(one)) if i not in (*left, *both_left)]
    out += [two[i] for i in range(len(two)) if i not in (*right, *both_right)]
    named = f"{''.join(one)},{''.join(two)}->{''.join(out)}"
    return graph.op("Einsum", *values, equation=named)


def _pad(graph: Graph, values: Any, params: Any, _: Any, __: Any) -> str:
    config = params["padding_config"]
    if not any(before or after for before, after, _ in config):
        return str(values[0])
    ends = _ends([(before, after) for before, after, _ in config])
    return graph.op("Pad", values[0], np.array(ends), np.float32(values[1]))


def _slice(graph: Graph, values: Any, params: Any, sides: list[Sizes], _: Any) -> str:
    starts, limits = params["start_indices"], params["limit_indices"]
    axes = [i for i, size in enumerate(sides[0]) if size != _N]
    steps = params["strides"] or (1,) * len(starts)
    chosen = [np.array([one[i] for i in axes]) for one in (starts, limits)]
    return graph.op(
        "Slice", values[0], *chosen, np.array(axes), np.array([steps[i] for i in axes])
    )


def _join(graph: Graph, values: Any, params: Any, sides: list[Sizes], _: Any) -> str:
    """Add the node that joins values; those without records are repeated for each."""
    axis = params["dimension"]
    (name,) = [value for value in values if isinstance(value, str)][:1]
    n_records = graph.op("Shape", name, start=0, end=1)
    whole = []
    for value, side in zip(values, sides, strict=True):
        if not isinstance(value, str) and side[0] == _N:  # one for all records
            rest = np.array(side[1:])
            value = graph.op(
                "Expand", value, graph.op("Concat", n_records, rest, axis=0)
            )
        whole.append(value)
    return graph.op("Concat", *whole, axis=axis)


def _window_sum(graph: Graph, values: Any, params: Any, _: Any, __: Any) -> str:
    """Add the nodes of sums over windows: ONNX has means of them."""
    sizes, strides = params["window_dimensions"], params["window_strides"]
    first = graph.op("Transpose", values[0], perm=[0, 3, 1, 2])
    mean = graph.op(
        "AveragePool",
        first,
        kernel_shape=list(sizes[1:3]),
        strides=list(strides[1:3]),
        pads=_ends(params["padding"][1:3]),
        count_include_pad=1,
    )
    total = graph.op("Mul", mean, np.float32(math.prod(sizes)))
    return graph.op("Transpose", total, perm=[0, 2, 3, 1])


def _over(kind: str) -> Node:
    def node(graph: Graph, values: Any, params: Any, _: Any, __: Any) -> str:
        axes = np.array([int(axis) for axis in params["axes"]])
        return graph.op(kind, values[0], axes, keepdims=0)

    return node


_NODES: dict[str, Node] = {
    "broadcast_in_dim": _broadcast,
    "concatenate": _join,
    "conv_general_dilated": _convolution,
    "dot_general": _product,
    "erfc": lambda graph, values, *_: graph.op(
        "Sub", np.float32(1.0), graph.op("Erf", values[0])
    ),
    "pad": _pad,
    "reduce_max": _over("ReduceMax"),
    "reduce_sum": _over("ReduceSum"),
    "reduce_window_sum": _window_sum,
    "reshape": _reshape,
    "rsqrt": lambda graph, values, *_: graph.op(
        "Reciprocal", graph.op("Sqrt", values[0])
    ),
    "slice": _slice,
    "square": lambda graph, values, *_: graph.op("Mul", values[0], values[0]),
    "squeeze": _reshape,
    "transpose": lambda graph, values, params, *_: graph.op(
        "Transpose", values[0], perm=[int(axis) for axis in params["permutation"]]
    ),
}


def _sizes(shape: Sizes, *, records: int) -> NDArray[np.int64]:
    """Return a shape, with this in place of the number of records."""
    return np.array([records if size % _N == 0 else size for size in shape], np.int64)


def _ends(pairs: Any) -> list[int]:
    """Return margins as ONNX has them: all that come before, then all after."""
    return [int(pair[end]) for end in (0, 1) for pair in pairs]
