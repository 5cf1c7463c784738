"""A flax network as a function of named parameters."""

import math
from collections.abc import Hashable, Iterator
from copy import copy
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float

from privfeat._checks import check_int
from privfeat.networks.layers.basic import by_name, name_of

Parameters: TypeAlias = dict[str, Float[Array, "..."]]

_REAL = (jnp.bfloat16, jnp.float16, jnp.float32, jnp.float64)

# Operations that say what they do with a batch, or leave JAX, by words of their names.
# What kernels written by hand keep from one record to the next is not known.
_OF_BATCHES = (
    "custom_vmap",
    "callback",
    "debug",
    "ffi_call",
    "infeed",
    "outfeed",
    "pallas",
    "kernel",
)


class Network:
    """A network taken apart: its structure, and its initial parameters by name.

    ``module``, which is not modified, maps images of shape (n, height, width,
    channels), or rows, to scores of shape (n, n_outputs), every record by itself.
    ``recipe``, hashable, is all that the structure is made by: networks of one recipe
    are equal, as they are one function of parameters, compiled once.

    Names of the ``initial`` parameters are paths with slashes, ``"block/conv/kernel"``.
    ``group_sizes`` are numbers of entries of ``blocks`` that make a group, if the
    module has groups. ``head`` is the beginning of the names of the last layer's
    parameters: ``head_name`` of the module, or ``"head"``, and a slash.

    TypeError if ``module`` is not an ``nnx.Module``, or a parameter is not of real
    numbers, in 16 bits at least: norms are taken of no others. ValueError if it has
    state beside parameters: running averages over a batch mix records, and random state
    would have to be drawn as noise is.
    """

    def __init__(self, module: nnx.Module, recipe: Hashable = None) -> None:
        if not isinstance(module, nnx.Module):
            raise TypeError(
                f"model must be a flax.nnx.Module, got {type(module).__name__}."
            )
        refuse_shared_state(module)
        self.group_sizes: tuple[int, ...] = getattr(module, "group_sizes", ())
        self.head = f"{getattr(module, 'head_name', 'head')}/"
        self._graph, state = nnx.split(module)
        self._leaves = list(nnx.to_flat_state(state))
        leaves = by_name(self._leaves).items()
        self.initial: Parameters = {name: leaf[...] for name, leaf in leaves}
        refuse_other_numbers(self.initial)
        self.recipe = recipe

    def __eq__(self, other: object) -> bool:
        if self.recipe is None or not isinstance(other, Network):
            return self is other
        return self.recipe == other.recipe

    def __hash__(self) -> int:
        return id(self) if self.recipe is None else hash(self.recipe)

    def outline(self) -> "Network":
        """Return the same network with shapes in place of initial parameters."""
        found = copy(self)
        shapes = jax.eval_shape(lambda: self.initial)  # in the order of their names
        found.initial = {name: shapes[name] for name in self.initial}
        found._leaves = [
            (path, variable.replace(found.initial[name]))
            for name, (path, variable) in zip(self.initial, self._leaves, strict=True)
        ]
        return found

    def frozen_names(self, frozen: tuple[str, ...] | int | str) -> frozenset[str]:
        """Return the parameters that stay: by beginnings of names, or by groups.

        A number of groups takes what comes before the blocks as well; 0 takes nothing.
        ``"all_but_head"`` leaves the last layer, ``"all_but_last_block"`` the block and
        the norm before it as well. TypeError or ValueError if ``frozen`` is neither,
        or more than the network has groups, or leaves nothing.
        """
        if isinstance(frozen, str):
            block = (f"blocks/{sum(self.group_sizes) - 1}/", "norm/")
            before = () if frozen == "all_but_head" else block
            if before and not self.group_sizes:
                raise ValueError("frozen='all_but_last_block' needs a model of blocks.")
            moving = (self.head, *before)
            names = {name for name in self.initial if not name.startswith(moving)}
        elif not isinstance(frozen, tuple):
            low, high = 0, len(self.group_sizes)
            n_groups = check_int("frozen", frozen, low=low, high=high)
            kept = sum(self.group_sizes[:n_groups])
            after = [f"blocks/{i}/" for i in range(kept, sum(self.group_sizes))]
            moving = ("norm/", self.head, *after) if n_groups else ("",)
            names = {name for name in self.initial if not name.startswith(moving)}
        else:
            names = {name for name in self.initial if name.startswith(frozen)}
        if len(names) == len(self.initial):
            raise ValueError(f"frozen must leave parameters to train, got {frozen!r}.")
        return frozenset(names)

    def bind(self, parameters: Parameters) -> Any:
        """Return the network with these parameters."""
        leaves = [
            (path, variable.replace(parameters[name]))
            for name, (path, variable) in zip(self.initial, self._leaves, strict=True)
        ]
        return nnx.merge(self._graph, nnx.from_flat_state(leaves))

    def __call__(
        self, parameters: Parameters, inputs: Float[Array, "n ..."]
    ) -> Float[Array, "n m"]:
        """Return the scores of a batch of records."""
        scores: Float[Array, "n m"] = self.bind(parameters)(inputs)
        return scores


