"""What a forward pass leaves behind for per-record gradients: inputs and taps.

A layer hands its input ``a`` and its output ``z`` to `record`. Under a `Tape`, ``a`` is
kept and a zero ``tap`` is added to ``z``: the derivative of the losses by all taps, one
backward pass that forms no weight gradient, is the cotangent ``e`` of every layer.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float

_current: ContextVar["Tape | None"] = ContextVar("tape", default=None)


class FastEngineError(ValueError):
    """A network is not made of layers that the fast engine knows."""


class Tape:
    """The layers of one forward pass in the order of use.

    Parameters
    ----------
    model : nnx.Module
        The object that is about to be called.
    taps : mapping of layer name to array, or None
        None records shapes alone; layers without a tap are not recorded.
    """

    def __init__(
        self, model: nnx.Module, taps: Mapping[str, Float[Array, "..."]] | None
    ) -> None:
        self._names = {id(node): join(path) for path, node in nnx.iter_graph(model)}
        self._taps = taps
        self._reused: list[str] = []
        self.layers: dict[str, Any] = {}
        self.inputs: dict[str, Any] = {}
        self.shapes: dict[str, tuple[int, ...]] = {}

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record every layer that is called inside."""
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)

    def add(
        self, layer: nnx.Module, inputs: Any, outputs: Float[Array, "..."]
    ) -> Float[Array, "..."]:
        """Return ``outputs`` with this layer's tap."""
        name = self._names[id(layer)]
        if name in self.layers:
            self._reused.append(name)
        self.layers[name] = layer
        self.shapes[name] = outputs.shape
        if self._taps is None or name not in self._taps:
            return outputs
        self.inputs[name] = widened(inputs)
        return outputs + self._taps[name]

    def check_knows(self, parameters: Iterable[str]) -> None:
        """Raise `FastEngineError` unless each is of a layer that was used once."""
        if self._reused:
            raise FastEngineError(
                "every layer must be used once in a forward pass for engine='fast', "
                f"got {self._reused[0]!r} twice: its gradient is a sum over uses. Pass "
                "engine='reference'."
            )
        for name in parameters:
            if name.rpartition("/")[0] not in self.layers:
                raise FastEngineError(
                    "model must be made of privfeat.networks.layers for engine='fast', "
                    f"got the parameter {name!r} of another layer. Pass "
                    "engine='reference'."
                )


def record(
    layer: nnx.Module, inputs: Any, outputs: Float[Array, "..."]
) -> Float[Array, "..."]:
    """Return ``outputs``, noted on the tape if one is running."""
    tape = _current.get()
    return outputs if tape is None else tape.add(layer, inputs, outputs)


def widened(values: Any) -> Any:
    """Return floats as float32 at least: squares of small half-precision ones are 0."""
    if values is None or not jnp.issubdtype(values.dtype, jnp.floating):
        return values
    return values.astype(jnp.promote_types(values.dtype, jnp.float32))


def join(path: tuple[Any, ...]) -> str:
    """Return the name of a node of a model: its path with slashes."""
    return "/".join(map(str, path))
