"""The base class of networks: one private fit, and scores."""

from abc import ABC, abstractmethod
from dataclasses import replace
from functools import partial
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from privfeat._types import FIRST_WEIGHTS
from privfeat.core.accounting.plan import ReleasePlan
from privfeat.core.noise.keys import KeyStream, SharedKeys
from privfeat.core.private_fit import private_fit
from privfeat.core.sums.devices import check_answers
from privfeat.core.sums.processes import check_alone, current_team
from privfeat.estimation.fitting import first_of, fitted_apart, kept_compiled_code
from privfeat.estimation.inputs import Users, check_users, seed_of
from privfeat.estimation.labels import Problem
from privfeat.networks.engine.choice import (
    BatchSum,
    check_rows,
    choose_engine,
    sum_of_batch,
)
from privfeat.networks.engine.clipped_sums import dry_run, record_parts
from privfeat.networks.engine.clipping import shares_of
from privfeat.networks.engine.network import Network, check_scores, check_separate
from privfeat.networks.images.augment import Views, to_inputs
from privfeat.networks.images.records import (
    NAMES,
    TO_UNIT_RANGE,
    pixel_scale,
    read_records,
    records_for,
)
from privfeat.networks.parameters import DPSGDParameters
from privfeat.networks.team import check_same_training
from privfeat.networks.training.adaptive import BOUNDS, with_adaptive_bounds
from privfeat.networks.training.federated import whole_users
from privfeat.networks.training.loop import Trainer
from privfeat.networks.training.memory import largest_microbatch
from privfeat.networks.training.resuming import finished_run
from privfeat.networks.training.running import run_to_end
from privfeat.networks.training.units import Units, fitting_microbatch, single_records
from privfeat.networks.weights import network_of

# A radius that no gradient reaches: clipping is off without privacy.
_UNCLIPPED = ((0.0, 2.0**60),), None
_PREDICTED_AT_ONCE = 64
_VOUCHED = "that the network treats every record by itself (trust_model=True)"


