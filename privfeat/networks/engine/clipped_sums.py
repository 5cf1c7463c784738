"""Sums of clipped per-record gradients: the fast engine and the reference engine.

Both compute ``sum_i w_i g_i``, ``g_i`` the gradient of record ``i``'s loss, ``w_i`` its
clip factor, and agree to rounding. ``fast`` needs a network made of `layers`: one
forward pass, one backward pass to the outputs of layers, per-record norms from inputs
and cotangents, and one weight gradient per record and layer with weighted cotangents,
rounded to the grid of `core.sums.batches` before it is added. No other pass is made
(Goodfellow 2015; Kurakin et al. 2022, section 2.2): a step costs 0.9 to 1.8 times one
without privacy (`benchmarks/dpsgd_speed.py`), and memory for the gradients of a part.
``reference`` is ``vmap(grad)``, for any network: it calls the network with one record,
so that records cannot mix (`network.check_separate` refuses the operations by which
they could). Where a network mixes the records of a
batch, ``fast`` bounds nothing: it is for networks that privfeat makes by name, and for
those that the user vouches for.
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Shaped

from privfeat.core.sums.batches import UNIT, on_grid
from privfeat.networks.engine.clipping import (
    ClipFactor,
    ClipStyle,
    Shares,
    clip_factors,
    equal_share,
    parts_of,
)
from privfeat.networks.engine.network import Network, Parameters
from privfeat.networks.layers.basic import Tape, recorded
from privfeat.networks.layers.contributions import (
    Contribution,
    Entry,
    as_it_is,
    kept,
    norms_of,
)

RecordLoss: TypeAlias = Callable[
    [Float[Array, "n m"], Shaped[Array, "n ..."]], Float[Array, " n"]
]
Inputs: TypeAlias = Float[Array, "n k ..."]
Targets: TypeAlias = Shaped[Array, "n ..."]
# What a record's gradient is: from what is trained, parameters, inputs and targets to
# the contribution of every trained parameter.
Terms: TypeAlias = Callable[..., dict[str, Contribution]]
UsedEngine: TypeAlias = Literal["fast", "reference"] | Terms


class Trained(NamedTuple):
    """A network, the loss of its scores, and the names of trained parameters."""

    network: Network
    loss: RecordLoss
    trainable: tuple[str, ...]


class RecordParts(NamedTuple):
    """The gradients of a batch of records, in parts that have norms. Sensitive."""

    names: dict[str, list[str]]  # of the parameters of each part
    norms: dict[str, Float[Array, " n"]]  # by part
    usable: Bool[Array, " n"]  # slots whose record counts: in all parts, or in none
    found: dict[str, Contribution]  # by name of the parameter

    def clipped_sum(
        self,
        radii: dict[str, Float[Array, ""]],
        scales: dict[str, Float[Array, ""]],
        factor: ClipFactor,
        entry: Entry = on_grid,
    ) -> Parameters:
        """Return the sum over records, each part of each bounded by its radius.

        Every part is multiplied by its scale, and then passed through ``entry``.
        """
        total: Parameters = {}
        for part, names in self.names.items():
            own = clip_factors(self.norms[part], radii[part], factor) * scales[part]
            weights = jnp.where(self.usable, own, 0.0)
            for name in names:
                total[name] = self.found[name].weighted_sum(weights, entry)
        return total


def record_parts(
    network: Network,
    loss: RecordLoss,
    style: ClipStyle,
    engine: UsedEngine,
    trainable: tuple[str, ...],
) -> Callable[..., RecordParts]:
    """Return ``f(parameters, inputs, targets, valid) -> RecordParts``, not compiled.

    ``loss`` makes one number of the scores and targets of each record, or augmented
    copy. An ``engine`` that is a callable has terms that take something else for a
    record: see `training.federated`. The parameters ``trainable`` get a gradient.

    The ``inputs`` of ``f`` have shape (n, k, ...): ``k`` augmented copies of each
    record, whose gradients are averaged (Sander et al. 2023, appendix C). ``valid``
    marks the slots that hold a record.
    """
    terms = _TERMS[engine] if isinstance(engine, str) else engine
    trained, parts = Trained(network, loss, trainable), parts_of(trainable, style)

    def compute(
        parameters: Parameters,
        inputs: Any,
        targets: Shaped[Array, "n ..."],
        valid: Bool[Array, " n"],
    ) -> RecordParts:
        found = terms(trained, parameters, inputs, targets)
        norms = norms_of(found, parts)
        usable = valid & jnp.all(jnp.isfinite(jnp.stack([*norms.values()])), axis=0)
        return RecordParts(parts, norms, usable, found)

    return compute


def compiled_sum(
    parts_of_batch: Callable[..., RecordParts],
    sum_of: Callable[[RecordParts, Parameters, Float[Array, ""]], Parameters],
) -> Callable[..., Parameters]:
    """Return ``f(parameters, inputs, targets, valid, clip_norm) -> sum``, compiled.

    It takes what ``parts_of_batch``, from `record_parts`, takes, and a clip norm, which
    may differ from call to call, and gives ``sum_of(parts, parameters, clip_norm)``.
    """

    @jax.jit
    def compute(
        parameters: Parameters,
        inputs: Any,
        targets: Shaped[Array, "n ..."],
        valid: Bool[Array, " n"],
        clip_norm: Float[Array, ""],
    ) -> Parameters:
        found = parts_of_batch(parameters, inputs, targets, valid)
        return sum_of(found, parameters, clip_norm)

    return compute


def clipped_sum(
    parts_of_batch: Callable[..., RecordParts],
    factor: ClipFactor = "abadi",
    *,
    exact: bool = True,
    shares: Shares = None,
) -> Callable[..., Parameters]:
    """Return ``f(parameters, inputs, targets, valid, clip_norm) -> clipped sum``.

    It is a `compiled_sum`. If ``exact``, its result is of whole numbers, in units of
    ``clip_norm * UNIT``; otherwise of floats. Sensitive. Each part of a gradient is
    bounded by its share of the clip norm, from `clipping.shares_of`; None for equal
    ones.

    **Guarantee.** Records are treated alike and by themselves, so that adding one moves
    the sum by its own clipped gradient, rounded: by at most ``1 / UNIT`` (see
    `clipping` and `core.sums.batches`).
    """

    def sum_of(
        found: RecordParts, parameters: Parameters, clip_norm: Float[Array, ""]
    ) -> Parameters:
        own = dict(shares or dict.fromkeys(found.norms, equal_share(len(found.norms))))
        radii = {part: clip_norm * own[part] for part in found.norms}
        scale = 1.0 / (UNIT * clip_norm) if exact else jnp.ones_like(clip_norm)
        scales = dict.fromkeys(found.norms, scale)
        entry = on_grid if exact else as_it_is
        return found.clipped_sum(radii, scales, factor, entry)

    return compiled_sum(parts_of_batch, sum_of)


def dry_run(network: Network, inputs: Any) -> Tape:
    """Return the tape of a forward pass of shapes; nothing is computed."""
    tapes: list[Tape] = []

    def forward(parameters: Parameters, inputs: Any) -> Any:
        scores, tape = recorded(network.bind(parameters), inputs, {})
        tapes.append(tape)
        return scores

    jax.eval_shape(forward, network.initial, inputs)
    return tapes[0]


def _fast_terms(
    trained: Trained, parameters: Parameters, inputs: Inputs, targets: Targets
) -> dict[str, Contribution]:
    """Return what each parameter contributes, from one pass for all records."""
    network, loss, trainable = trained
    n, copies = inputs.shape[:2]
    images = inputs.reshape(n * copies, *inputs.shape[2:])
    labels = jnp.repeat(targets, copies, axis=0)
    dry = dry_run(network, images)
    dry.check_knows(trainable)
    tapped = {name.rpartition("/")[0] for name in trainable}
    taps = {
        name: jnp.zeros(shape, images.dtype)
        for name, shape in dry.shapes.items()
        if name in tapped
    }
    tapes: list[Tape] = []

    def total_loss(taps: Parameters) -> tuple[Float[Array, ""], dict[str, Any]]:
        scores, tape = recorded(network.bind(parameters), images, taps)
        tapes.append(tape)
        return jnp.sum(loss(scores, labels)) / copies, tape.inputs

    cotangents, a = jax.grad(total_loss, has_aux=True)(taps)
    return tapes[0].contributions(a, cotangents, n)


def _reference_terms(
    trained: Trained, parameters: Parameters, inputs: Inputs, targets: Targets
) -> dict[str, Contribution]:
    """Return what each parameter contributes, from the gradient of each record."""
    network, loss, trainable = trained
    fixed = {name: parameters[name] for name in parameters if name not in trainable}

    def record_loss(
        moving: Parameters, copies: Float[Array, "k ..."], target: Shaped[Array, "..."]
    ) -> Float[Array, ""]:
        scores = network(moving | fixed, copies)
        return jnp.mean(loss(scores, jnp.repeat(target[None], len(copies), axis=0)))

    moving = {name: parameters[name] for name in trainable}
    gradients = jax.vmap(jax.grad(record_loss), in_axes=(None, 0, 0))(
        moving, inputs, targets
    )
    return {name: kept(value) for name, value in gradients.items()}


_TERMS: dict[str, Terms] = {"fast": _fast_terms, "reference": _reference_terms}
