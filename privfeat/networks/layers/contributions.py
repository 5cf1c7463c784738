"""One parameter's share of every record's gradient: its norm, and weighted sums of it.

Throughout, ``a`` is a layer's input and ``e`` the cotangent of its output, with one
slice for each of ``n`` records. Augmented copies and positions of a record together are
its ``t`` axis: the gradient of a dense kernel is ``sum_t a_t e_t^T``.

Records of weight zero (empty slots of a batch, and gradients that are not finite) are
masked, not multiplied: zero times NaN is NaN.

A record's weighted gradient is formed by itself, passed through ``entry``, and only
then added to those of others: what a record adds is then a function of ``a``, ``e`` and
the weight of that record alone, if ``entry`` returns whole numbers
(`core.sums.batches`).
"""

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Num

# A kept gradient is written once and read twice. Moving a number costs about as much as
# twelve multiplications, measured on two CPU cores.
_COST_OF_KEEPING = 36
# Two units of float32 for every term of a sum; see `gram`.
GRAM_SLACK = 2.0**-23
_MORE_TERMS = 16
_MOST_TERMS = 2**16
# Squares below this, the smallest normal float32, may be flushed to zero.
_FLUSHED = 2.0**-126
_LOST = _FLUSHED / (GRAM_SLACK * _MORE_TERMS)
# Longer axes are summed in blocks.
_BLOCK = 2**12
# A CPU adds up so many records in one loop over their numbers; to reduce an axis, which
# is right for more and elsewhere, takes it ten times as long.
_UNROLLED = 32

Weights: TypeAlias = Float[Array, " n"]
Entry: TypeAlias = Callable[[Float[Array, "..."]], Num[Array, "..."]]


class Contribution(NamedTuple):
    """What the engine needs of one parameter."""

    squared_norms: Float[Array, " n"]  # of its gradient, for every record; sensitive
    # from weights of shape (n,), >= 0, and ``entry``, to the sum over records of
    # ``entry`` of the weighted gradient, of every number by itself
    weighted_sum: Callable[..., Num[Array, "..."]]
    # what rounding may have taken from ``squared_norms`` by cancellation
    slack: Float[Array, " n"] | float = 0.0


def by_record(values: Any, n_records: int) -> Any:
    """Return arrays with one slice for each record, floats as float32 at least."""
    return jax.tree.map(
        lambda leaf: widened(leaf).reshape(n_records, -1, *leaf.shape[1:]), values
    )


def widened(values: Array) -> Array:
    """Return floats as float32 at least: squares of small half-precision ones are 0."""
    if not jnp.issubdtype(values.dtype, jnp.floating):
        return values
    return values.astype(jnp.promote_types(values.dtype, jnp.float32))


def norms_of(
    found: Mapping[str, Contribution], parts: Mapping[str, list[str]]
) -> dict[str, Float[Array, " n"]]:
    """Return the norms of all parts of the records' gradients, not below the truth."""
    norms = {}
    for part, names in parts.items():
        squared = [found[name].squared_norms + found[name].slack for name in names]
        total = summed(jnp.stack(squared, axis=1))
        norms[part] = jnp.sqrt(jnp.maximum(total, 0.0))
    return norms


def as_it_is(values: Float[Array, "..."]) -> Float[Array, "..."]:
    """Return ``values``: the entry of an ordinary sum."""
    return values


def unrolled(n_records: int) -> bool:
    """Return whether to add up so many records one after another."""
    return jax.default_backend() == "cpu" and n_records <= _UNROLLED


def added(
    gradients: Float[Array, "n ..."] | Sequence[Float[Array, "..."]],
    entry: Entry = as_it_is,
) -> Num[Array, "..."]:
    """Return the sum over records of ``entry`` of each gradient."""
    if isinstance(gradients, list) or unrolled(len(gradients)):
        return functools.reduce(jnp.add, map(entry, gradients))
    entries = entry(jnp.asarray(gradients))
    return jnp.sum(entries, axis=0, dtype=entries.dtype)


def keeping_is_cheaper(n_positions: int, n_inputs: int, n_outputs: int) -> bool:
    """Return whether to form a record's gradient rather than two Gram matrices.

    Also where sums are so long that the slack of `gram` is not proved.
    """
    if n_inputs + n_outputs + 2 * n_positions > _MOST_TERMS:
        return True
    gram_cost = n_positions**2 * (n_inputs + n_outputs)
    return gram_cost >= _COST_OF_KEEPING * n_inputs * n_outputs


