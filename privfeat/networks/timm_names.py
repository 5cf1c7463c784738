"""Tensors of timm's networks by the names, and with the axes, of our own."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from flax import nnx
from numpy.typing import NDArray

from privfeat.networks.models import MobileNetV2, NFResNet, ResNet, ViT

Tensors = Mapping[str, NDArray[np.float32]]
_Pairs = tuple[tuple[str, str], ...]

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
# The convolutions of a block of MobileNetV2, with and without one that expands.
_SEPARABLE: _Pairs = (("conv_dw", "depthwise"), ("conv_pw", "project"))
_INVERTED: _Pairs = (
    ("conv_pw", "expand"),
    ("conv_dw", "depthwise"),
    ("conv_pwl", "project"),
)
_STANDARDIZED_EPSILON = 1e-8  # of BiT
_BATCH_NORM_EPSILON = 1e-5  # of MobileNetV2
_BATCH_NORM = ("weight", "bias", "running_mean", "running_var")


def of_resnet(network: Any, tensors: Tensors) -> dict[str, NDArray[np.float32]]:
    """Return the tensors of ``resnetv2_50x1_bit``, kernels standardized."""
    found = dict(_in_one_list(network, tensors))
    for name, value in found.items():
        if value.ndim == 4 and not name.startswith("head"):
            mean = value.mean(axis=(1, 2, 3), keepdims=True)
            variance = value.var(axis=(1, 2, 3), keepdims=True)
            deviation = np.sqrt(variance + np.float32(_STANDARDIZED_EPSILON))
            found[name] = (value - mean) / deviation
    return _ours(found, _RESNET)


def of_mobilenet(network: Any, tensors: Tensors) -> dict[str, NDArray[np.float32]]:
    """Return the tensors of ``mobilenetv2_100``, batch norm folded into convolutions.

    With its statistics fixed, batch norm maps ``z`` to ``scale (z - mean) + bias``,
    ``scale = weight / sqrt(variance + epsilon)``, and ``z`` is linear in the kernel.
    """
    rest = {n: v for n, v in tensors.items() if not n.endswith("num_batches_tracked")}
    found = {}
    for convolution, norm, ours in _mobilenet_layers(network):
        parts = [f"{convolution}.weight", *(f"{norm}.{part}" for part in _BATCH_NORM)]
        if not rest.keys() >= set(parts):
            continue  # load_timm_weights compares names
        kernel, weight, bias, mean, variance = (
            rest.pop(part).astype(np.float64) for part in parts
        )
        scale = weight / np.sqrt(variance + _BATCH_NORM_EPSILON)
        folded = kernel.transpose(2, 3, 1, 0) * scale
        found[f"{ours}/kernel"] = folded.astype(np.float32)
        found[f"{ours}/bias"] = (bias - mean * scale).astype(np.float32)
    return found | _ours(rest, ((r"^classifier", "head"),))


def _mobilenet_layers(network: Any) -> Iterator[tuple[str, str, str]]:
    """Yield timm's names of every convolution and its norm, and our name."""
    yield "conv_stem", "bn1", "stem"
    number = 0
    for stage, (expansion, _, depth, _) in enumerate(sum(network.stages, ())):
        layers = _SEPARABLE if expansion == 1 else _INVERTED
        for place in range(depth):
            block, own = f"blocks.{stage}.{place}", f"blocks/{number}"
            for order, (theirs, ours) in enumerate(layers, start=1):
                yield f"{block}.{theirs}", f"{block}.bn{order}", f"{own}/{ours}"
            number += 1
    yield "conv_head", "bn2", f"blocks/{number}/conv"


def _in_one_list(network: Any, tensors: Tensors) -> Tensors:
    """Return tensors of the blocks of all stages as those of one list of blocks."""

    def place(found: re.Match[str]) -> str:
        before = sum(network.group_sizes[: int(found[1])])
        return f"blocks.{before + int(found[2])}"

    pattern = re.compile(r"^stages\.(\d+)(?:\.blocks)?\.(\d+)")
    return {pattern.sub(place, name): value for name, value in tensors.items()}


def _ours(tensors: Tensors, rules: Any) -> dict[str, NDArray[np.float32]]:
    """Return tensors of timm by our names, with the axes (height, width, in, out)."""
    found = {}
    for name, value in tensors.items():
        for pattern, ours in rules:
            name = re.sub(pattern, ours, name)
        leaf = "scale" if value.ndim == 1 else "kernel"
        name = re.sub(r"\.weight$", f".{leaf}", name).replace(".", "/")
        if name.endswith("kernel"):
            value = value.transpose(2, 3, 1, 0) if value.ndim == 4 else value.T
        found[name] = value
    return found


CONVERTERS: dict[type[nnx.Module], Callable[..., dict[str, NDArray[np.float32]]]] = {
    MobileNetV2: of_mobilenet,
    # nf_resnet50: the raw kernels, and gains
    NFResNet: lambda network, found: _ours(_in_one_list(network, found), _RESNET),
    ResNet: of_resnet,
    ViT: lambda network, found: _ours(found, _VIT),  # vit_*_patch16_*
}
