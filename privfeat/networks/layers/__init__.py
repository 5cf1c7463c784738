"""The layers that networks are made of, so that the fast engine can train them.

A layer keeps its parameters in ``nnx.Param`` attributes, shows `tape` its input and its
output, and has a method that returns `contributions`: what every parameter's gradient
is, for each record.
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
