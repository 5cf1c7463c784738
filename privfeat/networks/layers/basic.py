"""The tape, and the layers beside convolutions.

A layer hands an input ``a`` and its output ``z`` to `record`. Under a `Tape`, ``a`` is
kept and a zero ``tap`` is added to ``z``: the derivative of the losses by all taps, one
backward pass that forms no weight gradient, is the cotangent ``e`` of every layer. From
``a`` and ``e`` a layer makes the contributions of its parameters.
"""

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, Int

from privfeat.networks.layers import contributions
from privfeat.networks.layers.contributions import Contribution, by_record, kept

Contributions: TypeAlias = dict[str, Contribution]

kernel_init = nnx.initializers.lecun_uniform()
_current: ContextVar["Tape | None"] = ContextVar("tape", default=None)


class FastEngineError(ValueError):
    """A network is not made of layers that the fast engine knows."""


class Tape:
    """The layers of one forward pass of ``model``, which is about to be called.

    Of each layer, by its name, in the order of use: the layer itself, what it was
    given, if it has one of the ``taps``, and the shape of its output. ``inputs`` are
    sensitive.
    """

    def __init__(
        self, model: nnx.Module, taps: Mapping[str, Float[Array, "..."]]
    ) -> None:
        nodes = by_name(nnx.iter_graph(model))
        self._names = {id(node): name for name, node in nodes.items()}
        self._taps = taps
        self._reused: list[str] = []
        self.layers: dict[str, Any] = {}
        self.inputs: dict[str, Any] = {}
        self.shapes: dict[str, tuple[int, ...]] = {}

    def add(
        self, layer: nnx.Module, inputs: Any, outputs: Float[Array, "..."]
    ) -> Float[Array, "..."]:
        """Return ``outputs`` with this layer's tap."""
        name = self._names[id(layer)]
        if name in self.layers:
            self._reused.append(name)
        self.layers[name] = layer
        self.shapes[name] = outputs.shape
        if name not in self._taps:
            return outputs
        self.inputs[name] = inputs
        return outputs + self._taps[name]

    def contributions(
        self, inputs: Mapping[str, Any], cotangents: Mapping[str, Any], n_records: int
    ) -> Contributions:
        """Return the contribution of every parameter of the layers with a tap."""
        a, e = by_record((inputs, cotangents), n_records)
        found: Contributions = {}
        for name in cotangents:
            own = self.layers[name].contributions(a[name], e[name])
            # a network that is a single layer has no name before its parameters
            prefix = f"{name}/" if name else ""
            found |= {prefix + leaf: value for leaf, value in own.items()}
        return found

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


def recorded(
    model: nnx.Module, inputs: Any, taps: Mapping[str, Float[Array, "..."]]
) -> tuple[Any, Tape]:
    """Return the scores of a batch, and the tape of the layers that were called."""
    tape = Tape(model, taps)
    token = _current.set(tape)
    try:
        return model(inputs), tape
    finally:
        _current.reset(token)


def record(
    layer: nnx.Module, inputs: Any, outputs: Float[Array, "..."]
) -> Float[Array, "..."]:
    """Return ``outputs``, noted on the tape if one is running."""
    tape = _current.get()
    return outputs if tape is None else tape.add(layer, inputs, outputs)


class Layer(nnx.Module):
    """A layer that the fast engine knows."""

    @abstractmethod
    def contributions(self, a: Any, e: Float[Array, "n ..."]) -> Contributions:
        """Return the contribution of every parameter, by attribute name.

        ``a`` and ``e`` have axes for records, and for the augmented copies of a record,
        before those that the layer sees.
        """


class Dense(Layer):
    """``x kernel + bias`` on the last axis."""

    def __init__(
        self, n_inputs: int, n_outputs: int, *, use_bias: bool = True, rngs: nnx.Rngs
    ) -> None:
        self.kernel = nnx.Param(kernel_init(rngs.params(), (n_inputs, n_outputs)))
        self.bias = nnx.Param(jnp.zeros(n_outputs)) if use_bias else nnx.data(None)

    def __call__(self, x: Float[Array, "n ... d"]) -> Float[Array, "n ... o"]:
        """Return the outputs."""
        outputs = x @ self.kernel[...]
        if self.bias is not None:
            outputs = outputs + along_last(self.bias[...], outputs.ndim)
        return record(self, x, outputs)

    def contributions(self, a: Any, e: Float[Array, "n ..."]) -> Contributions:
        """Return the contributions of kernel and bias."""
        errors = positions(e)
        found = {"kernel": contributions.dense(positions(a), errors)}
        if self.bias is not None:
            found["bias"] = kept(jnp.sum(errors, axis=1))
        return found


