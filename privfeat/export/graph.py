"""An ONNX graph that is built node by node."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto

# Of 2023; onnxruntime has it since 1.16, and newer ones keep it.
OPSET, ML_OPSET, IR_VERSION = 18, 3, 9
OUTPUTS = ("label", "probabilities", "scores", "prediction")
FLOAT, INT64, DOUBLE = 1, 7, 11  # of TensorProto


class Graph:
    """Nodes and constants; a value is known by its name."""

    def __init__(self) -> None:
        self._nodes: list[NodeProto] = []
        self._constants: list[TensorProto] = []
        self._inputs: list[ValueInfoProto] = []
        self._outputs: list[ValueInfoProto] = []

    def take(self, name: str, dtype: str, *shape: int) -> str:
        """Return an input of records: of shape (n_samples, *shape).

        ValueError if its name is that of an output, or could be that of a node.
        """
        if not name or name in OUTPUTS or name.startswith("/"):
            raise ValueError(
                f"inputs of a graph must not be named {', '.join(OUTPUTS)}, begin with "
                f"/ or be empty, got {name!r}. Rename the column."
            )
        self._inputs.append(_value(name, dtype, ["n_samples", *shape]))
        return name

    def op(self, kind: str, *values: str | ArrayLike, **attributes: Any) -> str:
        """Return the value of a node; arrays and numbers are constants."""
        return self.ops(kind, *values, n_outputs=1, **attributes)[0]

    def ops(
        self, kind: str, *values: str | ArrayLike, n_outputs: int, **attributes: Any
    ) -> list[str]:
        """Return the values of a node with several."""
        from onnx import helper

        names = [self._named(value) for value in values]
        made = f"/{kind}_{len(self._nodes) + 1}"
        outputs = [f"{made}.{i}" if i else made for i in range(n_outputs)]
        domain = "ai.onnx.ml" if kind == "LabelEncoder" else ""
        self._nodes.append(
            helper.make_node(kind, names, outputs, domain=domain, **attributes)
        )
        return outputs

    def give(self, name: str, value: str, dtype: str, *shape: int) -> None:
        """Make a value an output, of shape (n_samples, *shape)."""
        from onnx import helper

        self._nodes.append(helper.make_node("Identity", [value], [name]))
        self._outputs.append(_value(name, dtype, ["n_samples", *shape]))

    def model(self, about: str, metadata: dict[str, str]) -> "ModelProto":
        """Return a checked model, with what is said beside it."""
        import onnx
        from onnx import helper

        from privfeat._version import __version__

        graph = helper.make_graph(
            self._nodes, "privfeat", self._inputs, self._outputs, self._constants
        )
        versions = [helper.make_opsetid("", OPSET)]
        versions.append(helper.make_opsetid("ai.onnx.ml", ML_OPSET))
        model = helper.make_model(
            graph,
            opset_imports=versions,
            ir_version=IR_VERSION,
            producer_name="privfeat",
            producer_version=__version__,
            doc_string=about,
        )
        helper.set_model_props(model, metadata)
        onnx.checker.check_model(model, full_check=True)
        return model

    def _named(self, value: str | ArrayLike) -> str:
        """Return the name of a value; an array becomes a constant of the graph."""
        from onnx import numpy_helper

        if isinstance(value, str):
            return value
        name = f"/constant_{len(self._constants) + 1}"
        array = np.asarray(value)
        array = array.astype(object) if array.dtype.kind == "U" else array
        self._constants.append(numpy_helper.from_array(array, name))
        return name


def _value(name: str, dtype: str, shape: list[Any]) -> "ValueInfoProto":
    """Return the description of an input or output of the graph."""
    from onnx import TensorProto, helper

    kinds = {
        "float32": TensorProto.FLOAT,
        "float64": TensorProto.DOUBLE,
        "int64": TensorProto.INT64,
        "uint8": TensorProto.UINT8,
        "bool": TensorProto.BOOL,
        "str": TensorProto.STRING,
    }
    return helper.make_tensor_value_info(name, kinds[dtype], shape)
