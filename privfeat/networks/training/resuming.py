"""A fit with a ``checkpoint_dir``: where it begins, and what it keeps of its steps."""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import jax
import numpy as np

from privfeat._checks import require
from privfeat._encoding import decode, encode
from privfeat._warnings import warn, warnings_shown
from privfeat.core.noise.gaussian_mechanism import GaussianMechanism
from privfeat.core.private_fit import PrivateFit
from privfeat.core.statement.privacy_statement import PrivacyStatement
from privfeat.core.sums.processes import TeamLostError
from privfeat.estimation.fitting import by_first, first_of
from privfeat.exceptions import LedgerError, PrivacyError
from privfeat.networks.engine.network import Parameters
from privfeat.networks.images.records import NAMES
from privfeat.networks.training.checkpoints import Checkpoints, open_checkpoints
from privfeat.networks.training.loop import GRADIENT, Trainer, TrainState, check_finite

GOES_ON = "The same fit goes on from its last checkpoint, and is not charged again."
# What an interrupted fit may find changed. The seed must not be written anywhere.
_NOT_COMPARED = (
    "checkpoint_dir",
    "checkpoint_every",
    "ledger",
    "on_step",
    "random_state",
    "verbose",
)


@dataclass(frozen=True)
class KeptRun:
    """One run of a fit that keeps checkpoints; made by `kept_run`.

    Of several processes the first alone reads and writes them, and the others go on
    from what it has.
    """

    checkpoints: Checkpoints | None  # of the first process
    found: dict[str, Any] | None  # in its newest checkpoint, beside the state
    trainer: Trainer
    start: TrainState  # of this run
    goes_on: bool  # from a checkpoint, and was charged before it
    every: int  # steps from one checkpoint to the next

    @property
    def charge(self) -> dict[str, Any]:
        """What `PrivateFit.drawing` takes."""
        if self.checkpoints is None:
            return {}
        number = {} if self.found is None else {"number": self.found["charge"]}
        return {"tokens": self.checkpoints.tokens, **number}

    @contextmanager
    def keeping(
        self, mechanism: GaussianMechanism, fit: PrivateFit
    ) -> Iterator[Callable[[TrainState], bool]]:
        """Keep a checkpoint between charge and first draw; the body runs the steps.

        It calls what is yielded after each of them, which keeps a checkpoint if one is
        due, and returns whether there is one of this step. What ends the body says that
        the fit can go on, if a checkpoint was kept: not where another run has gone on
        with it, nor in the processes to which another one tells why it failed.
        """
        team, n_iter = self.trainer.team, self.trainer.n_iter
        mechanism.count_as_drawn(GRADIENT, self.start.step)
        every = mechanism.whole_cycles(GRADIENT, self.every)
        written = [self.goes_on]

        # where the keys of the first sample are, which is drawn before the charge
        begins = self.trainer.keys.position

        def keep(state: TrainState, position: int | None = None) -> bool:
            write = partial(self._keep, state, fit.charge, position)
            done = bool(by_first(team, "write a checkpoint", write))
            written.append(bool(first_of(team, [done], "checkpoint")[0]))
            return written[-1]

        def after(state: TrainState) -> bool:
            last = state.step == n_iter
            kept = (last or state.step % every == 0) and keep(state)
            if kept and not last:
                mechanism.restart(GRADIENT)
            return kept

        def begin() -> None:
            take = partial(self._take_name, fit.statement)
            by_first(team, "go on with its charge", take)
            if not self.goes_on:  # so that it goes on whenever it is killed
                keep(self.start, begins)

        fit.after_charge(begin)
        if self.goes_on:
            fit.charge_now()  # it was
        try:
            yield after
        except BaseException as error:
            may = LedgerError, TeamLostError
            other = isinstance(error, PrivacyError) and not isinstance(error, may)
            if any(written) and not other:
                error.add_note(GOES_ON)
            raise

    def _take_name(self, statement: PrivacyStatement) -> None:
        if self.checkpoints is not None:
            self.checkpoints.fitted["privacy_"] = statement.to_json()
            self.checkpoints.take_name(statement.charge, self.found)

    def _keep(
        self, state: TrainState, charge: int | None, position: int | None
    ) -> bool:
        """Keep a checkpoint, in the process that has the folder; return if it could.

        The fit is paid for, so a full disk, or a ledger that is away, does not end it.
        At the last step it does where an older checkpoint can go on: with the model out
        as well, the steps between would be released twice.
        """
        checkpoints, keys = self.checkpoints, self.trainer.keys
        if checkpoints is None:
            return False
        last = state.step == self.trainer.n_iter
        try:
            place = keys.position if position is None else position
            checkpoints.keep(state, place, charge, last=last)
        except Exception as error:
            other_run = isinstance(error, PrivacyError) and not isinstance(
                error, LedgerError
            )
            if other_run or (last and checkpoints.manager.latest_step() is not None):
                raise
            warn(
                f"checkpoint_dir could not take a checkpoint of step {state.step} "
                f"({type(error).__name__}: is its disk full, or the ledger away?). The "
                "fit goes on without it; one that ends before the next one loses these "
                "steps."
            )
            return False
        return True


