"""The parameters that both estimators share, and what follows from them alone."""

import math
import os
from collections.abc import Callable, Mapping
from functools import partial
from numbers import Integral
from typing import Any, Literal, get_args

from flax import nnx

from privfeat._checks import (
    check_bool,
    check_called,
    check_choice,
    check_int,
    check_positive,
    check_real,
)
from privfeat._types import ACCOUNTINGS, Accounting, Adjacency, Unit
from privfeat.core.accounting.calibration import DEFAULT_EPSILON, plan_releases
from privfeat.core.accounting.plan import Query, ReleasePlan
from privfeat.core.bounds import sensitivity
from privfeat.core.bounds.grid import CLIP_RANGE
from privfeat.core.noise.keys import KeyStream
from privfeat.estimation.bases import PrivateEstimator
from privfeat.networks.engine.choice import Engine
from privfeat.networks.engine.clipping import ClipFactor, ClipStyle, check_clip_norm
from privfeat.networks.images.augment import Augmentation, voted
from privfeat.networks.training.adaptive import NormBounds
from privfeat.networks.training.banded import Noise, banded
from privfeat.networks.training.defaults import BatchSize, fit_length
from privfeat.networks.training.federated import LocalTraining
from privfeat.networks.training.loop import GRADIENT
from privfeat.networks.training.optimizers import (
    Average,
    Optimizer,
    Schedule,
    make_optimizer,
)
from privfeat.networks.training.resuming import check_folder

Model = str | nnx.Module | Callable[..., nnx.Module]
Clipping = Literal["fixed", "adaptive"]
_LOCAL_RATE = 0.1
_DEFAULT_OPTIMIZERS: dict[Unit, str] = {"record": "adam", "user": "sgd"}
_CHOICES = {
    "noise": get_args(Noise),
    "clipping": get_args(Clipping),
    "clip_factor": get_args(ClipFactor),
    "clip_style": get_args(ClipStyle),
    "engine": get_args(Engine),
    "augmentation": get_args(Augmentation),
}
# Whole numbers from 1 up to these, and those that may be None as well.
_COUNTS = {"n_copies": 1024, "n_votes": 1024, "local_epochs": 10**4}
_COUNTS["checkpoint_every"] = 2**63 - 1
_OPTIONAL_COUNTS = {
    "bands": 256,
    "n_iter": 10**7,
    "microbatch_size": 2**16,
    "max_group_size": 2**20,
    "local_batch_size": 2**31 - 1,
}