def kept(gradients: Float[Array, "n ..."]) -> Contribution:
    """Return the contribution of gradients that are at hand."""
    flat = widened(gradients).reshape(len(gradients), -1)
    # In one place after another: differentiation leaves matrices transposed, over which
    # loops take four times as long.
    flat = jax.lax.optimization_barrier(flat)  # type: ignore[no-untyped-call]
    gradients = flat.reshape(gradients.shape)

    def weighted_sum(weights: Weights, entry: Entry = as_it_is) -> Num[Array, "..."]:
        if not unrolled(len(gradients)):
            return added(scaled(gradients, weights), entry)
        return added(_each_scaled([*gradients], weights), entry)

    return Contribution(squares(gradients), weighted_sum)


def kept_list(gradients: list[Float[Array, "..."]]) -> Contribution:
    """Return the contribution of gradients that are separate arrays."""
    gradients = [*map(widened, gradients)]

    def weighted_sum(weights: Weights, entry: Entry = as_it_is) -> Num[Array, "..."]:
        return added(_each_scaled(gradients, weights), entry)

    norms = [squares(gradient[None])[0] for gradient in gradients]
    return Contribution(jnp.stack(norms), weighted_sum)


def _each_scaled(
    gradients: Sequence[Float[Array, "..."]], weights: Float[Array, " n"]
) -> list[Float[Array, "..."]]:
    pairs = zip(weights, gradients, strict=True)  # product last: one rounding
    return [weight * jnp.where(weight > 0.0, own, 0.0) for weight, own in pairs]


def dense(a: Float[Array, "n t d"], e: Float[Array, "n t o"]) -> Contribution:
    """Return the contribution of a kernel with gradient ``sum_t a_t e_t^T``.

    With one position the norm is ``norm(a) norm(e)`` (Goodfellow 2015,
    arXiv:1510.01799) and nothing is formed; with more, whichever of the gradient and
    the Gram matrices is cheaper.
    """
    n_positions, n_inputs, n_outputs = a.shape[1], a.shape[2], e.shape[2]

    def weighted_sum(weights: Weights, entry: Entry = as_it_is) -> Num[Array, "..."]:
        left, right = masked(a, weights), scaled(e, weights)
        if n_positions > 1:
            return added(jnp.einsum("ntd,nto->ndo", left, right), entry)
        if not unrolled(len(a)):
            return added(left[:, 0, :, None] * right[:, 0, None, :], entry)
        pairs = zip(left[:, 0], right[:, 0], strict=True)
        return added([x[:, None] * y[None, :] for x, y in pairs], entry)

    if n_positions == 1:
        return Contribution(squares(a) * squares(e), weighted_sum)
    if keeping_is_cheaper(n_positions, n_inputs, n_outputs):
        return kept(jnp.einsum("ntd,nto->ndo", a, e))
    return gram(a, e, weighted_sum)


def gram(
    a: Float[Array, "n t d"],
    e: Float[Array, "n t o"],
    weighted_sum: Callable[..., Num[Array, "..."]],
) -> Contribution:
    """Return ``norm(sum_t a_t e_t^T)^2 = sum_ts (a_t . a_s)(e_t . e_s)``.

    Terms of both signs cancel, so that the error is relative not to the result but to
    ``M^2``, ``M = sum_t norm(a_t) norm(e_t)``; ``GRAM_SLACK`` times the lengths of all
    sums, of that, is the slack.

    *Proof.* Let ``u = 2**-24``. Added up in any order, an inner product of ``d`` terms
    is off by at most ``g(d) norm(a_t) norm(a_s)``, ``g(d) = d u / (1 - d u)``, by
    Cauchy-Schwarz; a product of two of them, summed over ``t`` positions twice, by
    ``((1 + g(d)) (1 + g(o)) (1 + u) (1 + g(t))^2 - 1) M^2``. With ``k = d + o + 2 t``
    terms, ``k <= 2**16``, that is below ``1.1 (k + 1) u M^2``, and ``M`` is computed to
    within ``2**-4``; the slack is ``2 (k + 16) u M^2``. Products of numbers so small
    that they are flushed to zero are in it as well, see `_norms`.
    """
    inner = _inner_products(a) * _inner_products(e)
    largest = jnp.sum(_norms(a) * _norms(e), axis=1)
    slack = _slack(a.shape[2] + e.shape[2] + 2 * a.shape[1])
    return Contribution(summed(inner), weighted_sum, slack * jnp.square(largest))


