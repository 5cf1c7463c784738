"""The training loop: sample, sum clipped gradients, release, update."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Int, Num
from numpy.typing import NDArray

from privfeat._progress import passing
from privfeat.core.noise.gaussian_mechanism import GaussianMechanism
from privfeat.core.noise.keys import KeyStream
from privfeat.core.noise.observation import Sampler
from privfeat.core.sums.batches import BatchTotal, check_batches
from privfeat.core.sums.processes import Team
from privfeat.core.sums.totals import ExactSum
from privfeat.estimation.fitting import first_of
from privfeat.networks.engine.network import Parameters
from privfeat.networks.layers.contributions import widened
from privfeat.networks.training.optimizers import Average, Optimizer
from privfeat.networks.training.units import Units, alike_microbatch

GRADIENT = "gradient"
_AHEAD = 2  # batches that are read before they are used


@dataclass
class TrainState:
    """Everything that is carried from step to step; nothing in it is sensitive."""

    step: int  # number of steps that are done
    parameters: Parameters
    optimizer: Any
    average: Parameters | None  # of those after every step, or after the last ones


@dataclass(frozen=True)
class Trainer:
    """One noisy step after another, each within the plan of a mechanism.

    **Guarantee.** Each step releases one sum, of sensitivity 1 (2 under replace-one)
    since every unit's part is at most the clip norm by which the sum is divided. An
    empty step releases noise. All else is computed from releases and public values.

    **Several processes.** Which units a step draws, and how they are dealt into
    physical batches, is as in one process. Each batch is summed by one of them, and
    batch sums are whole numbers on a grid: their total is that of one process, bit for
    bit, if devices compute a record's gradient alike. Noise is added to it once.
    """

    clipped_sum: Callable[..., Parameters]  # from `engine.clipped_sums`
    units: Units  # the records, or users, that steps are sampled from
    optimizer: Optimizer
    names: tuple[str, ...]  # of the parameters that are trained
    # what sums are divided by: public, whatever number of units a step drew
    expected_batch_size: float
    microbatch_size: int
    clip_phases: Sequence[tuple[float, float]]  # from which share of the steps; norm
    exact: bool  # gradients are clipped and rounded, so that their sums are exact
    n_iter: int
    average: Average | None
    keys: KeyStream
    team: Team  # the processes that train together

    def start(
        self, parameters: Parameters, records: NDArray[Any], targets: NDArray[Any]
    ) -> tuple["Trainer", TrainState]:
        """Return the trainer, its batches tried, and the state before the first step.

        Of ``records`` and ``targets``, of length 1, shapes and types alone are used.

        TypeError if the optimizer needs more than gradients and parameters for a step,
        or JAX has no gradient of each record: found here, before the fit is charged.
        ValueError if sums of so many parameters, or records at a time, are not exact.
        """
        n_slots, like = self.microbatch_size, (parameters, records, targets)
        if self.exact:
            check_batches(sum(parameters[name].size for name in self.names), n_slots)
        self._rehearse(*like)
        if self.exact:
            how = self.units, self.clipped_sum, n_slots, self.team
            n_slots = alike_microbatch(*how, *like)
        moving = {name: parameters[name] for name in self.names}
        average = None if self.average is None else dict(moving)
        optimizer = self.optimizer.init(moving)
        try:
            jax.eval_shape(partial(_update, self.optimizer), moving, optimizer, moving)
        except Exception as error:
            raise TypeError(
                "optimizer must take a step from gradients and parameters alone, but "
                f"one raised: {error}. Pass another optax optimizer."
            ) from error
        state = TrainState(0, dict(parameters), optimizer, average)
        return replace(self, microbatch_size=n_slots), state

    def _rehearse(
        self, parameters: Parameters, records: NDArray[Any], targets: NDArray[Any]
    ) -> None:
        """Raise TypeError unless the sum of a batch can be traced; nothing is computed.

        Some operations have no rule for ``vmap``, by which records are kept apart.
        """
        n = self.microbatch_size

        def batch_sum(inputs: Any, targets: Any) -> Parameters:
            batch = self.units.alone(inputs, targets)
            valid, radius = jnp.ones(n, bool), jnp.float32(1.0)
            return self.clipped_sum(parameters, *batch, valid, radius)

        # views of one zero
        inputs = np.broadcast_to(np.float32(0.0), (n, 1, *records.shape[1:]))
        zero = np.zeros((), targets.dtype)
        labels = np.broadcast_to(zero, (n, *targets.shape[1:]))
        try:
            with jax.default_matmul_precision("highest"):
                jax.eval_shape(batch_sum, inputs, labels)
        except Exception as error:
            raise TypeError(
                "model must have a gradient of each record under jax.vmap, but one "
                f"raised: {error}. Leave out the operation that it names."
            ) from error

    def run(
        self, mechanism: GaussianMechanism, state: TrainState, steps: Iterable[int]
    ) -> Iterator[TrainState]:
        """Yield the state after each of the ``steps``.

        ``mechanism`` plans the query ``"gradient"``: a sum of gradients in units of the
        clip norm, once a step.
        """
        sampler, n = mechanism.sampler(GRADIENT), self.units.n_units
        for _ in steps:
            drawn = np.flatnonzero(sampled(self.team, sampler, n))
            state = self.step(mechanism, state, drawn)
            yield state

    def step(
        self, mechanism: GaussianMechanism, state: TrainState, drawn: NDArray[np.intp]
    ) -> TrainState:
        """Return the state after a noisy step on the units that were ``drawn``."""
        share = state.step / self.n_iter
        clip_norm = [norm for start, norm in self.clip_phases if start <= share][-1]
        exact = self._exact(state.parameters, drawn, clip_norm)
        released = mechanism.release(GRADIENT, exact)
        gradient = unflatten(
            released.value * (clip_norm / self.expected_batch_size),
            state.parameters,
            self.names,
        )
        moving = {name: state.parameters[name] for name in self.names}
        moving, optimizer = _update(self.optimizer, gradient, state.optimizer, moving)
        average = state.average
        if average is not None and self.average is not None:
            weight = self.average.weight(state.step, self.n_iter)
            average = optax.incremental_update(moving, average, weight)
        return TrainState(state.step + 1, state.parameters | moving, optimizer, average)

    def _exact(
        self, parameters: Parameters, drawn: NDArray[np.intp], clip_norm: float
    ) -> ExactSum:
        """Return the sum of this process's clipped gradients, over the clip norm."""
        size = sum(parameters[name].size for name in self.names)
        total = BatchTotal(self.exact, size, self.microbatch_size, clip_norm)
        key = self.keys.draw()  # one a step: draws do not depend on physical batches
        if self.team.rows == "own":  # whose numbers others have as well
            key = jax.random.fold_in(key, self.team.index)
        batches = [*physical_batches(drawn, self.microbatch_size)]
        batches = [batches[place] for place in self.team.part(len(batches))]
        units, radius = self.units, jnp.float32(clip_norm)
        read = read_ahead(units.records, batches)
        for numbers, valid, records in passing(read, len(batches)):
            inputs = units.prepare(records, numbers, key)
            targets = jnp.asarray(units.targets[numbers])
            # some accelerators round factors to 10 bits: more than the margin covers
            with jax.default_matmul_precision("highest"):
                found = self.clipped_sum(
                    parameters, inputs, targets, jnp.asarray(valid), radius
                )
            total.add(flatten(found, self.names))
        return total.sum()


