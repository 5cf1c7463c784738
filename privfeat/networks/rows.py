"""Whether the layers of a network see records as the fast engine takes them to."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from privfeat.networks.engine import FastEngineError, RecordLoss, dry_run, record_parts
from privfeat.networks.model import Network


def check_rows(network: Network, loss: RecordLoss, inputs: Any, targets: Any) -> None:
    """Raise `FastEngineError` unless layers see the rows of a record side by side.

    The fast engine takes the first rows that a layer sees for those of the first
    record, and so on. A network may keep records apart and still show them in another
    order, views or positions first, or show a table that belongs to them all: then
    norms are of parts of several records, and bound the gradient of none.

    A trial on two records that are not of the data, with parameters that are not zero:
    the norms of the first record must not move with the second, which is not a number
    once. And the gradients of both must add up to what differentiation finds: a
    parameter that is used outside of its layer as well, or by two, has a part there
    that no layer knows of. Nor may the norm that a layer states of a gradient be below
    that of what it sums: a layer of a user may err.

    Parameters
    ----------
    network : Network
    loss : callable
    inputs, targets : arrays of length 1
        Only their shapes and types are used.
    """
    first, labels = _waves(inputs, 1.0), jnp.asarray(np.zeros_like(targets))
    moved = {name: leaf + _waves(leaf, 0.1) for name, leaf in network.initial.items()}
    parts = record_parts(network, loss, "layerwise", "fast", tuple(moved))

    @jax.jit
    def norms(second: Float[Array, "1 ..."]) -> Float[Array, " m"]:
        records = jnp.concatenate([first, second])[:, None]
        both = jnp.concatenate([labels, labels]), jnp.ones(2, bool)
        found = parts(moved, records, *both).norms.values()
        return jnp.stack([norm[0] for norm in found])

    @jax.jit
    def differences(second: Float[Array, "1 ..."]) -> Float[Array, "2 m"]:
        records, ones = jnp.concatenate([first, second]), jnp.ones(2)
        both = jnp.concatenate([labels, labels])
        found = parts(moved, records[:, None], both, ones > 0.0).found
        whole = jax.grad(lambda p: jnp.sum(loss(network(p, records), both)))(moved)
        rows = [(found[name].weighted_sum(ones), whole[name]) for name in whole]
        pairs = [jnp.stack([_length(a - b), _length(b)]) for a, b in rows]
        return jnp.stack(pairs, axis=1)

    @jax.jit
    def understated(second: Float[Array, "1 ..."]) -> Float[Array, " m"]:
        records = jnp.concatenate([first, second])[:, None]
        own = parts(moved, records, jnp.concatenate([labels, labels]), jnp.ones(2) > 0)
        sums = {n: own.found[n].weighted_sum(jnp.array([1.0, 0.0])) for n in moved}
        lengths = [
            _length(jnp.stack([_length(sums[name]) for name in names]))
            for names in own.names.values()
        ]
        stated = jnp.stack([norm[0] for norm in own.norms.values()])
        return stated < jnp.stack(lengths) * (1.0 - 2.0**-8)

    seen = dry_run(network, jnp.concatenate([first, first])).shapes.values()
    divided = all(shape and shape[0] % 2 == 0 for shape in seen)
    others = (-2.0 * first, jnp.full_like(first, jnp.nan))
    if not divided or not jnp.array_equal(*map(norms, others)):
        raise FastEngineError(
            "model must show its layers the rows of a record side by side, and those "
            "of records alone, for engine='fast', got another order, or what belongs "
            "to all records. Pass engine='reference'."
        )
    if jnp.any(understated(-2.0 * first)):
        raise FastEngineError(
            "layers must state the norm of a record's gradient in full for "
            "engine='fast', got one that is too small. Pass engine='reference'."
        )
    errors, lengths = differences(-2.0 * first)
    if not jnp.all(errors <= 1e-2 * lengths + 1e-4 * jnp.max(lengths)):
        raise FastEngineError(
            "every parameter must be used by one layer alone for engine='fast', got "
            "one that is used elsewhere as well. Pass engine='reference'."
        )


def _length(values: Float[Array, "..."]) -> Float[Array, ""]:
    return jnp.sqrt(jnp.sum(jnp.square(values)))


def _waves(like: Any, height: float) -> Float[Array, "..."]:
    """Return numbers between ``-height`` and ``height``, in the shape of ``like``."""
    places = jnp.arange(1, 1 + like.size).astype(like.dtype)
    return (height * jnp.sin(places)).reshape(like.shape)
