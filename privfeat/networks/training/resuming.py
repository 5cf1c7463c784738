"""One private run of the steps, however often it is interrupted: charged once."""

import json
import os
from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import jax
import numpy as np

from privfeat._checks import check_int, require
from privfeat._encoding import decode, encode
from privfeat._progress import steps
from privfeat._warnings import warn
from privfeat.core.private_fit import PrivateFit
from privfeat.core.statement.privacy_statement import PrivacyStatement
from privfeat.estimation.announcement import announced
from privfeat.estimation.compilation import code_of_others
from privfeat.estimation.team import agreed, by_first, first_of
from privfeat.networks.engine.network import Parameters
from privfeat.networks.images.records import NAMES
from privfeat.networks.training.checkpoints import Checkpoints, open_checkpoints
from privfeat.networks.training.loop import GRADIENT, Trainer, TrainState

# What an interrupted fit may find changed. The seed must not be written anywhere.
_NOT_COMPARED = (
    "checkpoint_dir",
    "checkpoint_every",
    "ledger",
    "on_step",
    "random_state",
    "verbose",
)


def run_to_end(
    estimator: Any,
    trainer: Trainer,
    start: TrainState,
    fit: PrivateFit,
    fitted: dict[str, Any],
) -> Parameters:
    """Return the parameters after all steps, those of an interrupted run included.

    The fit is charged before its first step, or was when it was interrupted. ``fitted``
    are the public attributes that the estimator will have. Of several processes the
    first alone reads and writes checkpoints, and the others go on from what it has.

    ValueError if ``checkpoint_dir`` holds another fit, a finished or a damaged one;
    PrivacyError in the other processes, if the first raises; FloatingPointError if the
    parameters overflow.
    """
    state, n_iter, team = start, trainer.n_iter, trainer.team
    with ExitStack() as stack:

        def find() -> tuple[Checkpoints | None, Any]:
            checkpoints = stack.enter_context(
                _checkpoints_of(estimator, start, fit.statement, fitted)
            )
            found = None if checkpoints is None else checkpoints.newest(start)
            if found is not None:
                _tell_what_was_found(found[0].step, n_iter)
            return checkpoints, found

        checkpoints, found = by_first(team, "use checkpoint_dir", find) or (None, None)
        charge: dict[str, Any] = {}
        if checkpoints is not None:
            charge = {"tokens": checkpoints.tokens}
        if found is not None:
            state, kept = found
            charge |= {"number": kept["charge"]}
        position, shown = (
            kept["position"] if found else 0,
            estimator.on_step is not None,
        )
        kept_step, position, is_kept, is_shown = first_of(
            team, [state.step, position, checkpoints is not None, shown], "checkpoint"
        )
        if kept_step:
            arrays = state.parameters, state.optimizer, state.average
            state = TrainState(int(kept_step), *first_of(team, arrays, "state"))
            trainer.keys.skip_to(int(position))
        options = {"charged": not kept_step, "first": team.index == 0}
        told = partial(announced, estimator, fit.statement, **options)
        telling = agreed(team, "say what the fit costs", told)
        with fit.drawing(**charge) as mechanism, telling:
            if checkpoints is not None:  # which now has the name of the charge
                checkpoints.fitted["privacy_"] = fit.statement.to_json()
            mechanism.count_as_drawn(GRADIENT, state.step)
            every = estimator.checkpoint_every
            if is_kept:
                every = mechanism.whole_cycles(GRADIENT, every)
            numbers = steps("gradients", n_iter, done=state.step)
            for state in trainer.run(mechanism, state, numbers):  # noqa: B020
                last = state.step == n_iter
                due = last or state.step % every == 0
                if is_kept and due:
                    keep = partial(_keep, checkpoints, state, trainer, fit.charge, last)
                    by_first(team, "write a checkpoint", keep)
                    if not last:
                        mechanism.restart(GRADIENT)
                # what is lost is made again, and must not have been seen
                if is_shown and (due or not is_kept):
                    show = partial(_show, estimator, state, fitted)
                    by_first(team, "call on_step", show)
            parameters = state.parameters | (state.average or {})
            parameters = first_of(team, parameters, "trained parameters")
            _check_finite(parameters)
    return parameters


def _show(estimator: Any, state: TrainState, fitted: dict[str, Any]) -> None:
    """Call ``on_step`` with what the releases so far have made of the network."""
    arrays = state.parameters | (state.average or {})
    with code_of_others():  # which may hold private rows
        estimator.on_step(state.step, estimator._so_far(arrays, fitted))


def _keep(
    checkpoints: Any,
    state: TrainState,
    trainer: Trainer,
    charge: int | None,
    last: bool,
) -> None:
    """Keep a checkpoint, in the process that has the folder."""
    checkpoints.keep(state, trainer.keys.position, charge, last=last)


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
    _check_finite(parameters)
    statement = PrivacyStatement.from_json(kept.pop("privacy_"))
    return parameters, statement, {n: decode(v) for n, v in kept.items()}


def _checkpoints_of(
    estimator: Any, start: TrainState, statement: PrivacyStatement, fitted: Any
) -> AbstractContextManager[Checkpoints | None]:
    if estimator.checkpoint_dir is None:
        return nullcontext()
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
    warn(
        f"checkpoint_dir holds {step} of {n_iter} steps, of the data that were "
        f"passed then: the fit goes on from step {step}, and is not charged again. "
        "Pass an empty folder to start anew."
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


def _check_finite(parameters: Parameters) -> None:
    if not all(np.all(np.isfinite(leaf)) for leaf in parameters.values()):
        raise FloatingPointError(
            "parameters must be finite, got overflow; the budget is spent. Pass a "
            "smaller learning_rate."
        )


def check_folder(folder: Any, every: Any) -> None:
    """Raise TypeError or ValueError unless these name checkpoints to be made."""
    check_int("checkpoint_every", every, low=1)
    if folder is None:
        return
    require("checkpoint_dir", "orbax", extra="train")
    if not isinstance(folder, str | os.PathLike):
        raise TypeError(f"checkpoint_dir must be None or a path, got {folder!r}.")
    if Path(folder).exists() and not Path(folder).is_dir():
        raise ValueError(
            f"checkpoint_dir must be a folder, got the file {str(folder)!r}."
        )
