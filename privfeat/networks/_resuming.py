"""One private run of the steps, however often it is interrupted: charged once."""

import json
from collections.abc import Iterable
from typing import Any

import jax
import numpy as np

from privfeat._encoding import decode, encode
from privfeat._warnings import warn
from privfeat.core.private_fit import PrivateFit
from privfeat.core.statement.privacy_statement import PrivacyStatement
from privfeat.networks._parameters import DPSGDParameters
from privfeat.networks.checkpoints import Checkpoint, open_checkpoints
from privfeat.networks.loop import GRADIENT, Trainer, TrainState
from privfeat.networks.model import Parameters
from privfeat.networks.units import Units

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
        fit: PrivateFit,
        fitted: dict[str, Any],
    ) -> Parameters:
        """Return the parameters after all steps, those of an interrupted run included.

        The fit is charged before its first step, or was when it was interrupted.
        """
        kept, statement = {}, fit.statement
        if self.checkpoint_dir is not None:
            kept = {name: encode(name, value) for name, value in fitted.items()}
            kept["parameters"] = self._configuration()
            kept["privacy_"] = statement.to_json()
        configuration = ""
        if self.checkpoint_dir is not None:
            configuration = self._configuration_of(state, statement)
        with open_checkpoints(
            self.checkpoint_dir, self.checkpoint_every, configuration
        ) as checkpoints:
            number, tokens = None, Checkpoint.tokens
            found = checkpoints.newest(state) if checkpoints is not None else None
            if found is not None:
                state, number, tokens = found.state, found.charge, found.tokens
                self._tell_what_was_found(state.step, trainer.n_iter)
                trainer.keys.skip_to(found.position)
            steps = self._steps(state.step, trainer.n_iter)
            with fit.drawing(number=number, tokens=tokens) as mechanism:
                mechanism.count_as_drawn(GRADIENT, state.step)
                data = units.records, units.targets
                for after in trainer.run(mechanism, state, *data, steps):
                    state = after
                    if checkpoints is not None:
                        at = trainer.keys.position
                        checkpoints.keep(
                            Checkpoint(state, at, fit.charge, fitted=kept),
                            self.ledger,
                            last=state.step == trainer.n_iter,
                        )
                parameters = trainer.result(state)
                _check_finite(parameters)
        return parameters

    def _finished(self) -> tuple[Parameters, PrivacyStatement, dict[str, Any]]:
        """Return parameters, statement and attributes of the fit in the folder."""
        with open_checkpoints(self.checkpoint_dir, 1, "") as checkpoints:
            if checkpoints is None:
                raise ValueError("checkpoint_dir must be given to restore, got None.")
            parameters, kept = checkpoints.finished()
        if kept.pop("parameters", None) != self._configuration():
            raise ValueError(
                "checkpoint_dir must hold a fit of these parameters, got another. Pass "
                "what was passed then."
            )
        _check_finite(parameters)
        statement = PrivacyStatement.from_json(kept.pop("privacy_"))
        return parameters, statement, {n: decode(v) for n, v in kept.items()}

    @staticmethod
    def _tell_what_was_found(step: int, n_iter: int) -> None:
        """Warn that a fit goes on; raise ValueError if it is finished."""
        if step >= n_iter:
            raise ValueError(
                "checkpoint_dir must not hold a finished fit, got one: it is of the "
                "data that were passed then. Call restore() (`privfeat train "
                "--restore`) for its model, or pass an empty folder, one for each fold,"
                " for another fit."
            )
        warn(
            f"checkpoint_dir holds {step} of {n_iter} steps, of the data that were "
            f"passed then: the fit goes on from step {step}, and is not charged again. "
            "Pass an empty folder to start anew."
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

    def _configuration_of(self, state: TrainState, statement: PrivacyStatement) -> str:
        """Return, as text, all that two runs of one fit must have in common."""
        parts = [type(self).__name__, self._configuration(), statement.to_json()]
        parts.append(str(jax.eval_shape(lambda: vars(state))))
        if self.ledger is not None:
            parts.append(self.ledger.budget.uid)
        return json.dumps(parts)

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


def _check_finite(parameters: Parameters) -> None:
    if not all(np.all(np.isfinite(leaf)) for leaf in parameters.values()):
        raise FloatingPointError(
            "parameters must be finite, got overflow; the budget is spent. Pass a "
            "smaller learning_rate."
        )


def _described(name: str, value: Any) -> Any:
    """Return a parameter as JSON; of an object only the class."""
    try:
        return encode(name, value)
    except TypeError:
        return type(value).__qualname__