def refuse_shared_state(module: nnx.Module) -> None:
    """Raise ValueError, by name, for a layer through which records could touch."""
    nodes = list(nnx.iter_graph(module))
    for path, node in nodes:  # first, since its averages come before it in the graph
        if isinstance(node, nnx.BatchNorm):
            raise ValueError(
                "model must treat every record by itself, got the batch norm "
                f"{name_of(path)!r}. Use GroupNorm or LayerNorm."
            )
    for path, node in nodes:
        if isinstance(node, nnx.Variable) and not isinstance(node, nnx.Param):
            raise ValueError(
                f"model must hold nothing but parameters, got {name_of(path)!r}, a "
                f"{type(node).__name__}. Leave such layers out."
            )


def refuse_other_numbers(parameters: Parameters) -> None:
    """Raise TypeError, by name, for a parameter whose gradient has no norm here.

    Squares of complex numbers cancel, so that a clip would bound nothing.
    """
    for name, leaf in parameters.items():
        if leaf.dtype not in _REAL:
            raise TypeError(
                "model must hold real parameters, of 16 bits or more, got "
                f"{name!r} of {leaf.dtype}. Keep real and imaginary parts in two."
            )


def check_scores(network: Network, inputs: Any, n_outputs: int) -> None:
    """Raise ValueError unless a network makes one score of a record for each output.

    Of one record and of two: nothing is computed. ``inputs`` has length 1.
    """
    for n_records in (1, 2):
        batch = jnp.repeat(jnp.asarray(inputs), n_records, axis=0)
        scores = jax.eval_shape(network, network.initial, batch)
        shape = getattr(scores, "shape", type(scores).__name__)
        if shape != (n_records, n_outputs):
            raise ValueError(
                f"model must return scores of shape (n_records, {n_outputs}), got "
                f"{shape} for {n_records} of them. Keep the axis of records first, and "
                "that of outputs also where it is one."
            )


def check_separate(network: Network, input_shape: tuple[int, ...]) -> None:
    """Raise ValueError if a network that is not ours could mix the records of a batch.

    - Of a call with one record, ``jax.vmap`` makes one with many, in which no operation
      sees two records, but for those that say themselves what they do with a batch, and
      those that leave JAX. They are refused, in the forward and the backward pass: what
      is left may be trained and used under ``vmap``, whatever it does to batches.
    - A trial on records that are not of the data, one of them not a number, shows what
      a mean, a maximum or a sort over records passes on. It is no proof.
    """
    record = jnp.sin(jnp.arange(1.0, 1.0 + math.prod(input_shape))).reshape(input_shape)

    def total(parameters: Parameters) -> Float[Array, ""]:
        return jnp.sum(network(parameters, record[None]))

    for traced in (total, jax.grad(total)):
        for primitive in _primitives(jax.make_jaxpr(traced)(network.initial)):
            if any(word in primitive for word in _OF_BATCHES):
                raise ValueError(
                    "model must be made of operations on one record, got one that may "
                    f"see a whole batch, {primitive!r}. Leave it out."
                )
    others = (-2.0 * record, jnp.full(input_shape, jnp.nan))
    forward = jax.jit(network.__call__)
    first, second = (
        forward(network.initial, jnp.stack([record, other]))[0] for other in others
    )
    if not jnp.array_equal(first, second):
        raise ValueError(
            "model must treat every record by itself, but the scores of one moved when "
            "another changed. Leave out what is computed over the first axis."
        )


def _primitives(traced: Any) -> Iterator[str]:
    """Yield the names of all operations of a traced function, inner ones included."""
    for equation in getattr(traced, "jaxpr", traced).eqns:
        yield equation.primitive.name
        for value in equation.params.values():
            for inner in value if isinstance(value, list | tuple) else (value,):
                if hasattr(getattr(inner, "jaxpr", inner), "eqns"):
                    yield from _primitives(inner)