class DPSGDModel(DPSGDParameters, ABC):
    """A network trained by noisy sums of clipped per-record gradients.

    ``fit`` is a template: check, plan the releases, state their cost, and only then
    draw a batch or noise. A subclass says what it makes of ``y``, and its loss.
    """

    @fitted_apart
    def fit(self, X: Any, y: ArrayLike, groups: ArrayLike | None = None) -> Self:
        """Train the network with differential privacy for the records of ``(X, y)``.

        Parameters
        ----------
        X : array-like of shape (n_samples, height, width, channels)
            Also (n_samples, height, width), a list of images of one shape, or rows of
            shape (n_samples, n_features). Bytes are mapped to [-1, 1], or to what the
            ``weights`` of a known network were made for; floats are used as they are.
            Of `LazyImages` and `LazyFeatures` a step reads what it draws. Sensitive.
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
        PrivacyError
            If processes (`privfeat.distributed`) do not train one network on records
            that count once, or one of them ended.
        FloatingPointError
            If the parameters overflow. The budget is spent; ``privacy_`` says so.
        """
        self._check_parameters()
        team, seed = current_team(), seed_of(self.random_state)
        keys = SharedKeys(seed, team)
        records, blank, problem = read_records(X, self._problem(y))
        shape, targets = records.shape[1:], problem.targets
        if len(targets) != len(records):
            raise ValueError("X and y must not have inconsistent lengths.")
        if self.augmentation != "none" and len(shape) != 3:
            raise ValueError(
                f"augmentation must be 'none' for records of shape {shape}, got "
                f"{self.augmentation!r}."
            )
        users = check_users(
            groups, self.max_group_size, len(records), X, y, ledger=self.ledger
        )
        fitted = problem.fitted | {
            "input_shape_": tuple(shape),
            "n_outputs_": problem.n_outputs,
            "pixel_scale_": pixel_scale(self.model, self.weights),
        }
        check_answers()
        with kept_compiled_code():
            network = network_of(
                self.model, shape, problem.n_outputs, keys, self.weights
            )
            frozen = network.frozen_names(self.frozen)
            units, microbatch = self._units(
                network, records, blank, problem, fitted["pixel_scale_"], users, keys
            )
            n_units = units.n_units
            if team.rows == "own":
                n_units = sum(team.each(n_units))
            plan, n_iter, batch_size = self._plan(n_units)
            fitted["n_iter_"] = n_iter
            # without noise a fit may clip still: only epsilon=inf turns both off
            clips = plan.private or self.epsilon is None
            vouched = units.engine == "fast" and not isinstance(self.model, str)
            fit = private_fit(
                self,
                plan,
                keys,
                public=(
                    f"the shape of a record {shape}",
                    *problem.public,
                    "all constructor parameters but random_state",
                    "the initial parameters of the network",
                    *units.public,
                    *((_VOUCHED,) if vouched else ()),
                    *((FIRST_WEIGHTS,) if self.weights is not None else ()),
                    "that all values are finite",
                ),
                n_units=n_units,
                forget=("parameters_", NAMES),
                unit=units.kind,
                classes_read=problem.classes_read,
            )
            initial, factor, style = network.initial, self.clip_factor, self.clip_style
            names = tuple(name for name in initial if name not in frozen)
            shapes = [initial[name].shape for name in names]
            phases, shares = shares_of(self.clip_norm, names, style)
            if not clips:
                factor, style, (phases, shares) = "abadi", "flat", _UNCLIPPED
            how = self._loss, style, units.engine, names
            what = BatchSum(*how, factor, clips, shares)
            trainer = Trainer(
                clipped_sum=sum_of_batch(network, what),
                units=units,
                optimizer=self._optimizer(n_iter, units.kind, n_units, keys, shapes),
                names=names,
                expected_batch_size=batch_size,
                microbatch_size=int(microbatch),
                clip_phases=phases,
                exact=clips,
                n_iter=n_iter,
                average=self._average(),
                keys=keys,
                team=team,
            )
            like = blank, targets[:1]
            if self.microbatch_size == "largest":
                found = largest_microbatch(trainer, initial, *like)
                trainer = replace(trainer, microbatch_size=found)
            if team.size > 1:
                given = problem, records, network, fitted["pixel_scale_"]
                check_same_training(trainer, self, seed, fit.statement, *given)
            if clips and self.clipping == "adaptive":
                parts = trainer, record_parts(network, *how), factor, style
                sizes = problem.n_outputs, self._norm_bounds()
                trainer, initial = with_adaptive_bounds(*parts, initial, *like, *sizes)
            initial = first_of(team, initial, "initial parameters")
            trainer, start = trainer.start(initial, *like)
            parameters = run_to_end(self, trainer, start, fit, fitted)
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
            If a fit holds the folder, ``ledger`` lacks its charge, or several call it.
        """
        check_alone("restore")
        self._check_parameters()
        parameters, self.privacy_, fitted = finished_run(self)
        return self._with_model(parameters, fitted)

    def planned(self, n_units: int) -> ReleasePlan:
        """Return what ``fit`` would release of so many records, or users, and its cost.

        Nothing is drawn or charged. The number is of private data: the plan is too.
        """
        self._check_parameters()
        return self._plan(n_units)[0]

    def _with_model(self, parameters: Any, fitted: dict[str, Any]) -> Self:
        """Set the attributes of a fit."""
        parameters.pop(BOUNDS, None)
        self.__dict__.update(fitted)
        self.parameters_ = {n: np.asarray(leaf) for n, leaf in parameters.items()}
        return self

    @abstractmethod
    def _problem(self, y: Any) -> Problem:
        """Return what ``y`` asks for."""

    @staticmethod
    @abstractmethod
    def _loss(scores: Any, targets: Any, /) -> Any:
        """Return the loss of each record."""

    def _units(
        self,
        network: Network,
        records: NDArray[Any],
        blank: NDArray[Any],
        problem: Problem,
        scale: NDArray[np.float32],
        users: Users | None,
        keys: KeyStream,
    ) -> tuple[Units, int]:
        """Return what is protected as one, and how many of it are worked on at once."""
        inputs, targets = to_inputs(blank), problem.targets
        tape, trial = dry_run(network, inputs), None
        if not isinstance(self.model, str):
            check_scores(network, inputs, problem.n_outputs)
            check_separate(network, inputs.shape[1:])
            trial = partial(check_rows, network, self._loss, inputs, targets[:1])
        views = Views(self.augmentation, self.n_copies, scale)
        microbatch = partial(fitting_microbatch, network, tape, self.microbatch_size)
        if users is not None:
            local, key = self._local_training(), keys.draw_integer()
            units = whole_users(records, targets, views, users, key, local)
            # what was lost, the parameters that are left, and a gradient
            return units, microbatch(self.n_copies * local.batch_size, n_gradients=3)
        trusted = trial is None or self.trust_model
        engine = choose_engine(self.engine, network, tape, trial, trusted=trusted)
        units = single_records(records, targets, views, engine)
        return units, microbatch(self.n_copies)

    def _scores(self, X: Any) -> NDArray[np.float64]:
        """Return the outputs of the network, of shape (n_samples, n_outputs)."""
        check_is_fitted(self, "parameters_")
        records = records_for(self, X)
        scale = getattr(self, "pixel_scale_", TO_UNIT_RANGE)  # older models have none
        vote = self._voting()
        leaves = {name: jnp.asarray(leaf) for name, leaf in self.parameters_.items()}
        with kept_compiled_code():
            network = network_of(self.model, self.input_shape_, self.n_outputs_)

            @jax.jit
            def forward(leaves: Any, inputs: Any) -> Any:
                score = partial(network, leaves)
                if isinstance(self.model, str):
                    return vote(score, inputs)
                # one by one: a score depends on its record, whatever the network does
                return jax.vmap(lambda one: vote(score, one[None])[0])(inputs)

            scores = []
            for first in range(0, len(records), _PREDICTED_AT_ONCE):
                part = records[first : first + _PREDICTED_AT_ONCE]
                padding = [(0, 0)] * part.ndim
                padding[0] = (0, _PREDICTED_AT_ONCE - len(part))
                inputs = jnp.asarray(to_inputs(np.pad(part, padding), scale))
                scores.append(np.asarray(forward(leaves, inputs))[: len(part)])
        return np.concatenate(scores).astype(np.float64)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.non_deterministic = True
        return tags