@contextmanager
def kept_run(
    estimator: Any,
    trainer: Trainer,
    start: TrainState,
    statement: PrivacyStatement,
    fitted: dict[str, Any],
) -> Iterator[KeptRun]:
    """Hold the folder; the run begins with its newest checkpoint, or with ``start``.

    ValueError if ``checkpoint_dir`` holds another fit, a finished or a damaged one;
    PrivacyError in the other processes, if the first raises.
    """
    team, keys = trainer.team, trainer.keys
    with ExitStack() as stack:

        def find() -> tuple[Checkpoints, Any]:
            about = estimator, start, statement, fitted
            checkpoints = stack.enter_context(_checkpoints_of(*about))
            found = checkpoints.newest(start)
            if found is None:
                checkpoints.check_room(start)
            else:
                _tell_what_was_found(found[0].step, trainer.n_iter)
            return checkpoints, found or (start, None)

        checkpoints, (state, found) = by_first(team, "use checkpoint_dir", find) or (
            None,
            (start, None),
        )
        facts = [
            found is not None,
            state.step,
            0 if found is None else found["position"],
        ]
        goes_on, step, position = first_of(team, facts, "checkpoint")
        if goes_on:
            arrays = state.parameters, state.optimizer, state.average
            state = TrainState(int(step), *first_of(team, arrays, "state"))
            keys.skip_to(int(position))
        every = estimator.checkpoint_every
        yield KeptRun(checkpoints, found, trainer, state, bool(goes_on), every)


def finished_run(
    estimator: Any,
) -> tuple[Parameters, PrivacyStatement, dict[str, Any]]:
    """Return parameters, statement and attributes of the fit in ``checkpoint_dir``."""
    if estimator.checkpoint_dir is None:
        raise ValueError("checkpoint_dir must be given to restore, got None.")
    with open_checkpoints(estimator.checkpoint_dir) as checkpoints:
        parameters, kept = checkpoints.finished()
    if kept.pop("parameters", None) != _parameters_as_text(estimator):
        raise ValueError(
            "checkpoint_dir must hold a fit of these parameters, got another. Pass "
            "what was passed then."
        )
    check_finite(parameters)
    statement = PrivacyStatement.from_json(kept.pop("privacy_"))
    if (ledger := estimator.ledger) is not None:
        charged = {charge.statement.charge for charge in ledger.history} - {None}
        if statement.charge not in charged:
            raise PrivacyError(
                "ledger must hold the charge of the fit to restore, and does not: it "
                "was made without a ledger, or with another. Leave it out, and charge "
                "the statement: ledger.charge(restored.privacy_, estimator=...)."
            )
    return parameters, statement, {n: decode(v) for n, v in kept.items()}


def _checkpoints_of(
    estimator: Any, start: TrainState, statement: PrivacyStatement, fitted: Any
) -> AbstractContextManager[Checkpoints]:
    """Open the checkpoints of this fit; ValueError if they are those of another."""
    if not all(np.size(leaf) for leaf in jax.tree.leaves(vars(start))):
        raise ValueError(
            "optimizer must have no empty arrays in its state, which checkpoints do "
            "not hold, got some. Pass another one, or checkpoint_dir=None."
        )
    ledger, written = estimator.ledger, statement.to_json()
    parameters = _parameters_as_text(estimator)
    kept = {name: encode(name, value) for name, value in fitted.items()}
    common = [type(estimator).__name__, parameters, written]
    common.append(str(jax.eval_shape(lambda: vars(start))))
    if NAMES in kept:
        common.append(json.dumps(kept[NAMES]))
    if ledger is not None:
        common.append(ledger.budget.uid)
    return open_checkpoints(
        estimator.checkpoint_dir,
        configuration=sha256(json.dumps(common).encode()).hexdigest(),
        fitted=kept | {"parameters": parameters, "privacy_": written},
        ledger=ledger,
    )


def _tell_what_was_found(step: int, n_iter: int) -> None:
    """Warn that a fit goes on; raise ValueError if it is finished."""
    if step >= n_iter:
        raise ValueError(
            "checkpoint_dir must not hold a finished fit, got one: it is of the "
            "data that were passed then. Call restore() (`privfeat train "
            "--restore`) for its model, or pass an empty folder, one for each fold,"
            " for another fit."
        )
    with warnings_shown():  # it is paid for: none may end it
        warn(
            f"the folder of checkpoints holds {step} of {n_iter} steps, of the data "
            f"that were passed then: the fit goes on from step {step}, and is not "
            "charged again. Pass an empty folder to start anew."
        )


def _parameters_as_text(estimator: Any) -> str:
    """Return all parameters that a fit in two runs must not change."""
    params = estimator.get_params(deep=False)
    names = sorted(params.keys() - set(_NOT_COMPARED))
    return json.dumps({name: _described(name, params[name]) for name in names})


def _described(name: str, value: Any) -> Any:
    """Return a parameter as JSON; of an object only the class."""
    if name == "weights" and isinstance(value, Mapping):  # public, and large
        digest = sha256()
        for key in sorted(value):
            digest.update(key.encode() + np.ascontiguousarray(value[key]).tobytes())
        return digest.hexdigest()
    if isinstance(value, Mapping):
        value = dict(value)
    try:
        return encode(name, value)
    except TypeError:
        return type(value).__qualname__


def check_folder(folder: Any) -> None:
    """Raise TypeError or ValueError unless this names a folder for checkpoints."""
    require("checkpoint_dir", "orbax", extra="train")
    if not isinstance(folder, str | os.PathLike):
        raise TypeError(f"checkpoint_dir must be None or a path, got {folder!r}.")
    if Path(folder).exists() and not Path(folder).is_dir():
        raise ValueError(
            f"checkpoint_dir must be a folder, got the file {str(folder)!r}."
        )
