"""The parameters that both estimators share, and what follows from them alone."""

import json
import math
import os
from collections.abc import Callable
from numbers import Integral
from typing import Any

from flax import nnx
from sklearn.base import BaseEstimator

from privfeat._checks import check_choice, check_int, check_real
from privfeat._encoding import encode
from privfeat._types import Adjacency
from privfeat.core import sensitivity
from privfeat.core.calibration import plan_releases
from privfeat.core.charging import check_ledger
from privfeat.core.keys import KeyStream
from privfeat.core.ledger import PrivacyLedger
from privfeat.core.plan import Query, ReleasePlan
from privfeat.core.processes import check_alone
from privfeat.trainers.adaptive import CLIPPINGS, Clipping, check_adaptive
from privfeat.trainers.augment import AUGMENTATIONS, Augmentation
from privfeat.trainers.checkpoints import Folder, check_folder
from privfeat.trainers.clipping import (
    CLIP_FACTORS,
    CLIP_STYLES,
    ClipFactor,
    ClipStyle,
    check_phases,
)
from privfeat.trainers.engine import ENGINES, Engine
from privfeat.trainers.loop import GRADIENT
from privfeat.trainers.optimizers import Optimizer, Schedule, make_optimizer
from privfeat.trainers.weights import check_weights

Model = str | nnx.Module | Callable[..., nnx.Module]
# What an interrupted fit may find changed. The seed must not be written anywhere.
_NOT_COMPARED = (
    "checkpoint_dir",
    "checkpoint_every",
    "ledger",
    "random_state",
    "verbose",
)


class DPSGDParameters(BaseEstimator):
    """Keeps what an estimator was made with, and checks it when a fit starts."""

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
        frozen: tuple[str, ...] | int,
        weights: str | os.PathLike[str] | None,
        ledger: PrivacyLedger | None,
        checkpoint_dir: Folder | None,
        checkpoint_every: int,
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
        self.weights = weights
        self.ledger = ledger
        self.checkpoint_dir = checkpoint_dir
        self.checkpoint_every = checkpoint_every
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        """Check the parameters that nothing else does; nothing is stored."""
        check_alone(type(self).__name__)
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
        if isinstance(self.frozen, str) or not isinstance(
            self.frozen, tuple | Integral
        ):
            raise TypeError(
                "frozen must be a tuple of beginnings of parameter names, or a number "
                f"of groups of blocks, got {self.frozen!r}."
            )
        check_weights(self.weights, self.model)
        check_int("verbose", self.verbose, low=0)
        check_ledger(self.ledger)
        check_folder(self.checkpoint_dir, self.checkpoint_every)

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

    def _configuration(self) -> str:
        """Return, as text, all parameters that a fit in two runs must not change."""
        params = self.get_params(deep=False)
        return json.dumps(
            {
                name: _described(name, value)
                for name, value in sorted(params.items())
                if name not in _NOT_COMPARED
            }
        )


def _described(name: str, value: Any) -> Any:
    """Return a parameter as JSON; of an object only the class."""
    try:
        return encode(name, value)
    except TypeError:
        return type(value).__qualname__
