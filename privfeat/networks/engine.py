"""Sums of clipped per-record gradients: the fast engine and the reference engine.

Both compute ``sum_i w_i g_i``, ``g_i`` the gradient of record ``i``'s loss, ``w_i`` its
clip factor, and agree to rounding. ``fast`` needs a network made of `layers`: one
forward pass, one backward pass to the outputs of layers, per-record norms from inputs
and cotangents, and one weight gradient per layer with weighted cotangents. No other
pass is made, so a step costs little more than one without privacy (Goodfellow 2015;
Kurakin et al. 2022, section 2.2). ``reference`` is ``vmap(grad)``, for any network: it
calls the network with one record, so that records cannot mix (`model.check_separate`
refuses the operations by which they could). Where a network mixes the records of a
batch, ``fast`` bounds nothing: it is for networks that privfeat makes by name, and for
those that the user vouches for.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from privfeat.networks.clipping import (
    ClipFactor,
    ClipStyle,
    clip_factors,
    part_of,
    part_radius,
)
from privfeat.networks.contributions import Contribution, kept, summed
from privfeat.networks.model import Network, Parameters
from privfeat.networks.tape import FastEngineError, Tape

Engine = Literal["auto", "fast", "reference"]
ENGINES: tuple[Engine, ...] = get_args(Engine)

__all__ = ["ENGINES", "ClipRule", "Engine", "FastEngineError", "RecordLoss", "Terms"]
__all__ += ["RecordParts", "choose_engine", "clipped_sum", "dry_run", "record_parts"]

RecordLoss: TypeAlias = Callable[
    [Float[Array, "n m"], Float[Array, "n ..."]], Float[Array, " n"]
]
# What a record's gradient is: from network, loss, names of trained parameters,
# parameters, inputs and targets to the contribution of every one of these parameters.
Terms: TypeAlias = Callable[..., dict[str, Contribution]]


@dataclass(frozen=True)
class ClipRule:
    """How records are bounded; the whole of a record's gradient by ``clip_norm``."""

    factor: ClipFactor = "abadi"
    style: ClipStyle = "flat"


def clipped_sum(
    network: Network,
    loss: RecordLoss,
    rule: ClipRule,
    engine: Literal["fast", "reference"] | Terms,
    frozen: frozenset[str] = frozenset(),
) -> Callable[..., Parameters]:
    """Return ``f(parameters, inputs, targets, valid, clip_norm) -> clipped sum``.

    Parameters
    ----------
    network : Network
    loss : callable
        From scores and targets to one loss per record (or augmented copy).
    rule : ClipRule
    engine : {"fast", "reference"}, or callable
        Terms that take something else for a record: see `federated`.
    frozen : set of str
        Names of parameters that get no gradient.

    Returns
    -------
    f : callable
        Compiled. ``inputs`` has shape (n, k, ...): ``k`` augmented copies of each
        record, whose gradients are averaged before they are clipped (Sander et al.
        2023, appendix C). ``valid`` marks the slots that hold a record. ``clip_norm``
        may differ from call to call. Sensitive result.

    Notes
    -----
    **Guarantee.** Records are treated alike and by themselves, so that adding one moves
    the sum by its own clipped gradient: by at most ``clip_norm`` (see `clipping`).
    """
    trainable = tuple(name for name in network.initial if name not in frozen)
    parts_of_batch = record_parts(network, loss, rule.style, engine, trainable)

    @jax.jit
    def compute(
        parameters: Parameters,
        inputs: Any,
        targets: Float[Array, "n ..."],
        valid: Bool[Array, " n"],
        clip_norm: Float[Array, ""],
    ) -> Parameters:
        found = parts_of_batch(parameters, inputs, targets, valid)
        radius = clip_norm * part_radius(1.0, len(found.norms))
        return found.clipped_sum(dict.fromkeys(found.norms, radius), rule.factor)

    return compute


class RecordParts(NamedTuple):
    """The gradients of a batch of records, in parts that have norms. Sensitive.

    Attributes
    ----------
    names : dict of part to names of parameters
    norms : dict of part to array of shape (n,)
    usable : array of shape (n,)
        Which slots hold a record that counts: in all of its parts, or in none.
    found : dict of name to Contribution
    """

    names: dict[str, list[str]]
    norms: dict[str, Float[Array, " n"]]
    usable: Bool[Array, " n"]
    found: dict[str, Contribution]

    def clipped_sum(
        self, radii: dict[str, Float[Array, ""]], factor: ClipFactor
    ) -> Parameters:
        """Return the sum over records, each part of each bounded by its radius."""
        total = {}
        for part, names in self.names.items():
            weights = clip_factors(self.norms[part], radii[part], factor)
            weights = jnp.where(self.usable, weights, 0.0)
            for name in names:
                total[name] = self.found[name].weighted_sum(weights)
        return total


