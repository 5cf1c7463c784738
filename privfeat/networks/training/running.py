"""One private run of the steps, however often it is interrupted: charged once."""

from contextlib import ExitStack, nullcontext
from copy import copy
from functools import partial
from typing import Any

from privfeat._progress import steps
from privfeat.core.private_fit import PrivateFit
from privfeat.estimation.fitting import announced, by_first, code_of_others, first_of
from privfeat.networks.engine.network import Parameters
from privfeat.networks.training.loop import Trainer, TrainState, check_finite
from privfeat.networks.training.resuming import kept_run


def run_to_end(
    estimator: Any,
    trainer: Trainer,
    start: TrainState,
    fit: PrivateFit,
    fitted: dict[str, Any],
) -> Parameters:
    """Return the parameters after all steps, those of an interrupted run included.

    The fit is charged by its first release, or was when it was interrupted. ``fitted``
    are the public attributes that the estimator will have. The first of several
    processes decides whether checkpoints are kept and ``on_step`` is called.

    ValueError if ``checkpoint_dir`` holds another fit, a finished or a damaged one;
    PrivacyError in the other processes, if the first raises; FloatingPointError if the
    parameters overflow.
    """
    team, run, state = trainer.team, None, start
    asked = [estimator.checkpoint_dir is not None, estimator.on_step is not None]
    is_kept, is_shown = first_of(team, asked, "checkpoint_dir and on_step")
    with ExitStack() as stack:
        if is_kept:
            about = estimator, trainer, start, fit.statement, fitted
            run = stack.enter_context(kept_run(*about))
            state = run.start
        charged = run is None or not run.goes_on
        telling = announced(estimator, fit.statement, team, charged=charged)
        with fit.drawing(**({} if run is None else run.charge)) as mechanism, telling:
            numbers = steps("gradients", trainer.n_iter, done=state.step)
            keeping = nullcontext() if run is None else run.keeping(mechanism, fit)
            with keeping as kept:
                for state in trainer.run(mechanism, state, numbers):  # noqa: B020
                    # what is lost is made again, and must not have been seen
                    may_be_seen = kept is None or kept(state)
                    if is_shown and may_be_seen:
                        show = partial(_show, estimator, state, fitted)
                        by_first(team, "call on_step", show)
            parameters = state.parameters | (state.average or {})
            parameters = first_of(team, parameters, "trained parameters")
            check_finite(parameters)
    return parameters


def _show(estimator: Any, state: TrainState, fitted: dict[str, Any]) -> None:
    """Call ``on_step`` with what the releases so far have made of the network."""
    arrays = state.parameters | (state.average or {})
    model = copy(estimator)._with_model(arrays, fitted)
    with code_of_others():  # which may hold private rows
        estimator.on_step(state.step, model)
