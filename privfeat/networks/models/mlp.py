"""A multilayer perceptron."""

import math
from itertools import pairwise

import jax
from flax import nnx
from jaxtyping import Array, Float

from privfeat.networks.layers import Dense


class MLP(nnx.Module):
    """Dense layers with ReLU between them, four by default, on flattened records."""

    def __init__(
        self,
        input_shape: tuple[int, ...],
        n_outputs: int,
        *,
        widths: tuple[int, ...] = (128, 128, 128),
        rngs: nnx.Rngs,
    ) -> None:
        sizes = (math.prod(input_shape), *widths, n_outputs)
        self.layers = nnx.List(
            Dense(before, after, rngs=rngs) for before, after in pairwise(sizes)
        )

    @property
    def head_name(self) -> str:
        """The name of the last layer, which the other networks call ``head``."""
        return f"layers/{len(self.layers) - 1}"

    def __call__(self, x: Float[Array, "n ..."]) -> Float[Array, "n m"]:
        """Return the scores."""
        x = x.reshape(x.shape[0], -1)
        *hidden, head = self.layers
        for layer in hidden:
            x = jax.nn.relu(layer(x))
        return head(x)
