"""Layers whose per-record gradients have a closed form; the bricks of `networks`.

A layer keeps its parameters in ``nnx.Param`` attributes, passes its output through
`tape.record`, and says in ``contributions`` what every parameter's gradient is, given
the recorded input and the cotangent of the output. A network made of these alone can be
trained by the fast engine; parameters anywhere else make it refuse.
"""

import functools
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Literal

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, Int

from privfeat.networks import contributions
from privfeat.networks.contributions import Contribution, kept
from privfeat.networks.tape import record

_DIMENSIONS = ("NHWC", "HWIO", "NHWC")
kernel_init = nnx.initializers.lecun_uniform()

Padding = Literal["SAME", "VALID"] | Sequence[tuple[int, int]]


class Layer(nnx.Module):
    """A layer that the fast engine knows."""

    @abstractmethod
    def contributions(
        self, inputs: Any, cotangents: Float[Array, "..."], n_records: int
    ) -> dict[str, Contribution]:
        """Return the contribution of every parameter, by attribute name.

        ``inputs`` and ``cotangents`` have ``n_records`` times the number of augmented
        copies slices, the copies of a record side by side.
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

    def contributions(
        self, inputs: Any, cotangents: Float[Array, "..."], n_records: int
    ) -> dict[str, Contribution]:
        """Return the contributions of kernel and bias."""
        a = inputs.reshape(n_records, -1, inputs.shape[-1])
        e = cotangents.reshape(n_records, -1, cotangents.shape[-1])
        found = {"kernel": contributions.dense(a, e)}
        if self.bias is not None:
            found["bias"] = kept(jnp.sum(e, axis=1))
        return found


class Conv(Layer):
    """Two-dimensional convolution of images with the channels last."""

    def __init__(
        self,
        n_inputs: int,
        n_outputs: int,
        size: int,
        *,
        stride: int = 1,
        padding: Padding = "SAME",
        use_bias: bool = True,
        rngs: nnx.Rngs,
    ) -> None:
        shape = (size, size, n_inputs, n_outputs)
        self.kernel = nnx.Param(kernel_init(rngs.params(), shape))
        self.bias = nnx.Param(jnp.zeros(n_outputs)) if use_bias else nnx.data(None)
        self.stride = stride
        self.padding = padding if isinstance(padding, str) else tuple(padding)

    def __call__(self, x: Float[Array, "n h w c"]) -> Float[Array, "n i j o"]:
        """Return the outputs."""
        outputs = self._convolve(x, self._used_kernel())
        if self.bias is not None:
            outputs = outputs + along_last(self.bias[...], outputs.ndim)
        return record(self, x, outputs)

    def _used_kernel(self) -> Float[Array, "p q c o"]:
        kernel: Float[Array, "p q c o"] = self.kernel[...]
        return kernel

    def _convolve(
        self, x: Float[Array, "n h w c"], kernel: Float[Array, "p q c o"]
    ) -> Float[Array, "n i j o"]:
        if kernel.shape[:2] == (1, 1):  # a product takes half as long
            (seen,) = shifted(x, 1, self.stride, self.padding)
            return seen @ kernel[0, 0]
        return jax.lax.conv_general_dilated(
            x,
            kernel,
            (self.stride, self.stride),
            self.padding,
            dimension_numbers=_DIMENSIONS,
        )

    def _patches(self, x: Float[Array, "n h w c"]) -> Float[Array, "n i j d"]:
        seen = shifted(x, self.kernel.shape[0], self.stride, self.padding)
        return jnp.concatenate(seen, axis=3)

    def contributions(
        self, inputs: Any, cotangents: Float[Array, "..."], n_records: int
    ) -> dict[str, Contribution]:
        """Return the contributions of kernel and bias."""
        a = inputs.reshape(n_records, -1, *inputs.shape[1:])
        e = cotangents.reshape(n_records, -1, *cotangents.shape[1:])
        found = self._of_kernel(a, e)
        if self.bias is not None:
            found["bias"] = kept(jnp.sum(e, axis=(1, 2, 3)))
        return found

    def _of_kernel(
        self, a: Float[Array, "n k h w c"], e: Float[Array, "n k i j o"]
    ) -> dict[str, Contribution]:
        if self.kernel.shape[:2] == (1, 1):
            columns = self._patches(a.reshape(-1, *a.shape[2:]))
            found = contributions.dense(
                columns.reshape(len(a), -1, columns.shape[3]),
                e.reshape(len(a), -1, e.shape[4]),
            ).reshaped(self.kernel.shape)
            return {"kernel": found}
        found = contributions.convolution(
            a, e, self._convolve, self._patches, self.kernel.shape
        )
        return {"kernel": found}


class Norm(Layer):
    """Normalization of one record's values, then a scale and a bias per channel.

    Parameters
    ----------
    n_channels : int
    groups : int or None
        Groups of channels that are normalized together with all positions (GroupNorm),
        or None: every position by itself (LayerNorm).
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
        if self.groups is None:
            blocks = x
            axes: tuple[int, ...] = (x.ndim - 1,)
        else:
            size = x.shape[-1] // self.groups
            blocks = x.reshape(x.shape[0], -1, self.groups, size)
            axes = (1, 3)
        mean = jnp.mean(blocks, axis=axes, keepdims=True)
        variance = jnp.mean(jnp.square(blocks - mean), axis=axes, keepdims=True)
        normal = (blocks - mean) * jax.lax.rsqrt(variance + self.epsilon)
        normal = normal.reshape(x.shape)
        outputs = normal * along_last(self.scale[...], x.ndim)
        outputs = outputs + along_last(self.bias[...], x.ndim)
        return record(self, normal, outputs)

    def contributions(
        self, inputs: Any, cotangents: Float[Array, "..."], n_records: int
    ) -> dict[str, Contribution]:
        """Return the contributions of scale and bias."""
        shape = (n_records, -1, cotangents.shape[-1])
        e = cotangents.reshape(shape)
        products = e * inputs.reshape(shape)
        return {
            "scale": kept(jnp.sum(products, axis=1)),
            "bias": kept(jnp.sum(e, axis=1)),
        }