def record_parts(
    network: Network,
    loss: RecordLoss,
    style: ClipStyle,
    engine: Literal["fast", "reference"] | Terms,
    trainable: tuple[str, ...],
) -> Callable[..., RecordParts]:
    """Return ``f(parameters, inputs, targets, valid) -> RecordParts``, not compiled."""
    terms = _TERMS[engine] if isinstance(engine, str) else engine

    def compute(
        parameters: Parameters,
        inputs: Any,
        targets: Float[Array, "n ..."],
        valid: Bool[Array, " n"],
    ) -> RecordParts:
        found = terms(network, loss, trainable, parameters, inputs, targets)
        parts = parts_of(trainable, style)
        norms = {part: _norm(found, names) for part, names in parts.items()}
        usable = valid
        for norm in norms.values():
            usable = usable & jnp.isfinite(norm)
        return RecordParts(parts, norms, usable, found)

    return compute


def parts_of(names: tuple[str, ...], style: ClipStyle) -> dict[str, list[str]]:
    """Return the parts of the gradient that have norms of their own."""
    parts: dict[str, list[str]] = {}
    for name in names:
        parts.setdefault(part_of(name.rpartition("/")[0], style), []).append(name)
    return parts


def dry_run(network: Network, inputs: Any) -> Tape:
    """Return the tape of a forward pass of shapes; nothing is computed."""
    tapes: list[Tape] = []

    def forward(parameters: Parameters, inputs: Any) -> Any:
        module = network.bind(parameters)
        tapes.append(Tape(module, None))
        with tapes[0].recording():
            return module(inputs)

    jax.eval_shape(forward, network.initial, inputs)
    return tapes[0]


def choose_engine(
    engine: Engine,
    network: Network,
    tape: Tape,
    trial: Callable[[], None] | None = None,
    *,
    trusted: bool = True,
) -> Literal["fast", "reference"]:
    """Return the engine that trains the network of this tape.

    Parameters
    ----------
    engine : {"auto", "fast", "reference"}
    network : Network
    tape : Tape
    trial : callable, optional
        `rows.check_rows`, for a network that is not one of ours.
    trusted : bool
        Whether the network is known to treat every record by itself. No trial shows
        that: a network may mix the records of larger batches, or those of some values.

    Raises
    ------
    FastEngineError
        If ``engine`` is ``"fast"`` and the network is not made for it, or not trusted.
    """
    if engine == "reference":
        return engine
    if not trusted:
        if engine == "auto":
            return "reference"
        raise FastEngineError(
            "trust_model must be True for engine='fast' and a network that is not "
            "named, got False. Pass engine='reference', which shows it one record at a "
            "time; or True, if it treats every record by itself, whatever their values."
        )
    try:
        tape.check_knows(network.initial)
        if trial is not None:
            trial()
    except FastEngineError:
        if engine == "fast":
            raise
        return "reference"
    return "fast"


def _norm(found: dict[str, Contribution], names: list[str]) -> Float[Array, " n"]:
    squared = [found[name].squared_norms + found[name].slack for name in names]
    return jnp.sqrt(jnp.maximum(summed(jnp.stack(squared, axis=1)), 0.0))


def _fast_terms(
    network: Network,
    loss: RecordLoss,
    trainable: tuple[str, ...],
    parameters: Parameters,
    inputs: Float[Array, "n k ..."],
    targets: Float[Array, "n ..."],
) -> dict[str, Contribution]:
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

    def total_loss(taps: Parameters) -> tuple[Float[Array, ""], dict[str, Any]]:
        module = network.bind(parameters)
        tape = Tape(module, taps)
        with tape.recording():
            scores = module(images)
        layers.update(tape.layers)
        return jnp.sum(loss(scores, labels)) / copies, tape.inputs

    layers: dict[str, Any] = {}
    cotangents, recorded = jax.grad(total_loss, has_aux=True)(taps)
    found = {}
    for name in taps:
        own = layers[name].contributions(recorded[name], cotangents[name], n)
        # a network that is a single layer has no name before its parameters
        prefix = f"{name}/" if name else ""
        found.update({prefix + leaf: value for leaf, value in own.items()})
    return found


def _reference_terms(
    network: Network,
    loss: RecordLoss,
    trainable: tuple[str, ...],
    parameters: Parameters,
    inputs: Float[Array, "n k ..."],
    targets: Float[Array, "n ..."],
) -> dict[str, Contribution]:
    fixed = {name: parameters[name] for name in parameters if name not in trainable}

    def record_loss(
        moving: Parameters, copies: Float[Array, "k ..."], target: Float[Array, "..."]
    ) -> Float[Array, ""]:
        scores = network(moving | fixed, copies)
        return jnp.mean(loss(scores, jnp.repeat(target[None], len(copies), axis=0)))

    moving = {name: parameters[name] for name in trainable}
    gradients = jax.vmap(jax.grad(record_loss), in_axes=(None, 0, 0))(
        moving, inputs, targets
    )
    return {name: kept(value) for name, value in gradients.items()}


_TERMS: dict[str, Terms] = {"fast": _fast_terms, "reference": _reference_terms}
