"""The network of an estimator, and public weights that it starts from."""

import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from numpy.typing import NDArray

from privfeat._checks import require
from privfeat.core.noise.keys import KeyStream, key_of
from privfeat.networks.engine.network import Network
from privfeat.networks.layers.basic import by_name
from privfeat.networks.models import NETWORKS, SimpleVGG
from privfeat.networks.models.small import parse_simple_vgg
from privfeat.networks.timm_names import CONVERTERS

Weights = str | os.PathLike[str] | Mapping[str, Any]


def network_of(
    model: Any,
    input_shape: tuple[int, ...],
    n_outputs: int,
    keys: KeyStream | None = None,
    weights: Weights | None = None,
) -> Network:
    """Return the network that a name, a function or a module makes.

    ``keys`` are for the initial parameters; without them these are only placeholders.
    ``weights`` are what they are instead: a path as for `load_timm_weights`, a mapping
    as for `load_parameters`; for no module.
    """
    if isinstance(model, nnx.Module):
        return Network(model)
    rngs = nnx.Rngs(params=key_of(0) if keys is None else keys.draw())
    recipe = None
    if isinstance(model, str):
        module = build(model, input_shape, n_outputs, rngs=rngs)
        recipe = (model, *input_shape, n_outputs)
    else:
        module = model(input_shape, n_outputs, rngs=rngs)
    if weights is not None and keys is not None:
        if isinstance(weights, Mapping):
            module = load_parameters(module, weights)
        else:
            module = load_timm_weights(module, weights)
        recipe = None
    return Network(module, recipe)


def build(
    name: str, input_shape: tuple[int, ...], n_outputs: int, *, rngs: nnx.Rngs
) -> nnx.Module:
    """Return a fresh network for records of ``input_shape``.

    ``name`` is a key of ``NETWORKS``, or ``simpleVGG-...`` (see `SimpleVGG`). A shape
    is (height, width, channels); for ``"mlp"`` any. ``rngs`` has the key of the initial
    parameters as its stream ``params``. ValueError if there is no such network, or it
    does not take records of that shape.
    """
    if name != "mlp" and len(input_shape) != 3:
        raise ValueError(
            f"records must have shape (height, width, channels) for model={name!r}, "
            f"got {input_shape}."
        )
    if name.lower().startswith("simplevgg"):
        make: Callable[..., nnx.Module] = partial(SimpleVGG, **parse_simple_vgg(name))
    elif name in NETWORKS:
        make = NETWORKS[name]
    else:
        raise ValueError(
            f"model must be one of {', '.join(NETWORKS)} or a simpleVGG, got {name!r}."
        )
    with jax.enable_x64(False):  # of float32, whatever the process computes in
        return make(input_shape, n_outputs, rngs=rngs)