class Offset(Layer):
    """``x + value``: a position embedding; of zeros, a class token."""

    def __init__(self, shape: tuple[int, ...], *, rngs: nnx.Rngs) -> None:
        init = nnx.initializers.truncated_normal(0.02)
        self.value = nnx.Param(init(rngs.params(), shape))

    def __call__(self, x: Float[Array, "n ..."]) -> Float[Array, "n ..."]:
        """Return the outputs, of the shape of the inputs."""
        return record(self, None, x + self.value[...][None])

    def contributions(
        self, inputs: Any, cotangents: Float[Array, "..."], n_records: int
    ) -> dict[str, Contribution]:
        """Return the contribution of the value: the cotangents themselves."""
        e = cotangents.reshape(n_records, -1, *cotangents.shape[1:])
        return {"value": kept(jnp.sum(e, axis=1))}


class Scale(Layer):
    """``x`` times one number per channel, or one number for all."""

    def __init__(self, n_channels: int, *, initial: float = 1.0) -> None:
        self.value = nnx.Param(jnp.full(n_channels, initial))

    def __call__(self, x: Float[Array, "n ... c"]) -> Float[Array, "n ... c"]:
        """Return the outputs, of the shape of the inputs."""
        return record(self, x, x * along_last(self.value[...], x.ndim))

    def contributions(
        self, inputs: Any, cotangents: Float[Array, "..."], n_records: int
    ) -> dict[str, Contribution]:
        """Return the contribution of the value."""
        n_values = self.value.shape[0]
        products = (inputs * cotangents).reshape(n_records, -1, cotangents.shape[-1])
        sums = jnp.sum(products, axis=1)
        if n_values == 1:
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

    def contributions(
        self, inputs: Any, cotangents: Float[Array, "..."], n_records: int
    ) -> dict[str, Contribution]:
        """Return the contribution of the table."""
        ids = inputs.reshape(n_records, -1)
        e = cotangents.reshape(n_records, -1, cotangents.shape[-1])
        return {"table": contributions.lookup(ids, e, self.table.shape[0])}


def along_last(values: Float[Array, " c"], ndim: int) -> Float[Array, "..."]:
    """Return ``values`` with ``ndim`` axes, of which the last is theirs."""
    return values.reshape((1,) * (ndim - 1) + (-1,))


def shifted(
    x: Float[Array, "n h w c"], size: int, stride: int, padding: Padding
) -> list[Float[Array, "n i j c"]]:
    """Return what every tap of a kernel of ``size`` by ``size`` sees of the images.

    Slices: the grouped convolution that is JAX's way to patches takes four times as
    long on a CPU.
    """
    if isinstance(padding, str):
        sizes, strides = (size, size), (stride, stride)
        padding = jax.lax.padtype_to_pads(x.shape[1:3], sizes, strides, padding)
    x = jnp.pad(x, ((0, 0), *padding, (0, 0)))
    height, width = ((side - size) // stride * stride + 1 for side in x.shape[1:3])
    return [
        x[:, top : top + height : stride, left : left + width : stride]
        for top in range(size)
        for left in range(size)
    ]


def max_pool(
    x: Float[Array, "n h w c"], size: int, *, stride: int | None = None
) -> Float[Array, "n i j c"]:
    """Return the largest value of every window that is whole.

    By slices: the way back through JAX's own windows takes ten times as long on a CPU.
    """
    return functools.reduce(jnp.maximum, shifted(x, size, stride or size, "VALID"))
