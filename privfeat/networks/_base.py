"""The base class of networks: one private fit, and scores."""

from abc import ABC, abstractmethod
from functools import partial
from typing import Any, Self

import jax
import numpy as np
from flax import nnx
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from privfeat._compilation import kept_compiled_code
from privfeat.core.accounting.plan import ReleasePlan
from privfeat.core.noise.keys import KeyStream
from privfeat.core.private_fit import private_fit
from privfeat.estimation.apart import fitted_apart
from privfeat.estimation.inputs import Users, check_users, seed_of
from privfeat.estimation.problem import Problem
from privfeat.networks._resuming import ResumedRuns
from privfeat.networks.adaptive import BOUNDS, with_adaptive_bounds
from privfeat.networks.augment import Views, check_images
from privfeat.networks.batches import fitting_microbatch
from privfeat.networks.clipping import check_phases
from privfeat.networks.devices import over_devices, whole_batches
from privfeat.networks.engine import (
    ClipRule,
    RecordLoss,
    choose_engine,
    clipped_sum,
    dry_run,
    record_parts,
)
from privfeat.networks.federated import whole_users
from privfeat.networks.images import TO_UNIT_RANGE, as_records, pixel_scale, to_inputs
from privfeat.networks.loop import Trainer
from privfeat.networks.model import Network, check_scores, check_separate
from privfeat.networks.models import build
from privfeat.networks.prediction import scores_of
from privfeat.networks.rows import check_rows
from privfeat.networks.units import Units, single_records
from privfeat.networks.weights import load_timm_weights

# A radius that no gradient reaches: clipping is off without privacy.
_UNCLIPPED = ((0.0, 2.0**60),)


