"""Optimizers, learning-rate schedules and averages: all of it is post-processing."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import jax
import jax.numpy as jnp
import optax

from privfeat._checks import check_choice, check_int, check_positive, check_real

Optimizer: TypeAlias = optax.GradientTransformation
Schedule = Literal["constant", "cosine"]

# Those that go along a sum of past gradients, with what they keep of it by default.
_MOMENTA = {"heavy_ball": 0.9, "nesterov": 0.9, "sgd": 0.0}
# Those that add noise themselves, with what they keep of the last step by default.
_LANGEVIN = {"sgld": 0.0, "sghmc": 0.9}
_FACTORIES: dict[str, Callable[[Any], Optimizer]] = {
    "adam": optax.adam,
    "rmsprop": optax.rmsprop,
}
# Those that divide each gradient by its usual size.
_ADAPTIVE = (*_FACTORIES, "adamw")
_RATE = 1e-3
# How far noise moves a weight in a whole fit, over what it began with: measured.
_WALK = 1.5


def default_rate(
    optimizer: str, shapes: Sequence[tuple[int, ...]], n_iter: int
) -> float:
    """Return the rate at which noise alone moves weights by 1.5 times their size.

    ``shapes`` are those of the parameters that are trained from scratch, the outputs of
    a layer last. Without any, and for other optimizers than ``"adam"``, ``"adamw"`` and
    ``"rmsprop"``, the rate is 0.001.

    These optimizers divide a gradient by its usual size. Where noise is most of it,
    every step moves each weight by the rate ``r``, up or down, and ``n_iter`` steps by
    ``r sqrt(n_iter)``, whatever the noise multiplier. Weights are drawn with variance
    one over the inputs of their layer, so that the mean square of all ``d`` is ``m /
    d``, of layers with ``m`` outputs together. ``r = 1.5 sqrt(m / (d n_iter))`` makes
    the one 1.5 times the other: rates near it were the best of all that were tried, at
    every budget (``benchmarks/RESULTS.md``).

    >>> default_rate("adam", [(100, 10), (10,)], n_iter=225)
    0.01
    """
    weights = [shape for shape in shapes if len(shape) > 1]
    if optimizer not in _ADAPTIVE or not weights:
        return _RATE
    outputs = sum(shape[-1] for shape in weights)
    size = sum(math.prod(shape) for shape in weights)
    return _WALK * math.sqrt(outputs / (size * n_iter))


@dataclass(frozen=True)
class Average:
    """What is kept of the parameters of all steps; public numbers."""

    ema_decay: float  # of an exponential moving average
    # instead, the share of the steps after which a plain mean begins (Polyak & Juditsky
    # 1992)
    start: float | None = None

    def weight(self, step: int, n_iter: int) -> float:
        """Return what the parameters after step ``step``, from 0, count in it."""
        if self.start is not None:
            return 1.0 / max(step + 1 - round(self.start * n_iter), 1)
        # a young average forgets faster, so that it is not of the first values
        return 1.0 - min(self.ema_decay, (1.0 + step) / (10.0 + step))


def make_optimizer(
    optimizer: str | Optimizer,
    *,
    learning_rate: float | None,
    schedule: Schedule,
    warmup_steps: int,
    n_iter: int,
    weight_decay: float,
    n_records: int,
    draw_key: Callable[[], Any],
    momentum: float | None = None,
    dampening: float = 0.0,
    shapes: Sequence[tuple[int, ...]] = (),
) -> Optimizer:
    """Return the optax optimizer that the parameters of an estimator describe.

    ``"sgld"`` is stochastic gradient Langevin dynamics of the mean loss (Welling & Teh
    2011): to a step of rate ``r`` it adds noise of variance ``2 r / n_records``, so
    that without clipping or other noise its parameters are drawn from the posterior at
    small rates. ``"sghmc"`` is stochastic gradient Hamiltonian Monte Carlo (Chen, Fox &
    Guestrin 2014, Equation 15), which keeps ``momentum`` of the last step and adds
    noise of variance ``2 (1 - momentum) r / n_records``. That noise is beside the
    mechanism's and is not accounted: it can only help. ``draw_key`` returns its key,
    which nothing else uses.

    Rates are peaks, for gradients averaged over the expected batch; a cosine falls to
    zero at ``n_iter``; without one `default_rate` takes the ``shapes``.
    ``weight_decay`` times the parameter is added to the gradient, but decoupled from it
    for ``"adamw"``. ``momentum`` and ``dampening``, in [0, 1], are the ``m`` and ``d``
    of `_descent`, for ``"sgd"``, ``"heavy_ball"`` and ``"nesterov"``: without a
    momentum 0, 0.9 and 0.9, and for ``"sghmc"`` 0.9.

    TypeError or ValueError if a parameter is out of range or not one of the
    optimizer's, or an optax object is given with a rate.
    """
    check_choice("schedule", schedule, get_args(Schedule))
    warmup_steps = check_int("warmup_steps", warmup_steps, low=0, high=n_iter)
    weight_decay = check_real("weight_decay", weight_decay, low=0.0, high=1e6)
    if momentum is not None:
        momentum = check_real("momentum", momentum, low=0.0, high=1.0)
    dampening = check_real("dampening", dampening, low=0.0, high=1.0)
    if isinstance(optimizer, optax.GradientTransformation):
        _refuse_momentum(type(optimizer).__name__, momentum, dampening)
        if learning_rate is not None or weight_decay:
            raise ValueError(
                "learning_rate must be None and weight_decay 0 for an optax optimizer, "
                f"got {learning_rate!r} and {weight_decay!r}. It has its own."
            )
        return _with_plain_state(optimizer)
    names = (*_FACTORIES, *_MOMENTA, *_LANGEVIN, "adamw")
    check_choice("optimizer", optimizer, names)
    if (optimizer not in _MOMENTA and optimizer != "sghmc") or (
        optimizer in ("nesterov", "sghmc") and dampening
    ):
        _refuse_momentum(optimizer, momentum, dampening)
    own = default_rate(optimizer, shapes, n_iter)
    peak = own if learning_rate is None else learning_rate
    peak = check_positive("learning_rate", peak)
    if schedule == "constant":
        rate = optax.constant_schedule(peak)
    else:
        rate = optax.cosine_decay_schedule(peak, max(n_iter - warmup_steps, 1))
    if warmup_steps:
        # the first step has a rate above zero
        rise = optax.linear_schedule(peak / warmup_steps, peak, warmup_steps - 1)
        rate = optax.join_schedules([rise, rate], [warmup_steps])
    if optimizer == "adamw":
        return optax.adamw(rate, weight_decay=weight_decay)
    decay = [optax.add_decayed_weights(weight_decay)] if weight_decay else []
    if optimizer in _LANGEVIN:
        kept = _LANGEVIN[optimizer] if momentum is None else momentum
        return optax.chain(*decay, _langevin(rate, kept, n_records, draw_key()))
    if optimizer in _MOMENTA:
        kept = _MOMENTA[optimizer] if momentum is None else momentum
        descent = _descent(rate, kept, dampening, nesterov=optimizer == "nesterov")
        return optax.chain(*decay, descent)
    return optax.chain(*decay, _FACTORIES[optimizer](rate))


def _descent(
    rate: Any, momentum: float, dampening: float, *, nesterov: bool
) -> Optimizer:
    """Return ``-r b``, with ``b = m b + (1 - d) g``, and ``b = g`` in the first step.

    That is SGD of PyTorch, with the ``m`` and ``d`` that Sander et al. 2023 (section
    4.2) search over; with ``nesterov`` ``-r (g + m b)``. Without ``m`` there is no
    ``b``, and ``d`` does nothing, as there.
    """
    if not momentum:
        return optax.sgd(rate)
    descent = optax.sgd(rate, momentum=momentum, nesterov=nesterov)
    if not dampening:
        return descent
    weight = optax.join_schedules([lambda _: 1.0, lambda _: 1.0 - dampening], [1])
    return optax.chain(optax.scale_by_schedule(weight), descent)


def _refuse_momentum(optimizer: str, momentum: float | None, dampening: float) -> None:
    """Raise ValueError unless momentum and dampening are left as they are."""
    if momentum is not None or dampening:
        raise ValueError(
            "momentum must be None and dampening 0 unless optimizer is 'sgd' or "
            "'heavy_ball' (for 'nesterov' and 'sghmc' dampening alone), got "
            f"{momentum!r} and {dampening!r} for {optimizer!r}. Leave them out."
        )


def _with_plain_state(optimizer: Optimizer) -> Optimizer:
    """Return an optimizer whose state holds plain arrays in the place of random keys.

    So that a checkpoint can hold it, and processes can pass it on.
    """

    def init(parameters: Any) -> Any:
        return jax.tree.map(_plain, optimizer.init(parameters))

    def update(updates: Any, state: Any, parameters: Any = None) -> Any:
        kinds = optimizer.init(parameters)  # of which nothing is computed
        state = jax.tree.map(_as_it_was, kinds, state)
        updates, state = optimizer.update(updates, state, parameters)
        return updates, jax.tree.map(_plain, state)

    return optax.GradientTransformation(init, update)


def _is_key(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array) and jnp.issubdtype(
        leaf.dtype, jax.dtypes.prng_key
    )


def _plain(leaf: Any) -> Any:
    return jax.random.key_data(leaf) if _is_key(leaf) else leaf


def _as_it_was(kind: Any, leaf: Any) -> Any:
    if not _is_key(kind):
        return leaf
    return jax.random.wrap_key_data(leaf, impl=jax.random.key_impl(kind))


def _langevin(rate: Any, momentum: float, n_records: int, key: Any) -> Optimizer:
    """Return ``v``, with ``v = m v - r g + sqrt(2 (1 - m) r / n) z``.

    The last two are ``-sqrt(r) (sqrt(r) g + sqrt(2 (1 - m) / n) z)``.
    """
    variance = 2.0 * (1.0 - momentum) / n_records
    noise = optax.add_noise(eta=variance, gamma=0.0, key=key)
    step = optax.chain(
        optax.scale_by_schedule(lambda step: jnp.sqrt(rate(step))),
        _with_plain_state(noise),
        optax.scale_by_schedule(lambda step: -jnp.sqrt(rate(step))),
    )
    return optax.chain(step, optax.trace(momentum)) if momentum else step