def sampled(team: Team, sampler: Sampler | None, n: int) -> Bool[np.ndarray, " n"]:
    """Return which of ``n`` units a step takes; None is the sampler of all.

    Where all processes have the same units the first tosses the coin of each, for all.
    Where each has its own, it tosses their coins itself. Sensitive.
    """
    if sampler is None:
        return np.ones(n, bool)
    if team.rows == "own" or team.size == 1:
        return sampler(n)
    mask = sampler(n) if team.index == 0 else np.zeros(n, bool)
    packed = first_of(team, np.packbits(mask), "sample")
    return np.unpackbits(packed, count=n).astype(bool)


def read_ahead(
    records: Any, batches: Sequence[tuple[Any, Any]]
) -> Iterator[tuple[Any, Any, Any]]:
    """Yield the batches with their records; the next are read while one is used.

    Only records that a batch names are read, and those of `_AHEAD` batches at a time.
    """
    with ThreadPoolExecutor(1) as reader:
        reads = (reader.submit(records.__getitem__, numbers) for numbers, _ in batches)
        waiting: deque[Future[Any]] = deque(islice(reads, _AHEAD))
        for numbers, valid in batches:
            found = waiting.popleft().result()
            waiting.extend(islice(reads, 1))
            yield numbers, valid, found


def physical_batches(
    drawn: Int[np.ndarray, " b"], microbatch_size: int
) -> Iterator[tuple[Int[np.ndarray, " m"], Bool[np.ndarray, " m"]]]:
    """Yield the units in batches of one size; none for none. Sensitive.

    A batch is the numbers of its units, and which of its slots hold one: the last batch
    is filled up with its last unit.
    """
    for start in range(0, len(drawn), microbatch_size):
        part = drawn[start : start + microbatch_size]
        empty, valid = (0, microbatch_size - len(part)), np.ones(len(part), bool)
        yield np.pad(part, empty, mode="edge"), np.pad(valid, empty)


@partial(jax.jit, static_argnames="names")
def flatten(parameters: Parameters, names: tuple[str, ...]) -> Num[Array, " p"]:
    """Return the named arrays as one vector, in that order."""
    return jnp.concatenate([widened(parameters[name]).ravel() for name in names])


def unflatten(
    vector: NDArray[np.float64], like: Parameters, names: tuple[str, ...]
) -> dict[str, NDArray[np.float32]]:
    """Return a vector as the named arrays, in the shapes of ``like``."""
    ends = np.cumsum([like[name].size for name in names])[:-1]
    return {
        name: part.reshape(like[name].shape).astype(np.float32)
        for name, part in zip(names, np.split(vector, ends), strict=True)
    }


def check_finite(parameters: Parameters) -> None:
    """Raise FloatingPointError unless a trained network has finite parameters."""
    if not all(np.all(np.isfinite(leaf)) for leaf in parameters.values()):
        raise FloatingPointError(
            "parameters must be finite, got overflow; the budget is spent. Pass a "
            "smaller learning_rate."
        )


@partial(jax.jit, static_argnums=0)
def _update(
    optimizer: Optimizer, gradient: Parameters, state: Any, moving: Parameters
) -> tuple[Parameters, Any]:
    # optax mixes integer counts with floats
    with jax.numpy_dtype_promotion("standard"):
        updates, state = optimizer.update(gradient, state, moving)
        moved: Parameters = optax.apply_updates(moving, updates)
    return moved, state