class DPSGDModel(ResumedRuns, ABC):
    """A network trained by noisy sums of clipped per-record gradients.

    ``fit`` is a template: check, plan the releases, state their cost, and only then
    draw a batch or noise. A subclass says what it makes of ``y``.
    """

    @fitted_apart
    def fit(self, X: Any, y: ArrayLike, groups: ArrayLike | None = None) -> Self:
        """Train the network with differential privacy for the records of ``(X, y)``.

        Parameters
        ----------
        X : array-like of shape (n_samples, height, width, channels)
            Also (n_samples, height, width), a list of images of one shape, or rows of
            shape (n_samples, n_features). Bytes are mapped to [-1, 1], or to what
            the ``weights`` of a known network were made for; floats are used as they
            are. Sensitive.
        y : array-like of shape (n_samples,), or (n_samples, n_outputs)
            Sensitive.
        groups : array-like of shape (n_samples,), optional
            The user that each record belongs to: integers only, or strings only. All
            records of a user are then protected together; needs ``max_group_size``.
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
        problem = self._problem(y)
        targets, n_outputs = problem.targets, problem.n_outputs
        if len(targets) != len(records):
            raise ValueError("X and y must not have inconsistent lengths.")
        check_images(self.augmentation, records.shape[1:])
        users = check_users(groups, self.max_group_size, len(records), X)
        with kept_compiled_code():
            network = self._network(records.shape[1:], n_outputs, keys)
            units, microbatch_size = self._units(network, records, problem, users, keys)
        n_iter, batch_size = self._schedule(len(units))
        optimizer = self._optimizer(n_iter, units, keys)
        plan = self._plan(n_iter, batch_size / len(units))
        frozen = network.frozen_names(self.frozen)
        names = tuple(name for name in network.initial if name not in frozen)
        fit = private_fit(
            self,
            plan,
            keys,
            public=(
                f"the shape of a record {records.shape[1:]}",
                *problem.public,
                "all constructor parameters but random_state",
                "the initial parameters of the network",
                *units.public,
                *self._vouched(units),
                "that all values are finite",
            ),
            n_units=len(units),
            forget=("parameters_",),
            unit=units.kind,
            classes_read=problem.classes_read,
        )
        private = plan.private
        rule = ClipRule(
            self.clip_factor if private else "abadi",
            self.clip_style if private else "flat",
        )
        trainer = Trainer(
            clipped_sum=over_devices(
                clipped_sum(network, self._loss(), rule, units.engine, frozen)
            ),
            optimizer=optimizer,
            names=names,
            expected_batch_size=batch_size,
            microbatch_size=microbatch_size,
            clip_phases=check_phases(self.clip_norm) if private else _UNCLIPPED,
            n_iter=n_iter,
            ema_decay=self.ema_decay,
            prepare=units.prepare,
            keys=keys,
        )
        fitted = problem.fitted | {
            "input_shape_": tuple(records.shape[1:]),
            "n_outputs_": n_outputs,
            "n_iter_": n_iter,
            "pixel_scale_": pixel_scale(self.model, self.weights),
        }
        initial = network.initial
        with kept_compiled_code():
            if private and self.clipping == "adaptive":
                parts = record_parts(
                    network, self._loss(), rule.style, units.engine, names
                )
                of_one = records[:1], targets[:1], n_outputs, units.alone
                trainer, initial = with_adaptive_bounds(
                    trainer, parts, rule, initial, *of_one
                )
            start = trainer.start(initial)
            parameters = self._train(trainer, start, units, fit, fitted)
        return self._with_model(parameters, fitted)

    def restore(self) -> Self:
        """Take the model of the finished fit in ``checkpoint_dir``, without its data.

        Returns
        -------
        self : object
            As that ``fit`` returned it. Nothing is released, and nothing is charged.

        Raises
        ------
        ValueError
            If the folder holds no finished fit of these parameters.
        PrivacyError
            If a fit holds the folder.
        """
        self._check_parameters()
        parameters, statement, fitted = self._finished()
        self.privacy_ = statement
        return self._with_model(parameters, fitted)

    def planned(self, n_units: int) -> ReleasePlan:
        """Return what ``fit`` would release of so many records, or users, and its cost.

        Nothing is drawn or charged. The number is of private data: the plan is too.
        """
        self._check_parameters()
        n_iter, batch_size = self._schedule(n_units)
        return self._plan(n_iter, batch_size / n_units)

    def _with_model(self, parameters: Any, fitted: dict[str, Any]) -> Self:
        """Set the attributes of a fit."""
        parameters.pop(BOUNDS, None)
        for name, value in fitted.items():
            setattr(self, name, value)
        self.parameters_ = {n: np.asarray(leaf) for n, leaf in parameters.items()}
        return self

    @abstractmethod
    def _problem(self, y: Any) -> Problem:
        """Return what ``y`` asks for."""

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

    def _units(
        self,
        network: Network,
        records: NDArray[Any],
        problem: Problem,
        users: Users | None,
        keys: KeyStream,
    ) -> tuple[Units, int]:
        """Return what is protected as one, and how many of it are worked on at once."""
        targets, n_outputs = problem.targets, problem.n_outputs
        inputs = to_inputs(records[:1])
        tape = dry_run(network, inputs)
        named = isinstance(self.model, str)
        if not named:
            check_scores(network, inputs, n_outputs)
            check_separate(network, inputs.shape[1:])
        scale = pixel_scale(self.model, self.weights)
        views = Views(self.augmentation, self.n_copies, scale)
        if users is None:
            trial = partial(check_rows, network, self._loss(), inputs, targets[:1])
            engine = choose_engine(
                self.engine,
                network,
                tape,
                None if named else trial,
                trusted=named or self.trust_model,
            )
            units = single_records(records, targets, views, engine)
            found = fitting_microbatch(network, tape, self.n_copies)
        else:
            local, key = self._local_training(), keys.draw_integer()
            units = whole_users(records, targets, views, users, key, local)
            n_views = self.n_copies * local.batch_size
            # what was lost, the parameters that are left, and a gradient
            found = fitting_microbatch(network, tape, n_views, n_gradients=3)
        found *= jax.local_device_count()
        return units, whole_batches(self.microbatch_size or found)

    def _vouched(self, units: Units) -> tuple[str, ...]:
        """Return what the guarantee takes from the user about the network."""
        if isinstance(self.model, str) or units.engine != "fast":
            return ()
        return ("that the network treats every record by itself (trust_model=True)",)

    def _scores(self, X: Any) -> NDArray[np.float64]:
        """Return the outputs of the network, of shape (n_samples, n_outputs)."""
        check_is_fitted(self, "parameters_")
        records = as_records(X)
        if records.shape[1:] != self.input_shape_:
            raise ValueError(
                f"X must hold records of shape {self.input_shape_}, got "
                f"{records.shape[1:]}."
            )
        scale = getattr(self, "pixel_scale_", TO_UNIT_RANGE)  # older models have none
        with kept_compiled_code():
            network = self._network(self.input_shape_, self.n_outputs_, None)
            return scores_of(
                network,
                self.parameters_,
                records,
                self.augmentation,
                int(self.n_votes),
                scale,
                alone=not isinstance(self.model, str),
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.non_deterministic = True
        return tags