class Norm(Layer):
    """Normalization of one record's values, then a scale and a bias per channel.

    Of ``groups`` of channels, each together with all positions (GroupNorm), or None:
    every position by itself (LayerNorm).
    """

    def __init__(
        self, n_channels: int, *, groups: int | None, epsilon: float = 1e-5
    ) -> None:
        if groups is not None and n_channels % groups:
            raise ValueError(
                f"groups must divide the {n_channels} channels, got {groups!r}."
            )
        self.scale = nnx.Param(jnp.ones(n_channels))
        self.bias = nnx.Param(jnp.zeros(n_channels))
        self.groups = groups
        self.epsilon = epsilon

    def __call__(self, x: Float[Array, "n ... c"]) -> Float[Array, "n ... c"]:
        """Return the outputs, of the shape of the inputs."""
        blocks, axes = x, [x.ndim - 1]
        if self.groups is not None:
            blocks = x.reshape(len(x), -1, self.groups, x.shape[-1] // self.groups)
            axes = [1, 3]
        mean = jnp.mean(blocks, axis=tuple(axes), keepdims=True)
        variance = jnp.mean(jnp.square(blocks - mean), axis=tuple(axes), keepdims=True)
        normal = (blocks - mean) * jax.lax.rsqrt(variance + self.epsilon)
        normal = normal.reshape(x.shape)
        outputs = normal * along_last(self.scale[...], x.ndim)
        outputs = outputs + along_last(self.bias[...], x.ndim)
        return record(self, normal, outputs)

    def contributions(self, a: Any, e: Float[Array, "n ..."]) -> Contributions:
        """Return the contributions of scale and bias."""
        return {
            "scale": kept(jnp.sum(positions(a * e), axis=1)),
            "bias": kept(jnp.sum(positions(e), axis=1)),
        }


class Offset(Layer):
    """``x + value``: a position embedding; of zeros, a class token."""

    def __init__(self, shape: tuple[int, ...], *, rngs: nnx.Rngs) -> None:
        init = nnx.initializers.truncated_normal(0.02)
        self.value = nnx.Param(init(rngs.params(), shape))

    def __call__(self, x: Float[Array, "n ..."]) -> Float[Array, "n ..."]:
        """Return the outputs, of the shape of the inputs."""
        return record(self, None, x + self.value[...][None])

    def contributions(self, a: Any, e: Float[Array, "n ..."]) -> Contributions:
        """Return the contribution of the value: the cotangents themselves."""
        return {"value": kept(jnp.sum(e, axis=1))}


class Scale(Layer):
    """``x`` times one number per channel, or one number for all."""

    def __init__(self, n_channels: int, *, initial: float = 1.0) -> None:
        self.value = nnx.Param(jnp.full(n_channels, initial))

    def __call__(self, x: Float[Array, "n ... c"]) -> Float[Array, "n ... c"]:
        """Return the outputs, of the shape of the inputs."""
        return record(self, x, x * along_last(self.value[...], x.ndim))

    def contributions(self, a: Any, e: Float[Array, "n ..."]) -> Contributions:
        """Return the contribution of the value."""
        sums = jnp.sum(positions(a * e), axis=1)
        if self.value.shape[0] == 1:
            sums = jnp.sum(sums, axis=1, keepdims=True)
        return {"value": kept(sums)}


class Embed(Layer):
    """A table of vectors, looked up by whole numbers."""

    def __init__(self, n_rows: int, n_outputs: int, *, rngs: nnx.Rngs) -> None:
        init = nnx.initializers.truncated_normal(0.02)
        self.table = nnx.Param(init(rngs.params(), (n_rows, n_outputs)))

    def __call__(self, ids: Int[Array, "n t"]) -> Float[Array, "n t o"]:
        """Return the rows of the table."""
        return record(self, ids, self.table[...][ids])

    def contributions(self, a: Any, e: Float[Array, "n ..."]) -> Contributions:
        """Return the contribution of the table."""
        ids, n_rows = a.reshape(len(a), -1), self.table.shape[0]
        return {"table": contributions.lookup(ids, positions(e), n_rows)}


def by_name(nodes: Iterable[tuple[Any, Any]]) -> dict[str, Any]:
    """Return the nodes of a model by name."""
    return {name_of(path): node for path, node in nodes}


def name_of(path: Iterable[Any]) -> str:
    """Return the name of a node of a model: its path with slashes."""
    return "/".join(map(str, path))


def along_last(values: Float[Array, " c"], ndim: int) -> Float[Array, "..."]:
    """Return ``values`` with ``ndim`` axes, of which the last is theirs."""
    return values.reshape((1,) * (ndim - 1) + (-1,))


def positions(values: Float[Array, "n ... d"]) -> Float[Array, "n t d"]:
    """Return values with one axis for all copies and positions of a record."""
    return values.reshape(len(values), -1, values.shape[-1])