class DPSGDParameters(PrivateEstimator):
    """Keeps what an estimator was made with, and checks it when a fit starts."""

    model: Model = "mlp"
    noise_multiplier: float | None = None
    adjacency: Adjacency = "add_remove"
    accounting: Accounting | None = None
    noise: Noise = "independent"
    bands: int | None = None
    epochs: float | None = None
    n_iter: int | None = None
    expected_batch_size: BatchSize = "auto"
    microbatch_size: int | Literal["largest"] | None = None
    clipping: Clipping = "fixed"
    clip_norm: float | tuple[tuple[float, float], ...] | Mapping[str, float] = 1.0
    clip_factor: ClipFactor = "abadi"
    clip_style: ClipStyle = "flat"
    norm_beta: float = 2.0
    norm_share: float = 0.1
    initial_clip_norm: float | None = None
    engine: Engine = "auto"
    trust_model: bool = False
    optimizer: str | Optimizer | None = None
    learning_rate: float | None = None
    schedule: Schedule = "constant"
    warmup_steps: int = 0
    weight_decay: float = 0.0
    momentum: float | None = None
    dampening: float = 0.0
    ema_decay: float | None = None
    average_from: float | None = None
    augmentation: Augmentation = "none"
    n_copies: int = 1
    n_votes: int = 1
    frozen: tuple[str, ...] | int | str = ()
    weights: str | os.PathLike[str] | Mapping[str, Any] | None = None
    max_group_size: int | None = None
    local_epochs: int = 1
    local_batch_size: int | None = None
    local_learning_rate: float | None = None
    checkpoint_dir: str | os.PathLike[str] | None = None
    checkpoint_every: int = 100
    on_step: Callable[[int, Any], object] | None = None
    verbose: int = 0

    def _check_parameters(self) -> None:
        """Check the parameters that nothing else does; nothing is stored."""
        for name, allowed in _CHOICES.items():
            check_choice(name, getattr(self, name), allowed)
        if self.accounting is not None:
            check_choice("accounting", self.accounting, ACCOUNTINGS)
        for name, high in _COUNTS.items():
            check_int(name, getattr(self, name), low=1, high=high)
        for name, high in _OPTIONAL_COUNTS.items():
            if getattr(self, name) is not None and not (
                name == "microbatch_size" and getattr(self, name) == "largest"
            ):
                check_int(name, getattr(self, name), low=1, high=high)
        if self.epochs is not None:
            check_real("epochs", self.epochs, low=0.0, high=1e6, include_low=False)
        if self.expected_batch_size not in (None, "auto"):
            check_real("expected_batch_size", self.expected_batch_size, low=1e-6)
        if self.bands is not None and self.noise != "banded":
            raise ValueError(
                f"noise must be 'banded' with bands, got {self.noise!r}. Pass it."
            )
        self._check_clipping()
        check_bool("trust_model", self.trust_model)
        self._average()
        names = ("all_but_head", "all_but_last_block")
        if self.frozen not in names and not isinstance(self.frozen, tuple | Integral):
            raise TypeError(
                "frozen must be a tuple of beginnings of parameter names, a number of "
                f"groups of blocks, {names[0]!r} or {names[1]!r}, got {self.frozen!r}."
            )
        if not isinstance(self.weights, str | os.PathLike | Mapping | None):
            raise TypeError(
                "weights must be None, a path, or the parameters_ of another fit, got "
                f"{type(self.weights).__name__}."
            )
        if self.on_step is not None:
            check_called("on_step", self.on_step, "step", "model")
        if isinstance(self.model, nnx.Module) and self.weights is not None:
            raise TypeError(
                "weights must be None for a model that is a module, which has its own. "
                "Pass them to load_timm_weights."
            )
        self._check_local()
        check_int("verbose", self.verbose, low=0)
        if self.checkpoint_dir is not None:
            check_folder(self.checkpoint_dir)

    def _check_clipping(self) -> None:
        """Check how gradients are bounded."""
        check_clip_norm(self.clip_norm, self.clip_style)
        check_real("norm_beta", self.norm_beta, low=1.0, high=1e3)
        check_real("norm_share", self.norm_share, low=1e-4, high=0.15)
        if self.initial_clip_norm is not None:
            low, high = CLIP_RANGE
            check_real("initial_clip_norm", self.initial_clip_norm, low=low, high=high)
        if self.clipping != "adaptive" and self._norm_bounds() != NormBounds():
            raise ValueError(
                "clipping must be 'adaptive' for norm_beta, norm_share or "
                f"initial_clip_norm, got {self.clipping!r}."
            )
        if self.clipping == "adaptive" and isinstance(self.clip_norm, tuple | Mapping):
            raise ValueError(
                "clip_norm must be a number for clipping='adaptive', got "
                f"{self.clip_norm!r}. Pass the multiple of the mean norm, such as 1."
            )

    def _norm_bounds(self) -> NormBounds:
        """Return how bounds follow the norms."""
        return NormBounds(self.norm_beta, self.norm_share, self.initial_clip_norm)

    def _voting(self) -> Callable[..., Any]:
        """Return what makes one prediction of the views of a record."""
        n_votes = int(self.n_votes)
        return partial(voted, augmentation=self.augmentation, n_votes=n_votes)

    def _average(self) -> Average | None:
        """Return which average of the parameters is kept, checked."""
        if self.average_from is None:
            if self.ema_decay is None:
                return None
            return Average(check_real("ema_decay", self.ema_decay, low=0.0, high=1.0))
        if self.ema_decay is not None:
            raise ValueError(
                f"ema_decay must be None with average_from, got {self.ema_decay!r}. "
                "Pass one of them: each is an average."
            )
        start = self.average_from
        return Average(0.0, check_real("average_from", start, low=0.0, high=1.0))

    def _check_local(self) -> None:
        """Check the parameters that only a fit with groups has a use for."""
        if self.local_learning_rate is not None:
            check_positive("local_learning_rate", self.local_learning_rate)
        local = (self.local_epochs, self.local_batch_size, self.local_learning_rate)
        if self.max_group_size is None and local != (1, None, None):
            raise ValueError(
                "max_group_size must be given for local_epochs, local_batch_size "
                "or local_learning_rate, got None. Pass it, and groups to fit."
            )
        if self.max_group_size is not None and self.microbatch_size == "largest":
            raise ValueError(
                "microbatch_size must be None or a number with groups, got 'largest'."
            )
        if self.max_group_size is not None and (
            self.engine == "fast" or self.optimizer in ("sgld", "sghmc")
        ):
            raise ValueError(
                "engine must not be 'fast', nor optimizer 'sgld' or 'sghmc', with "
                f"groups, got {self.engine!r} and {self.optimizer!r}. Pass 'auto', and "
                "another optimizer: the update of a user is no gradient."
            )

    def _local_training(self) -> LocalTraining:
        """Return what users do with their records."""
        n_records = int(self.max_group_size or 1)
        return LocalTraining(
            max_group_size=n_records,
            epochs=int(self.local_epochs),
            batch_size=min(int(self.local_batch_size or n_records), n_records),
            learning_rate=float(self.local_learning_rate or _LOCAL_RATE),
        )

    def _schedule(self, n_units: int) -> tuple[int, float]:
        """Return the number of steps and the expected batch size."""
        batch, given = self.expected_batch_size, self.n_iter
        if given and batch != "auto" and (size := float(batch or n_units)) <= n_units:
            return int(given), size
        no_budget = self.epsilon is None and self.noise_multiplier is None
        epsilon = DEFAULT_EPSILON if no_budget else self.epsilon
        asked = batch, self.epochs, given
        return fit_length(n_units, *asked, epsilon, self.delta, self.adjacency)

    def _plan(self, n_units: int) -> tuple[ReleasePlan, int, float]:
        """Return the plan, the number of steps and the expected batch size."""
        n_iter, batch_size = self._schedule(n_units)
        share = batch_size / n_units
        bound = sensitivity.clipped_gradient(1.0, self.adjacency)
        query = Query(GRADIENT, bound, count=n_iter, sampling_prob=share)
        epsilon, noise = self.epsilon, self.noise_multiplier
        given = epsilon is None and noise is not None
        if given and not check_real("noise_multiplier", noise, low=0.0, high=1e6):
            epsilon, noise = math.inf, None  # without noise there is no other
        budget: dict[str, Any] = {"epsilon": epsilon, "noise_multiplier": noise}
        budget |= {"delta": self.delta, "adjacency": self.adjacency}
        if self.noise == "banded":
            query = banded(query, self.bands, **budget)
        accounting = self.accounting or ("pld" if query.sampling_prob < 1 else "exact")
        plan = plan_releases([query], accounting=accounting, **budget)
        return plan, n_iter, batch_size

    def _optimizer(
        self,
        n_iter: int,
        unit: Unit,
        n_units: int,
        keys: KeyStream,
        shapes: list[tuple[int, ...]],
    ) -> Optimizer:
        """Return the optimizer of the fit, with what its parameters leave open."""
        optimizer, rate = self.optimizer, self.learning_rate
        if optimizer is None:
            optimizer = _DEFAULT_OPTIMIZERS[unit]
            # the mean of the updates is what the parameters move by
            rate = 1.0 if rate is None and unit == "user" else rate
        # what a network knows from public weights is not to be lost in noise
        started = self.weights is not None or isinstance(self.model, nnx.Module)
        return make_optimizer(
            optimizer,
            learning_rate=rate,
            schedule=self.schedule,
            warmup_steps=self.warmup_steps,
            n_iter=n_iter,
            weight_decay=self.weight_decay,
            n_records=n_units,
            draw_key=keys.draw,
            momentum=self.momentum,
            dampening=self.dampening,
            shapes=() if started or unit == "user" else shapes,
        )