def shapes_of(
    name: str, input_shape: tuple[int, ...], n_outputs: int
) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the parameters of `build`, by name; nothing is computed."""
    made = nnx.eval_shape(
        lambda: build(name, input_shape, n_outputs, rngs=nnx.Rngs(params=key_of(0)))
    )
    leaves = by_name(nnx.to_flat_state(nnx.state(made)))
    return {name: tuple(leaf.shape) for name, leaf in leaves.items()}


def load_parameters(network: nnx.Module, weights: Mapping[str, Any]) -> nnx.Module:
    """Give a network the ``parameters_`` of another fit, all but a head of other size.

    ``weights`` are of a network that differs in the number of outputs at most. They
    become public: what they were trained on is protected by nothing here. If that was
    private, it is protected by the statement of that fit, as before. ``network`` is
    changed, and returned; a head of another number of outputs stays fresh. ValueError
    if names or shapes are not those of the network, or a value is not finite.
    """
    state = nnx.state(network)
    leaves = by_name(nnx.to_flat_state(state))
    if weights.keys() != leaves.keys():
        name = min(weights.keys() ^ leaves.keys())
        raise ValueError(
            "weights must be those of a network of this kind and size, got "
            f"{name!r} on one side alone."
        )
    for name, leaf in leaves.items():
        value = np.asarray(weights[name])
        if value.dtype.kind != "f" or not np.all(np.isfinite(value)):
            raise ValueError(f"weights must be finite real numbers, not in {name!r}.")
        if value.shape == leaf[...].shape:
            leaf[...] = jnp.asarray(value, leaf[...].dtype)
        elif not name.startswith(Network(network).head):
            raise ValueError(
                f"weights must have the shape {leaf[...].shape} for {name!r}, got "
                f"{value.shape}. Pass records of the shape that they were made for."
            )
    nnx.update(network, state)
    return network


def load_timm_weights(network: nnx.Module, weights: Weights) -> nnx.Module:
    """Give a network the weights of its twin in timm.

    Parameters
    ----------
    network : ViT, ResNet, NFResNet or MobileNetV2
        A ViT for images of the size that the weights were made for; a ResNet with
        bottlenecks, or an NFResNet, for at least 64 pixels. Changed.
    weights : path or mapping of name to array
        A ``.safetensors`` file, or a state dict on the CPU: of ``vit_*_patch16_*``
        with a class token, ``resnetv2_50x1_bit``, ``nf_resnet50`` or
        ``mobilenetv2_100``. They become public: what they were trained on is protected
        by nothing here.

    Returns
    -------
    network : nnx.Module
        The same. A head of another number of outputs stays fresh.

    Raises
    ------
    TypeError
        If timm has no twin of the network.
    ValueError
        If names or shapes are not those of the network.

    Notes
    -----
    BiT standardizes kernels whenever they are used. Here this is done once, and
    training goes on from the standardized ones; outputs are the same until then.
    Batch norm of MobileNetV2 is folded into kernels and biases, see there.

    Estimators scale bytes as `privfeat.data.networks.KNOWN_NETWORKS` says for the name
    of the model, which suits timm's default weights; for others, or a network without a
    name there, pass floats that are scaled as theirs were.
    """
    converters = [
        convert for kind, convert in CONVERTERS.items() if isinstance(network, kind)
    ]
    if not converters:
        names = ", ".join(kind.__name__ for kind in CONVERTERS)
        raise TypeError(
            f"network must be one of {names}, got {type(network).__name__}: timm has "
            "no such network."
        )
    state = nnx.state(network)
    leaves = by_name(nnx.to_flat_state(state))
    tensors = {n: np.asarray(v, np.float32) for n, v in _read(weights).items()}
    kind_and_size = "weights must be those of a network of this kind and size, got "
    try:
        found = converters[0](network, tensors)
    except (IndexError, ValueError) as error:  # of axes that are not there
        raise ValueError(kind_and_size + "tensors of other shapes.") from error
    head = {"head/kernel", "head/bias"}
    if found.keys() | head != leaves.keys():
        name = min((found.keys() | head) ^ leaves.keys())
        raise ValueError(f"{kind_and_size}{name!r} on one side alone.")
    for name, leaf in leaves.items():
        shape, value = leaf[...].shape, found.get(name)
        if value is not None and value.size == leaf[...].size:
            leaf[...] = jnp.asarray(value.reshape(shape))
        elif name not in head:
            raise ValueError(
                f"weights must have the shape {shape} for {name!r}, got another. Pass "
                "images of the size that they were made for."
            )
    nnx.update(network, state)
    return network


def _read(weights: Weights) -> Mapping[str, Any]:
    """Return weights by their names, read from a file if they are a path."""
    if isinstance(weights, Mapping):
        return weights
    require("a file of weights", "safetensors", extra="train")
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        tensors: dict[str, NDArray[Any]] = load_file(weights)
    except (OSError, SafetensorError) as error:
        raise ValueError(
            f"weights must be a .safetensors file, but {os.fspath(weights)} cannot be "
            f"read as one: {error}."
        ) from error
    return tensors