def lookup(
    ids: Int[Array, "n t"], e: Float[Array, "n t o"], n_rows: int
) -> Contribution:
    """Return the contribution of a table of which row ``ids[t]`` got cotangent ``e_t``.

    A record that uses a row several times adds up its cotangents, so the squared norm
    is the sum of ``e_t . e_s`` over pairs of positions with the same row.
    """
    table = jnp.zeros((n_rows, e.shape[2]), e.dtype)
    n_terms = e.shape[2] + 2 * e.shape[1]
    if n_terms > _MOST_TERMS:
        return kept(jax.vmap(lambda rows, own: table.at[rows].add(own))(ids, e))
    rows = jnp.where(ids < 0, ids + n_rows, ids)  # as they are read
    same = (rows[:, :, None] == rows[:, None, :]).astype(e.dtype)
    inner = same * _inner_products(e)
    earlier = jnp.tril(jnp.ones(same.shape[1:], same.dtype), -1)
    first = jnp.sum(same * earlier[None], axis=2) == 0.0

    def weighted_sum(weights: Weights, entry: Entry = as_it_is) -> Num[Array, "..."]:
        # what a record adds to a row, where it uses the row first
        whole = jnp.einsum("nts,nso->nto", same, scaled(e, weights))
        own = entry(jnp.where(first[:, :, None], whole, 0.0))
        zero = jnp.zeros(table.shape, own.dtype)
        return zero.at[ids.reshape(-1)].add(own.reshape(-1, e.shape[2]))

    slack = _slack(n_terms) * jnp.square(jnp.sum(_norms(e), axis=1))
    return Contribution(summed(inner), weighted_sum, slack)


def squares(values: Float[Array, "n ..."]) -> Float[Array, " n"]:
    """Return the squared norm of every slice.

    The relative error is below ``2**-10`` for slices of up to ``2**36`` numbers, see
    `summed`. Squares that are flushed to zero count as large as they can be: a layer's
    other factor may be huge.
    """
    lost = _FLUSHED * math.prod(values.shape[1:])
    return summed(jnp.square(values)) + lost


def summed(values: Float[Array, "n ..."]) -> Float[Array, " n"]:
    """Return the sum of every slice, by sums of at most ``2**12`` terms each.

    The error is at most ``2**-24``, times the lengths of these sums together, of the
    sum of absolute values, whatever the order: for ``2**36`` numbers below ``2**-10``,
    since three lengths of ``2**12`` have that product, and other lengths of the same
    product have a smaller sum. The barrier keeps the compiler from making one long sum
    of them.
    """
    while values.ndim > 1:
        length = values.shape[-1]
        if length > _BLOCK:
            whole = [(0, 0)] * (values.ndim - 1) + [(0, -length % _BLOCK)]
            values = jnp.pad(values, whole).reshape(*values.shape[:-1], -1, _BLOCK)
        short = jnp.sum(values, axis=-1)
        values = jax.lax.optimization_barrier(short)  # type: ignore[no-untyped-call]
    return values


def _slack(n_terms: int) -> float:
    return GRAM_SLACK * (n_terms + _MORE_TERMS)


def _inner_products(values: Float[Array, "n t d"]) -> Float[Array, "n t t"]:
    """Return all ``v_t . v_s``, in full float32: a GPU would take ten bits."""
    return jnp.einsum("ntd,nsd->nts", values, values, precision="highest")


def _norms(values: Float[Array, "n t d"]) -> Float[Array, "n t"]:
    """Return the norms of all positions, not below what is lost of inner products.

    An inner product loses at most ``d`` times ``_FLUSHED``, which is the slack's part,
    or less, of the square that is added here.
    """
    lost = _LOST * values.shape[2]
    return jnp.sqrt(jnp.sum(jnp.square(values), axis=2) + lost)


def masked(
    values: Float[Array, "n ..."], weights: Float[Array, " n"]
) -> Float[Array, "n ..."]:
    """Return ``values`` with the slices of weight zero set to zero."""
    return jax.vmap(lambda own, weight: jnp.where(weight > 0.0, own, 0.0))(
        values, weights
    )


def scaled(
    values: Float[Array, "n ..."], weights: Float[Array, " n"]
) -> Float[Array, "n ..."]:
    """Return ``values`` with every slice times its weight."""
    return jax.vmap(jnp.multiply)(masked(values, weights), weights)
