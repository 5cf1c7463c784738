"""One private run of the steps, however often it is interrupted: charged once."""

import json
from collections.abc import Iterable
from typing import Any

import jax
import numpy as np

from privfeat._encoding import encode
from privfeat.core.charging import charged
from privfeat.core.statement import PrivacyStatement
from privfeat.trainers._parameters import DPSGDParameters
from privfeat.trainers.checkpoints import Checkpoint, open_checkpoints
from privfeat.trainers.loop import GRADIENT, Trainer, TrainState
from privfeat.trainers.model import Parameters
from privfeat.trainers.units import Units

# What an interrupted fit may find changed. The seed must not be written anywhere.
_NOT_COMPARED = (
    "checkpoint_dir",
    "checkpoint_every",
    "ledger",
    "random_state",
    "verbose",
)


class ResumedRuns(DPSGDParameters):
    """Runs a trainer for its whole charge, from a checkpoint if there is one."""

    def _train(
        self,
        trainer: Trainer,
        state: TrainState,
        units: Units,
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
                for after in trainer.run(state, units.records, units.targets, steps):
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
