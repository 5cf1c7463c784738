"""What the two estimators share: parameters, one private fit, scores."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable
from functools import partial
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from privfeat.core.charging import charged
from privfeat.core.keys import KeyStream
from privfeat.core.mechanisms import GaussianMechanism
from privfeat.core.statement import PrivacyStatement
from privfeat.linear._inputs import seed_of, warn_of_weak_choices
from privfeat.trainers._parameters import DPSGDParameters
from privfeat.trainers.adaptive import BOUNDS, with_adaptive_bounds
from privfeat.trainers.augment import Augmentation, augmented, check_images, voted
from privfeat.trainers.batches import fitting_microbatch
from privfeat.trainers.checkpoints import Checkpoint, open_checkpoints
from privfeat.trainers.clipping import check_phases
from privfeat.trainers.devices import over_devices, whole_batches
from privfeat.trainers.engine import (
    ClipRule,
    FastEngineError,
    RecordLoss,
    clipped_sum,
    dry_run,
    record_parts,
)
from privfeat.trainers.images import as_records, to_inputs
from privfeat.trainers.loop import GRADIENT, Trainer, TrainState
from privfeat.trainers.model import Network, Parameters, check_separate
from privfeat.trainers.networks import build
from privfeat.trainers.weights import load_timm_weights

# A radius that no gradient reaches: clipping is off without privacy.
_UNCLIPPED = ((0.0, 2.0**60),)
_PREDICT_RECORDS = 64


class DPSGDModel(DPSGDParameters, ABC):
    """A network trained by noisy sums of clipped per-record gradients.

    ``fit`` is a template: check, plan the releases, state their cost, and only then
    draw a batch or noise. A subclass says what it makes of ``y``.
    """

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
        BudgetExceededError, LedgerError
            If ``ledger`` has too little left, or cannot be used. Nothing was charged.
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
        frozen = network.frozen_names(self.frozen)
        names = tuple(name for name in network.initial if name not in frozen)
        statement = PrivacyStatement.from_plan(
            plan, public=self._public(records, public), seeded=keys.seeded
        )
        private = plan.private
        rule = ClipRule(
            self.clip_factor if private else "abadi",
            self.clip_style if private else "flat",
        )
        trainer = Trainer(
            clipped_sum=over_devices(
                clipped_sum(network, self._loss(), rule, engine, frozen)
            ),
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
        start = trainer.start(initial)
        parameters = self._train(trainer, start, records, targets, statement)
        parameters.pop(BOUNDS, None)
        for name, value in fitted.items():
            setattr(self, name, value)
        self.input_shape_ = tuple(records.shape[1:])
        self.n_outputs_ = n_outputs
        self.n_iter_ = n_iter
        self.parameters_ = {n: np.asarray(leaf) for n, leaf in parameters.items()}
        return self

    def _train(
        self,
        trainer: Trainer,
        state: TrainState,
        records: NDArray[Any],
        targets: NDArray[Any],
        statement: PrivacyStatement,
    ) -> Parameters:
        """Return the parameters after all steps, those of an interrupted run included.

        The fit is charged before its first step, or was when it was interrupted.
        """
        configuration = [type(self).__name__, self._configuration()]
        configuration += [statement.to_json(), str(jax.eval_shape(lambda: vars(state)))]
        if self.ledger is not None:
            configuration.append(self.ledger.budget.uid)
        with open_checkpoints(
            self.checkpoint_dir, self.checkpoint_every, json.dumps(configuration)
        ) as checkpoints:
            number = None
            found = checkpoints.newest(state) if checkpoints is not None else None
            if found is not None:
                state, number = found.state, found.charge
                trainer.keys.skip_to(found.position)
                trainer.mechanism.count_as_drawn(GRADIENT, state.step)
            steps = self._steps(state.step, trainer.n_iter)
            # a fit with nothing left to draw has nothing to charge either
            ledger = self.ledger if state.step < trainer.n_iter else None
            with charged(
                ledger, statement, estimator=type(self).__name__, number=number
            ) as number:
                # From here on the budget is spent, whatever happens: the statement
                # stands, and parameters of an earlier fit do not.
                self.privacy_ = statement
                self.__dict__.pop("parameters_", None)
                for after in trainer.run(state, records, targets, steps):
                    state = after
                    if checkpoints is not None:
                        checkpoints.keep(
                            Checkpoint(state, trainer.keys.position, number),
                            last=state.step == trainer.n_iter,
                        )
                trainer.mechanism.check_complete()
                parameters = trainer.result(state)
                if not all(np.all(np.isfinite(leaf)) for leaf in parameters.values()):
                    raise FloatingPointError(
                        "parameters must be finite, got overflow; the budget is spent. "
                        "Pass a smaller learning_rate."
                    )
        return parameters

    @abstractmethod
    def _targets(
        self, y: Any
    ) -> tuple[NDArray[Any], dict[str, Any], int, tuple[str, ...], bool]:
        """Return targets, fitted attributes, outputs, public facts, classes read."""

    @abstractmethod
    def _loss(self) -> RecordLoss:
        """Return the loss of one record."""

    def _network(
        self, input_shape: tuple[int, ...], n_outputs: int, keys: KeyStream | None
    ) -> Network:
        """Return the network; without keys its parameters are only placeholders."""
        if isinstance(self.model, nnx.Module):
            return Network(self.model)
        rngs = nnx.Rngs(params=jax.random.key(0) if keys is None else keys.draw())
        if isinstance(self.model, str):
            module = build(self.model, input_shape, n_outputs, rngs=rngs)
        else:
            module = self.model(input_shape, n_outputs, rngs=rngs)
        if self.weights is not None and keys is not None:
            module = load_timm_weights(module, self.weights)
        return Network(module)

    def _engine(self, network: Network, records: NDArray[Any]) -> tuple[Any, int]:
        """Return the engine that can train the network, and the physical batch."""
        inputs = to_inputs(records[:1])
        tape = dry_run(network, inputs)
        if not isinstance(self.model, str):
            check_separate(network, inputs.shape[1:])
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
        found *= jax.local_device_count()
        return engine, whole_batches(self.microbatch_size or found)

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

    def _steps(self, start: int, n_iter: int) -> Iterable[int]:
        """Return the step numbers left, behind a progress bar if ``verbose``."""
        steps = range(start, n_iter)
        if not self.verbose:
            return steps
        from tqdm.auto import tqdm

        bar: Iterable[int] = tqdm(
            steps, desc=type(self).__name__, unit="step", initial=start, total=n_iter
        )
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
