"""What the two estimators share: parameters, one private fit, scores."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from privfeat._checks import check_choice, check_int, check_real
from privfeat._types import Adjacency
from privfeat.core import sensitivity
from privfeat.core.calibration import plan_releases
from privfeat.core.keys import KeyStream
from privfeat.core.mechanisms import GaussianMechanism
from privfeat.core.plan import Query, ReleasePlan
from privfeat.core.statement import PrivacyStatement
from privfeat.linear._inputs import seed_of, warn_of_weak_choices
from privfeat.trainers.adaptive import (
    BOUNDS,
    CLIPPINGS,
    Clipping,
    check_adaptive,
    with_adaptive_bounds,
)
from privfeat.trainers.augment import (
    AUGMENTATIONS,
    Augmentation,
    augmented,
    check_images,
    voted,
)
from privfeat.trainers.batches import fitting_microbatch
from privfeat.trainers.clipping import (
    CLIP_FACTORS,
    CLIP_STYLES,
    ClipFactor,
    ClipStyle,
    check_phases,
)
from privfeat.trainers.engine import (
    ENGINES,
    ClipRule,
    Engine,
    FastEngineError,
    RecordLoss,
    clipped_sum,
    dry_run,
    record_parts,
)
from privfeat.trainers.images import as_records, to_inputs
from privfeat.trainers.loop import GRADIENT, Trainer
from privfeat.trainers.model import Network
from privfeat.trainers.networks import build
from privfeat.trainers.optimizers import Optimizer, Schedule, make_optimizer

# A radius that no gradient reaches: clipping is off without privacy.
_UNCLIPPED = ((0.0, 2.0**60),)
_PREDICT_RECORDS = 64

Model = str | nnx.Module | Callable[..., nnx.Module]


class DPSGDModel(BaseEstimator, ABC):
    """A network trained by noisy sums of clipped per-record gradients.

    ``fit`` is a template: check, plan the releases, state their cost, and only then
    draw a batch or noise. A subclass says what it makes of ``y``.
    """

    def __init__(
        self,
        *,
        model: Model,
        epsilon: float | None,
        delta: float,
        noise_multiplier: float | None,
        adjacency: Adjacency,
        epochs: float,
        n_iter: int | None,
        expected_batch_size: float | None,
        microbatch_size: int | None,
        clipping: Clipping,
        clip_norm: float | tuple[tuple[float, float], ...],
        clip_factor: ClipFactor,
        clip_style: ClipStyle,
        engine: Engine,
        optimizer: str | Optimizer,
        learning_rate: float | None,
        schedule: Schedule,
        warmup_steps: int,
        weight_decay: float,
        ema_decay: float | None,
        augmentation: Augmentation,
        n_copies: int,
        n_votes: int,
        frozen: tuple[str, ...],
        random_state: Any,
        verbose: int,
    ) -> None:
        self.model = model
        self.epsilon = epsilon
        self.delta = delta
        self.noise_multiplier = noise_multiplier
        self.adjacency = adjacency
        self.epochs = epochs
        self.n_iter = n_iter
        self.expected_batch_size = expected_batch_size
        self.microbatch_size = microbatch_size
        self.clipping = clipping
        self.clip_norm = clip_norm
        self.clip_factor = clip_factor
        self.clip_style = clip_style
        self.engine = engine
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.warmup_steps = warmup_steps
        self.weight_decay = weight_decay
        self.ema_decay = ema_decay
        self.augmentation = augmentation
        self.n_copies = n_copies
        self.n_votes = n_votes
        self.frozen = frozen
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Train the network with differential privacy for the records of ``(X, y)``.

        Parameters
        ----------
        X : array-like of shape (n_samples, height, width, channels)
            Also (n_samples, height, width), a list of images of one shape, or rows of
            shape (n_samples, n_features). Bytes are mapped to [-1, 1], floats are used
            as they are. Sensitive.
        y : array-like of shape (n_samples,), or (n_samples, n_outputs)
            Sensitive.

        Returns
        -------
        self : object
            With ``parameters_`` and ``privacy_``.

        Raises
        ------
        TypeError, ValueError
            If a parameter is out of range, no noise meets the budget, the data is not
            finite or has a wrong shape, or the network mixes records. Nothing has been
            released then. Messages hold no data.
        FloatingPointError
            If the parameters overflow. The budget is spent; ``privacy_`` says so.
        """
        self._check_parameters()
        keys = KeyStream(seed_of(self.random_state))
        records = as_records(X)
        targets, fitted, n_outputs, public, classes_read = self._targets(y)
        if len(targets) != len(records):
            raise ValueError("X and y must not have inconsistent lengths.")
        check_images(self.augmentation, records.shape[1:])
        network = self._network(records.shape[1:], n_outputs, keys)
        engine, microbatch_size = self._engine(network, records)
        n_iter, batch_size = self._schedule(len(records))
        optimizer = self._optimizer(n_iter, len(records), keys)
        plan = self._plan(n_iter, batch_size / len(records))
        warn_of_weak_choices(plan, classes_read=classes_read, seeded=keys.seeded)
        frozen = frozenset(n for n in network.initial if n.startswith(self.frozen))
        names = tuple(name for name in network.initial if name not in frozen)
        if not names:
            raise ValueError(
                f"frozen must leave parameters to train, got {self.frozen!r}."
            )
        statement = PrivacyStatement.from_plan(
            plan, public=self._public(records, public), seeded=keys.seeded
        )
        private = plan.private
        rule = ClipRule(
            self.clip_factor if private else "abadi",
            self.clip_style if private else "flat",
        )
        trainer = Trainer(
            clipped_sum=clipped_sum(network, self._loss(), rule, engine, frozen),
            optimizer=optimizer,
            mechanism=GaussianMechanism(plan, keys),
            names=names,
            expected_batch_size=batch_size,
            microbatch_size=microbatch_size,
            clip_phases=check_phases(self.clip_norm) if private else _UNCLIPPED,
            n_iter=n_iter,
            ema_decay=self.ema_decay,
            prepare=self._views,
            keys=keys,
        )
        initial = network.initial
        if private and self.clipping == "adaptive":
            parts = record_parts(network, self._loss(), rule.style, engine, names)
            trainer, initial = with_adaptive_bounds(
                trainer, parts, rule, initial, records[:1], targets[:1], n_outputs
            )
        # From here on the budget is spent, whatever happens: the statement stands, and
        # parameters of an earlier fit do not.
        self.privacy_ = statement
        self.__dict__.pop("parameters_", None)
        state = trainer.run(
            trainer.start(initial), records, targets, self._steps(n_iter)
        )
        trainer.mechanism.check_complete()
        parameters = trainer.result(state)
        parameters.pop(BOUNDS, None)
        if not all(np.all(np.isfinite(leaf)) for leaf in parameters.values()):
            raise FloatingPointError(
                "parameters must be finite, got overflow; the budget is spent. Pass a "
                "smaller learning_rate."
            )
        for name, value in fitted.items():
            setattr(self, name, value)
        self.input_shape_ = tuple(records.shape[1:])
        self.n_outputs_ = n_outputs
        self.n_iter_ = n_iter
        self.parameters_ = {n: np.asarray(leaf) for n, leaf in parameters.items()}
        return self

    @abstractmethod
    def _targets(
        self, y: Any
    ) -> tuple[NDArray[Any], dict[str, Any], int, tuple[str, ...], bool]:
        """Return targets, fitted attributes, outputs, public facts, classes read."""

    @abstractmethod
    def _loss(self) -> RecordLoss:
        """Return the loss of one record."""

    def _check_parameters(self) -> None:
        """Check the parameters that nothing else does; nothing is stored."""
        if self.n_iter is not None:
            check_int("n_iter", self.n_iter, low=1, high=10**7)
        check_real("epochs", self.epochs, low=0.0, high=1e6, include_low=False)
        if self.expected_batch_size is not None:
            check_real("expected_batch_size", self.expected_batch_size, low=1e-6)
        if self.microbatch_size is not None:
            check_int("microbatch_size", self.microbatch_size, low=1, high=2**16)
        check_phases(self.clip_norm)
        if check_choice("clipping", self.clipping, CLIPPINGS) == "adaptive":
            check_adaptive(self.clip_norm)
        check_choice("clip_factor", self.clip_factor, CLIP_FACTORS)
        check_choice("clip_style", self.clip_style, CLIP_STYLES)
        check_choice("engine", self.engine, ENGINES)
        if self.ema_decay is not None:
            check_real("ema_decay", self.ema_decay, low=0.0, high=1.0)
        check_choice("augmentation", self.augmentation, AUGMENTATIONS)
        check_int("n_copies", self.n_copies, low=1, high=1024)
        check_int("n_votes", self.n_votes, low=1, high=1024)
        if not isinstance(self.frozen, tuple):
            raise TypeError(
                "frozen must be a tuple of beginnings of parameter names, got "
                f"{self.frozen!r}."
            )
        check_int("verbose", self.verbose, low=0)

    def _schedule(self, n_records: int) -> tuple[int, float]:
        """Return the number of steps and the expected batch size."""
        batch_size = float(self.expected_batch_size or n_records)
        if not batch_size <= n_records:
            raise ValueError(
                "expected_batch_size must be at most the number of records, got "
                f"{self.expected_batch_size!r}. Pass None for full batches."
            )
        steps = self.n_iter or math.ceil(float(self.epochs) * n_records / batch_size)
        return int(steps), batch_size

    def _plan(self, n_iter: int, sampling_prob: float) -> ReleasePlan:
        bound = sensitivity.clipped_gradient(1.0, self.adjacency)
        query = Query(GRADIENT, bound, count=n_iter, sampling_prob=sampling_prob)
        return plan_releases(
            [query],
            epsilon=self.epsilon,
            delta=self.delta,
            noise_multiplier=self.noise_multiplier,
            accounting="pld" if sampling_prob < 1.0 else "exact",
            adjacency=self.adjacency,
        )

    def _optimizer(self, n_iter: int, n_records: int, keys: KeyStream) -> Optimizer:
        return make_optimizer(
            self.optimizer,
            learning_rate=self.learning_rate,
            schedule=self.schedule,
            warmup_steps=self.warmup_steps,
            n_iter=n_iter,
            weight_decay=self.weight_decay,
            n_records=n_records,
            draw_key=keys.draw,
        )

    def _network(
        self, input_shape: tuple[int, ...], n_outputs: int, keys: KeyStream | None
    ) -> Network:
        """Return the network; without keys its parameters are only placeholders."""
        if isinstance(self.model, nnx.Module):
            return Network(self.model)
        rngs = nnx.Rngs(params=jax.random.key(0) if keys is None else keys.draw())
        if isinstance(self.model, str):
            return Network(build(self.model, input_shape, n_outputs, rngs=rngs))
        return Network(self.model(input_shape, n_outputs, rngs=rngs))

    def _engine(self, network: Network, records: NDArray[Any]) -> tuple[Any, int]:
        """Return the engine that can train the network, and the physical batch."""
        inputs = to_inputs(records[:1])
        tape = dry_run(network, inputs)
        engine = self.engine
        if engine != "reference":
            try:
                tape.check_knows(network.initial)
                engine = "fast"
            except FastEngineError:
                if engine == "fast":
                    raise
                engine = "reference"
        found = fitting_microbatch(network, tape, self.n_copies)
        return engine, int(self.microbatch_size or found)

    def _views(self, records: Any, numbers: Any, key: Any) -> Any:
        return _views(
            to_inputs(records), numbers, key, self.augmentation, self.n_copies
        )

    def _public(self, records: NDArray[Any], of_targets: tuple[str, ...]) -> Any:
        return (
            f"the shape of a record {records.shape[1:]}",
            *of_targets,
            "all constructor parameters but random_state",
            "the initial parameters of the network",
            "the number of records, which the sampling probability is made of",
            "that all values are finite",
        )

    def _steps(self, n_iter: int) -> Iterable[int]:
        """Return the step numbers, behind a progress bar if ``verbose``."""
        steps = range(n_iter)
        if not self.verbose:
            return steps
        from tqdm.auto import tqdm

        bar: Iterable[int] = tqdm(steps, desc=type(self).__name__, unit="step")
        return bar

    def _scores(self, X: Any) -> NDArray[np.float64]:
        """Return the outputs of the network, of shape (n_samples, n_outputs)."""
        check_is_fitted(self, "parameters_")
        records = as_records(X)
        if records.shape[1:] != self.input_shape_:
            raise ValueError(
                f"X must hold records of shape {self.input_shape_}, got "
                f"{records.shape[1:]}."
            )
        network = self._network(self.input_shape_, self.n_outputs_, None)
        parameters = {n: jnp.asarray(leaf) for n, leaf in self.parameters_.items()}
        of_views = partial(
            voted, augmentation=self.augmentation, n_votes=int(self.n_votes)
        )
        forward = jax.jit(lambda leaves, x: of_views(partial(network, leaves), x))
        scores = []
        for start in range(0, len(records), _PREDICT_RECORDS):
            part = records[start : start + _PREDICT_RECORDS]
            padding = [(0, _PREDICT_RECORDS - len(part))] + [(0, 0)] * (part.ndim - 1)
            inputs = jnp.asarray(to_inputs(np.pad(part, padding)))
            scores.append(np.asarray(forward(parameters, inputs))[: len(part)])
        return np.concatenate(scores).astype(np.float64)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.non_deterministic = True
        return tags


@partial(jax.jit, static_argnums=(3, 4))
def _views(
    inputs: Any, numbers: Any, key: Any, augmentation: Augmentation, n_copies: int
) -> Any:
    return augmented(inputs, numbers, key, augmentation=augmentation, n_copies=n_copies)
