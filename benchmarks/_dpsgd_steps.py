"""One step of DP-SGD by one of our engines, for ``dpsgd_speed.py``."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from privfeat.core.noise import draws
from privfeat.core.sums.batches import BatchTotal
from privfeat.networks.engine.clipped_sums import clipped_sum, record_parts
from privfeat.networks.engine.losses import cross_entropy
from privfeat.networks.engine.network import Network
from privfeat.networks.training.loop import flatten
from privfeat.networks.weights import build


def make_step(
    name: str,
    shape: tuple[int, int, int],
    batch: int,
    part: int,
    engine: str,
    copies: int = 1,
) -> tuple[Callable[[], None], float]:
    """Return a function that computes one gradient, and the megabytes it needs.

    ``copies`` are the views of a record. Noise is included if private. Memory is what
    the compiler reserves for arguments, results and intermediate values of one call.
    """
    rngs = nnx.Rngs(params=jax.random.key(0))
    network = Network(build(name, shape, 10, rngs=rngs))
    draw = np.random.default_rng(0)
    inputs = jnp.asarray(draw.normal(size=(batch, copies, *shape)), jnp.float32)
    labels = jnp.asarray(draw.integers(0, 10, batch))
    names = tuple(network.initial)
    private = engine in ("fast", "reference")
    size = batch if engine == "non-private" else part
    if private:
        parts = record_parts(network, cross_entropy, "flat", engine, names)
        summed = clipped_sum(parts)
    else:
        summed = jax.jit(partial(plain_sum, network))
    more = (jnp.ones(size, bool), jnp.float32(1.0)) if private else ()
    first = (network.initial, inputs[:size], labels[:size], *more)
    # as in training: some accelerators round factors to 10 bits
    with jax.default_matmul_precision("highest"):
        compiled = summed.lower(*first).compile()
    use = compiled.memory_analysis()
    needed = (
        use.argument_size_in_bytes + use.output_size_in_bytes + use.temp_size_in_bytes
    )

    def step() -> None:
        n_entries = sum(leaf.size for leaf in network.initial.values())
        total = BatchTotal(True, n_entries, size, 1.0)
        for start in range(0, batch, size):
            rows = slice(start, start + size)
            found = compiled(network.initial, inputs[rows], labels[rows], *more)
            if private:
                total.add(flatten(found, names))
            else:
                jax.block_until_ready(found)
        if private:
            noise = draws.gaussian(np.arange(4, dtype=np.uint64), (n_entries,), 1.0)
            noise += total.sum().value

    return step, needed / 2**20


def plain_sum(network: Network, parameters: Any, inputs: Any, labels: Any) -> Any:
    """Return the gradient of the summed losses of all copies."""
    images = inputs.reshape(-1, *inputs.shape[2:])
    targets = jnp.repeat(labels, inputs.shape[1])

    def loss(parameters: Any) -> Any:
        return jnp.sum(cross_entropy(network(parameters, images), targets))

    return jax.grad(loss)(parameters)
