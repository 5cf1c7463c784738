"""Public pretrained weights of timm for the networks that timm has as well."""

import os
import re
from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np
from flax import nnx
from numpy.typing import NDArray

from privfeat.trainers.networks import ResNet, ViT
from privfeat.trainers.tape import join

Weights = str | os.PathLike[str] | Mapping[str, Any]

_VIT = (
    (r"^cls_token$", "token.value"),
    (r"^pos_embed$", "positions.value"),
    (r"^patch_embed\.proj", "patches"),
    (r"\.attn\.", ".attention."),
    (r"\.mlp\.", "."),
)
_RESNET = (
    (r"^stem\.conv", "stem"),
    (r"\.downsample\.conv", ".shortcut"),
    (r"\.norm(\d)\.", lambda found: f".norms.{int(found[1]) - 1}."),
    (r"\.conv(\d)\.", lambda found: f".convolutions.{int(found[1]) - 1}."),
    (r"^head\.fc", "head"),
)
_STANDARDIZED_EPSILON = 1e-8  # of BiT


def load_timm_weights(network: nnx.Module, weights: Weights) -> nnx.Module:
    """Give a `ViT` or a bottleneck `ResNet` the weights of its twin in timm.

    Parameters
    ----------
    network : ViT or ResNet
        For images of the size that the weights were made for; a ResNet of at least 64
        pixels. Changed.
    weights : path or mapping of name to array
        A ``.safetensors`` file, or a state dict on the CPU: of ``vit_*_patch16_*``
        with a class token, or of ``resnetv2_50x1_bit``. They become public: what they
        were trained on is protected by nothing here.

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
    """
    if not isinstance(network, ViT | ResNet):
        raise TypeError(
            f"network must be a ViT or a ResNet, got {type(network).__name__}: timm "
            "has no such network."
        )
    state = nnx.state(network)
    leaves = {join(path): leaf for path, leaf in nnx.to_flat_state(state)}
    found = {
        _name(network, name, value): np.asarray(value, np.float32)
        for name, value in _read(weights).items()
    }
    head = {"head/kernel", "head/bias"}
    if found.keys() | head != leaves.keys():
        name = min((found.keys() | head) ^ leaves.keys())
        raise ValueError(
            f"weights must be those of a network of this kind and size, got {name!r} "
            "on one side alone."
        )
    for name, leaf in leaves.items():
        shape = leaf[...].shape
        value = _converted(network, name, found[name]) if name in found else None
        if value is not None and value.size == leaf[...].size:
            value = value.reshape(shape)
        if name in head and (value is None or value.shape != shape):
            continue
        if value is None or value.shape != shape:
            raise ValueError(
                f"weights must have the shape {shape} for {name!r}, got another. Pass "
                "images of the size that they were made for."
            )
        leaf[...] = jnp.asarray(value)
    nnx.update(network, state)
    return network


def _read(weights: Weights) -> Mapping[str, Any]:
    if isinstance(weights, Mapping):
        return weights
    from safetensors.numpy import load_file

    tensors: dict[str, NDArray[Any]] = load_file(weights)
    return tensors


def _name(network: ViT | ResNet, name: str, value: Any) -> str:
    """Return our name of a tensor of timm."""
    if isinstance(network, ResNet):
        name = re.sub(
            r"^stages\.(\d+)\.blocks\.(\d+)",
            lambda found: (
                f"blocks.{sum(network.group_sizes[: int(found[1])]) + int(found[2])}"
            ),
            name,
        )
    for pattern, ours in _VIT if isinstance(network, ViT) else _RESNET:
        name = re.sub(pattern, ours, name)
    leaf = "scale" if np.ndim(value) == 1 else "kernel"
    return re.sub(r"\.weight$", f".{leaf}", name).replace(".", "/")


def _converted(
    network: ViT | ResNet, name: str, value: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Return a tensor with its axes in our order: (height, width, in, out)."""
    if not name.endswith("kernel"):
        return value
    if isinstance(network, ResNet) and not name.startswith("head"):
        axes = tuple(range(1, value.ndim))
        mean = value.mean(axis=axes, keepdims=True)
        variance = value.var(axis=axes, keepdims=True)
        value = (value - mean) / np.sqrt(variance + np.float32(_STANDARDIZED_EPSILON))
    return value.transpose(2, 3, 1, 0) if value.ndim == 4 else value.T


def check_weights(weights: Any, model: Any) -> None:
    """Raise TypeError unless these are a path, and the model is made, not given."""
    if weights is None:
        return
    if not isinstance(weights, str | os.PathLike):
        raise TypeError(f"weights must be None or a path, got {weights!r}.")
    if isinstance(model, nnx.Module):
        raise TypeError(
            "weights must be None for a model that is a module, which has its own. "
            "Pass them to load_timm_weights."
        )
