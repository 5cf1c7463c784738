"""Whether several processes train the same network, on records that count once."""

import json
import re
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from privfeat.core.statement.privacy_statement import PrivacyStatement
from privfeat.estimation.labels import Problem
from privfeat.estimation.team import check_team, spread
from privfeat.networks.engine.network import Network
from privfeat.networks.training.loop import Trainer

# Records in memory that take no more are compared in all processes, each of them.
_BYTES = 2**28


def check_same_training(
    trainer: Trainer,
    estimator: Any,
    seed: int | None,
    statement: PrivacyStatement,
    problem: Problem,
    records: Any,
    network: Network,
    scale: NDArray[np.float32],
) -> None:
    """Refuse processes that would not train one network on records that count once.

    A record is worked on by one process or another, as others come before it: so all
    must make the same input of it, by the ``scale`` of bytes too, which follows from
    the kind of ``weights``. A network and an optimizer are compared by the operations
    that they are made of: what they start with is that of the first process.

    PrivacyError or ValueError as `check_team`, and if processes have other devices, or
    users of records.
    """
    if estimator.noise != "independent":
        raise ValueError(
            "noise must be 'independent' in several processes, got "
            f"{estimator.noise!r}. Fit in one."
        )
    team, units, optimizer = trainer.team, trainer.units, trainer.optimizer
    devices = jax.local_devices()
    kinds = f"{len(devices)} x {devices[0].device_kind} {trainer.microbatch_size}"
    team.check_same("devices, of one kind and number", kinds.encode())
    shape, leaves = records.shape[1:], network.initial
    initial = {name: (leaf.shape, str(leaf.dtype)) for name, leaf in leaves.items()}
    instead: dict[str, Any] = {
        "weights": estimator.weights is not None,
        "checkpoint_dir": None,
        "on_step": None,
    }
    if not isinstance(estimator.model, str):
        instead["model"] = _operations(network, leaves, np.zeros((1, *shape), "f"))
    if not isinstance(estimator.optimizer, str | None):
        state = optimizer.init(leaves)
        instead["optimizer"] = _operations(optimizer.update, leaves, state, leaves)
    small = isinstance(records, np.ndarray) and records.nbytes <= _BYTES
    engine = units.engine if isinstance(units.engine, str) else ""
    check_team(
        team,
        estimator,
        seed,
        statement,
        problem,
        records,
        units.kind == "user",
        about=f"{shape} {problem.n_outputs} {engine} {initial} {scale.tolist()}",
        instead=instead,
        compared=slice(None) if small else spread(len(records)),
    )
    if team.rows == "shared":
        # an image more in the folder of one process moves all that come after it
        names = json.dumps(list(getattr(records, "files", ())))
        team.check_same("image files", names.encode())
    if units.kind == "user":
        team.check_same("groups", units.records.slots.tobytes())


def _operations(function: Callable[..., Any], *arguments: Any) -> str:
    """Return what a function computes, without places in memory."""
    with jax.numpy_dtype_promotion("standard"):
        text = str(jax.make_jaxpr(function)(*arguments))
    return re.sub(r"0x[0-9a-f]+", "", text)
