"""Convolutions: plain, one kernel per channel, and with standardized kernels."""

import functools
import math
from collections.abc import Sequence
from typing import Any, Literal

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float

from privfeat.networks.layers import contributions
from privfeat.networks.layers.basic import (
    Contributions,
    Layer,
    along_last,
    kernel_init,
    positions,
    record,
)
from privfeat.networks.layers.contributions import kept

_DIMENSIONS = ("NHWC", "HWIO", "NHWC")

Padding = Literal["SAME", "VALID"] | Sequence[tuple[int, int]]


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

    def contributions(self, a: Any, e: Float[Array, "n ..."]) -> Contributions:
        """Return the contributions of the kernel, what it is made of, and the bias."""
        found = self._of_kernel(a, e)
        if self.bias is not None:
            found["bias"] = kept(jnp.sum(positions(e), axis=1))
        return found

    def _used_kernel(self) -> Float[Array, "p q c o"]:
        kernel: Float[Array, "p q c o"] = self.kernel[...]
        return kernel

    def _convolve(
        self, x: Float[Array, "n h w c"], kernel: Float[Array, "p q c o"]
    ) -> Float[Array, "n i j o"]:
        """Return the outputs of a convolution, of shape (n, i, j, o)."""
        if kernel.shape[:2] == (1, 1):  # a product takes half as long
            return self._patches(x) @ kernel[0, 0]
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

    def _of_kernel(
        self, a: Float[Array, "n k h w c"], e: Float[Array, "n k i j o"]
    ) -> Contributions:
        """Return what the kernel contributes: ``a`` are inputs, ``e`` cotangents."""
        n, shape = len(a), self.kernel.shape
        columns = self._patches(a.reshape(-1, *a.shape[2:]))
        columns, errors = columns.reshape(n, -1, math.prod(shape[:3])), positions(e)

        if shape[:2] == (1, 1) or not contributions.keeping_is_cheaper(
            columns.shape[1], columns.shape[2], shape[3]
        ):
            flat = contributions.dense(columns, errors)
            found = flat._replace(
                weighted_sum=lambda *given: flat.weighted_sum(*given).reshape(shape)
            )
        elif shape[2] == 1:  # convolutions are slow on one channel: half the time
            formed = jnp.einsum("nti,nto->nio", columns, errors)
            found = kept(formed.reshape(n, *shape))
        else:
            each = self._kernel_gradients(a, e)
            listed = isinstance(each, list)
            found = contributions.kept_list(each) if listed else kept(each)
        return {"kernel": found}

    def _kernel_gradients(
        self, a: Float[Array, "n k h w c"], e: Float[Array, "n k i j o"]
    ) -> Any:
        """Return every record's gradient of the kernel that images are convolved with.

        By one convolution per record: grouped convolutions, which a ``vmap`` makes of
        them, are several times slower on a CPU, and materialized patches are too.
        """
        if jax.default_backend() != "cpu":
            return jax.vmap(self._kernel_gradient)(a, e)
        return [self._kernel_gradient(*one) for one in zip(a, e, strict=True)]

    def _kernel_gradient(
        self, inputs: Float[Array, "b h w c"], cotangents: Float[Array, "b i j o"]
    ) -> Float[Array, "p q c o"]:
        zero = jnp.zeros(self.kernel.shape, inputs.dtype)
        _, pull_back = jax.vjp(functools.partial(self._convolve, inputs), zero)
        gradient: Float[Array, "p q c o"] = pull_back(cotangents)[0]
        return gradient


class DepthwiseConv(Conv):
    """One kernel for each channel, without sums over channels.

    A sum of shifted images, each times its tap of the kernel: on a CPU ten to thirty
    times faster than a grouped convolution. The gradient of the kernel is small enough
    to be formed for every record.
    """

    def __init__(
        self,
        n_channels: int,
        size: int,
        *,
        stride: int = 1,
        padding: Padding = "SAME",
        rngs: nnx.Rngs,
    ) -> None:
        super().__init__(1, n_channels, size, stride=stride, padding=padding, rngs=rngs)

    def _convolve(
        self, x: Float[Array, "n h w c"], kernel: Float[Array, "p q 1 c"]
    ) -> Float[Array, "n i j c"]:
        taps = kernel.reshape(-1, x.shape[3])
        seen = shifted(x, len(kernel), self.stride, self.padding)
        products = [v * along_last(tap, 4) for v, tap in zip(seen, taps, strict=True)]
        return functools.reduce(jnp.add, products)

    def _of_kernel(
        self, a: Float[Array, "n k h w c"], e: Float[Array, "n k i j c"]
    ) -> Contributions:
        n, size, _, _, n_channels = len(a), *self.kernel.shape
        seen = shifted(a.reshape(-1, *a.shape[2:]), size, self.stride, self.padding)
        errors = e.reshape(-1, *e.shape[2:])
        taps = [jnp.sum((x * errors).reshape(n, -1, n_channels), axis=1) for x in seen]
        return {"kernel": kept(jnp.stack(taps, axis=1).reshape(n, *self.kernel.shape))}


class StandardizedConv(Conv):
    """Convolution by ``scale gain (kernel - mean) / sqrt(variance + epsilon)``.

    Mean and variance are those of an output channel's part of the kernel, ``scale`` is
    ``gamma / sqrt(fan-in)``: inputs of variance 1 / gamma^2 give outputs of variance 1.
    So ``gamma`` belongs to the activation before the layer. Scaled weight
    standardization of Brock et al. 2021 (arXiv:2101.08692, section 4).
    """

    def __init__(
        self,
        n_inputs: int,
        n_outputs: int,
        size: int,
        *,
        stride: int = 1,
        padding: Padding = "SAME",
        gamma: float = 1.0,
        initial_gain: float = 1.0,
        epsilon: float = 1e-5,
        rngs: nnx.Rngs,
    ) -> None:
        super().__init__(
            n_inputs, n_outputs, size, stride=stride, padding=padding, rngs=rngs
        )
        self.gain = nnx.Param(jnp.full(n_outputs, initial_gain))
        self.scale = gamma * (size * size * n_inputs) ** -0.5
        self.epsilon = epsilon

    def standardized(
        self, kernel: Float[Array, "p q c o"], gain: Float[Array, " o"]
    ) -> Float[Array, "p q c o"]:
        """Return the kernel that images are convolved with."""
        mean = jnp.mean(kernel, axis=(0, 1, 2), keepdims=True)
        variance = jnp.mean(jnp.square(kernel - mean), axis=(0, 1, 2), keepdims=True)
        factors = along_last(self.scale * gain, 4)
        return (kernel - mean) * (jax.lax.rsqrt(variance + self.epsilon) * factors)

    def _used_kernel(self) -> Float[Array, "p q c o"]:
        return self.standardized(self.kernel[...], self.gain[...])

    def _of_kernel(
        self, a: Float[Array, "n k h w c"], e: Float[Array, "n k i j o"]
    ) -> Contributions:
        """Return the contributions of kernel and gain.

        The standardized kernel is the same function of kernel and gain for all records:
        a record's gradients of both are its transposed Jacobian times the record's
        gradient of the standardized kernel. The norm of that one does not bound them,
        so all are formed.
        """
        gradients = self._kernel_gradients(a, e)
        _, pull_back = jax.vjp(self.standardized, self.kernel[...], self.gain[...])
        of_kernel, of_gain = jax.vmap(pull_back)(jnp.stack(gradients))
        return {"kernel": kept(of_kernel), "gain": kept(of_gain)}


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
