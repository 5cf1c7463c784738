"""The training loop: sample, sum clipped gradients, release, update."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float
from numpy.typing import NDArray

from privfeat.core.noise.gaussian_mechanism import GaussianMechanism
from privfeat.core.noise.keys import KeyStream
from privfeat.core.sums.totals import ExactSum
from privfeat.networks.batches import flatten, physical_batches, unflatten
from privfeat.networks.model import Parameters
from privfeat.networks.optimizers import Optimizer

GRADIENT = "gradient"
Phases = Sequence[tuple[float, float]]


@dataclass
class TrainState:
    """Everything that is carried from step to step; nothing in it is sensitive.

    Attributes
    ----------
    step : int
        Number of steps that are done.
    parameters : dict of name to array
    optimizer : pytree
    average : dict of name to array, or None
        Exponential moving average of the parameters.
    """

    step: int
    parameters: Parameters
    optimizer: Any
    average: Parameters | None


@dataclass(frozen=True)
class Trainer:
    """One noisy step after another, each within the plan of a mechanism.

    Attributes
    ----------
    clipped_sum : callable
        From `engine.clipped_sum`.
    optimizer : optax optimizer
    names : tuple of str
        The parameters that are trained.
    expected_batch_size : float
        What sums are divided by: public, whatever number of records a step drew.
    microbatch_size : int
    clip_phases : sequence of (start, clip_norm)
        Start as a share of all steps, from 0 upwards.
    n_iter : int
    ema_decay : float or None
    prepare : callable
        From stored records, one number for each and the key of the step to the inputs
        of ``clipped_sum``. Records may be users, see `units`.
    keys : KeyStream

    Notes
    -----
    **Guarantee.** Each step releases one sum, of sensitivity 1 (2 under replace-one)
    since every record's part is at most the clip norm by which the sum is divided. An
    empty step releases noise. All else is computed from releases and public values.
    """

    clipped_sum: Callable[..., Parameters]
    optimizer: Optimizer
    names: tuple[str, ...]
    expected_batch_size: float
    microbatch_size: int
    clip_phases: Phases
    n_iter: int
    ema_decay: float | None
    prepare: Callable[..., Any]
    keys: KeyStream

    def start(self, parameters: Parameters) -> TrainState:
        """Return the state before the first step.

        Raises
        ------
        TypeError
            If the optimizer needs more than gradients and parameters for a step: found
            here, before the fit is charged.
        """
        moving = {name: parameters[name] for name in self.names}
        average = dict(moving) if self.ema_decay is not None else None
        optimizer = self.optimizer.init(moving)
        try:
            jax.eval_shape(partial(_update, self.optimizer), moving, optimizer, moving)
        except Exception as error:
            raise TypeError(
                "optimizer must take a step from gradients and parameters alone, but "
                f"one raised: {error}. Pass another optax optimizer."
            ) from error
        return TrainState(0, dict(parameters), optimizer, average)

    def run(
        self,
        mechanism: GaussianMechanism,
        state: TrainState,
        records: Any,
        targets: NDArray[Any],
        steps: Iterable[int],
    ) -> Iterator[TrainState]:
        """Yield the state after every step, one for every number in ``steps``.

        ``mechanism`` plans the query ``"gradient"``: a sum of gradients in units of the
        clip norm, once a step.
        """
        sampler = mechanism.sampler(GRADIENT)
        for _ in steps:
            n = len(targets)
            drawn = np.arange(n) if sampler is None else np.flatnonzero(sampler(n))
            state = self.step(mechanism, state, records, targets, drawn)
            yield state

    def step(
        self,
        mechanism: GaussianMechanism,
        state: TrainState,
        records: Any,
        targets: NDArray[Any],
        drawn: NDArray[np.intp],
    ) -> TrainState:
        """Return the state after a noisy step on the records that were ``drawn``."""
        clip_norm = self.clip_norm_at(state.step)
        exact = self._exact(state.parameters, records, targets, drawn, clip_norm)
        released = mechanism.release(GRADIENT, exact)
        gradient = unflatten(
            released.value * (clip_norm / self.expected_batch_size),
            state.parameters,
            self.names,
        )
        moving = {name: state.parameters[name] for name in self.names}
        moving, optimizer = _update(self.optimizer, gradient, state.optimizer, moving)
        average = state.average
        if average is not None and self.ema_decay is not None:
            # a young average forgets faster, so that it is not of the first values
            decay = min(self.ema_decay, (1.0 + state.step) / (10.0 + state.step))
            average = _mix(average, moving, jnp.float32(decay))
        return TrainState(state.step + 1, state.parameters | moving, optimizer, average)

    def clip_norm_at(self, step: int) -> float:
        """Return the clip norm of a step, counted from 0."""
        share = step / self.n_iter
        return [norm for start, norm in self.clip_phases if start <= share][-1]

    def result(self, state: TrainState) -> Parameters:
        """Return the parameters to keep: their average, where there is one."""
        return state.parameters | (state.average or {})

    def _exact(
        self,
        parameters: Parameters,
        records: Any,
        targets: NDArray[Any],
        drawn: NDArray[np.intp],
        clip_norm: float,
    ) -> ExactSum:
        """Return the sum of the clipped gradients, divided by the clip norm."""
        total = np.zeros(sum(parameters[name].size for name in self.names))
        key = self.keys.draw()  # one a step: draws do not depend on physical batches
        for batch in physical_batches(drawn, self.microbatch_size):
            inputs = self.prepare(records[batch.records], batch.records, key)
            # some accelerators round factors to 10 bits: more than the margin covers
            with jax.default_matmul_precision("highest"):
                part = self.clipped_sum(
                    parameters,
                    inputs,
                    jnp.asarray(targets[batch.records]),
                    jnp.asarray(batch.valid),
                    jnp.float32(clip_norm),
                )
            total += flatten(part, self.names)
        return ExactSum(total / clip_norm)


@partial(jax.jit, static_argnums=0)
def _update(
    optimizer: Optimizer, gradient: Parameters, state: Any, moving: Parameters
) -> tuple[Parameters, Any]:
    # optax mixes integer counts with floats
    with jax.numpy_dtype_promotion("standard"):
        updates, state = optimizer.update(gradient, state, moving)
        moved: Parameters = optax.apply_updates(moving, updates)
    return moved, state


@jax.jit
def _mix(
    average: Parameters, moving: Parameters, decay: Float[Array, ""]
) -> Parameters:
    return {
        name: decay * average[name] + (1.0 - decay) * value
        for name, value in moving.items()
    }
