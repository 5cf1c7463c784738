"""Vision transformers as in timm: pre-norm blocks, a class token, learned positions."""

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float

from privfeat.networks.layers import Conv, Dense, Norm, Offset


class Attention(nnx.Module):
    """Multi-head self-attention within a record."""

    def __init__(self, dim: int, n_heads: int, *, rngs: nnx.Rngs) -> None:
        self.n_heads = n_heads
        self.qkv = Dense(dim, 3 * dim, rngs=rngs)
        self.proj = Dense(dim, dim, rngs=rngs)

    def __call__(self, x: Float[Array, "n t d"]) -> Float[Array, "n t d"]:
        """Return the outputs, of the shape of the inputs."""
        n, length, dim = x.shape
        qkv = self.qkv(x).reshape(n, length, 3, self.n_heads, dim // self.n_heads)
        mixed = jax.nn.dot_product_attention(qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2])
        return self.proj(mixed.reshape(n, length, dim))


class Block(nnx.Module):
    """Attention, then two dense layers, each after a layer norm beside a shortcut."""

    def __init__(self, dim: int, n_heads: int, *, rngs: nnx.Rngs) -> None:
        self.norm1 = Norm(dim, groups=None, epsilon=1e-6)
        self.attention = Attention(dim, n_heads, rngs=rngs)
        self.norm2 = Norm(dim, groups=None, epsilon=1e-6)
        self.fc1 = Dense(dim, 4 * dim, rngs=rngs)
        self.fc2 = Dense(4 * dim, dim, rngs=rngs)

    def __call__(self, x: Float[Array, "n t d"]) -> Float[Array, "n t d"]:
        """Return the outputs, of the shape of the inputs."""
        x = x + self.attention(self.norm1(x))
        hidden = jax.nn.gelu(self.fc1(self.norm2(x)), approximate=False)
        return x + self.fc2(hidden)


class ViT(nnx.Module):
    """Vision transformer (Dosovitskiy et al. 2021), the class token read out."""

    def __init__(
        self,
        image_shape: tuple[int, int, int],
        n_outputs: int,
        *,
        dim: int = 192,
        depth: int = 12,
        n_heads: int = 3,
        patch: int | None = None,
        rngs: nnx.Rngs,
    ) -> None:
        height, width, channels = image_shape
        patch = patch or (16 if min(height, width) >= 64 else 4)
        if height % patch or width % patch:
            raise ValueError(
                f"images must have sides that are multiples of {patch}, got "
                f"{image_shape[:2]}."
            )
        n_tokens = (height // patch) * (width // patch) + 1
        self.dim = dim
        self.patches = Conv(
            channels, dim, patch, stride=patch, padding="VALID", rngs=rngs
        )
        self.token = Offset((1, dim), rngs=rngs)
        self.positions = Offset((n_tokens, dim), rngs=rngs)
        self.blocks = nnx.List(Block(dim, n_heads, rngs=rngs) for _ in range(depth))
        self.group_sizes = tuple((depth + place) // 4 for place in range(4))
        self.norm = Norm(dim, groups=None, epsilon=1e-6)
        self.head = Dense(dim, n_outputs, rngs=rngs)

    def __call__(self, x: Float[Array, "n h w c"]) -> Float[Array, "n m"]:
        """Return the scores."""
        n = x.shape[0]
        tokens = self.patches(x).reshape(n, -1, self.dim)
        first = self.token(jnp.zeros((n, 1, self.dim), tokens.dtype))
        x = self.positions(jnp.concatenate([first, tokens], axis=1))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])
