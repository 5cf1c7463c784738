"""The layers that networks are made of, so that the fast engine can train them.

A layer keeps its parameters in ``nnx.Param`` attributes, hands its input and its output
to the tape (`basic`), and returns the `contributions` of its parameters: what the
gradient of each is, for every record. Parameters anywhere else make the engine refuse.
"""

from privfeat.networks.layers.basic import Dense, Embed, Layer, Norm, Offset, Scale
from privfeat.networks.layers.convolutions import (
    Conv,
    DepthwiseConv,
    Padding,
    StandardizedConv,
    max_pool,
)

__all__ = [
    "Conv",
    "Dense",
    "DepthwiseConv",
    "Embed",
    "Layer",
    "Norm",
    "Offset",
    "Padding",
    "Scale",
    "StandardizedConv",
    "max_pool",
]
