"""Checkpoints: what a fit has released so far, on disk, so that it can go on.

A checkpoint holds parameters, optimizer, moving average, the number of the charge and
the position in the key stream: releases, what was computed from them, and public
numbers. No exact sum, no sampled record, no seed and no key of their noise is in it,
though that of the noise of ``"sgld"``, which promises nothing. orbax writes
arrays and JSON, nothing that runs when it is read, and a checkpoint appears under its
name whole or not at all.

**Privacy.** Checkpoints are written after whole steps. A fit that goes on has lost the
steps after the last checkpoint; nothing of them has left the process, so that they are
no releases, and they are made again, of batches and noise that are fresh (the same, bit
for bit, for a seeded fit). Both runs together thus release no more than the plan
counts, for one charge, if they share one history.

**Other data.** Nothing is stored by which data could be recognized: a hash of them,
keyed or not, would tell a reader of the folder who is in them. And nothing has to be:

*Claim.* Let step ``t`` of a fit be made on the data set ``D_t``. If all of them are
sampled with the stated probability, and none is chosen by the exact values of another,
the fit is as private as its statement says for each record of any of them.

*Proof.* Take a record out of every ``D_t`` that holds it (or replace it there). Given
the earlier releases, step ``t`` then changes as it does between two neighbours, or not
at all: its sum moves by at most the stated sensitivity, and the record was sampled
afresh with the stated probability. The releases are those that the plan composes, and
adaptive composition does not ask that they are of one data set.

So a fit that goes on with other records is private, for one charge of the ledger that
both runs were given, though it is a model of two data sets: that is why it warns. But
a *finished* fit has nothing to release, and is no fit of what it was given: it is an
error. `DPSGDModel.restore` returns its model to those who ask for it. Hence:

- one process at a time uses a folder: it holds the empty file ``.lock``, which stays
  there and which a kill sets free; no step has that name, and a copy holds nothing;
- only the newest checkpoint is kept, and where it cannot be read nothing goes on from
  an older one: the steps between would be released twice;
- a fit of other parameters, plan, shapes or ledger is refused, and so is one that is
  finished, or whose charge is of a fit that is finished.

- of a charged fit only the newest checkpoint can be gone on with, and only once,
  whatever copies of the folder there are: `privfeat.core.ledger.charging`.

What this cannot see: a folder of a fit without a ledger that is copied and gone on with
twice is two fits. What an interrupted write left, which nobody may have read, is
removed.
"""

import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
from filelock import FileLock, Timeout

from privfeat._checks import check_int
from privfeat._extras import require
from privfeat.core.ledger.charging import Tokens, newest_checkpoint
from privfeat.core.ledger.privacy_ledger import PrivacyLedger
from privfeat.exceptions import PrivacyError
from privfeat.networks.loop import TrainState

Folder = str | os.PathLike[str]

_LOCK = ".lock"
_UNFINISHED = "orbax-checkpoint-tmp"


@dataclass(frozen=True)
class Checkpoint:
    """Where a fit was interrupted.

    Attributes
    ----------
    state : TrainState
    position : int
        Of the key stream.
    charge : int or None
        Number of the charge in the ledger.
    tokens : list of str or None
        Its own, and that of the checkpoint before; see `newest_checkpoint`.
    fitted : dict or None
        Of a finished fit, as JSON: what its model needs beside parameters. Public.
    """

    state: TrainState
    position: int = 0
    charge: int | None = None
    tokens: Tokens = (None,)
    fitted: dict[str, Any] | None = None


class Checkpoints:
    """The checkpoints of one fit; made by `open_checkpoints`."""

    def __init__(self, manager: Any, every: int, configuration: str) -> None:
        self._manager = manager
        self._tokens: Tokens = (None,)  # of the newest
        self._every = every
        self._digest = hashlib.sha256(configuration.encode()).hexdigest()

    def newest(self, start: TrainState) -> Checkpoint | None:
        """Return the newest checkpoint, or None; ``start`` gives the shapes.

        Raises
        ------
        ValueError
            If it is of another fit, or cannot be read.
        """
        step = self._manager.latest_step()
        if step is None:
            return None
        with _damage_explained(step):
            found = self._read(step, "public", None)
            digest = str(found["configuration"])
        if digest != self._digest:
            raise ValueError(
                "checkpoint_dir must hold a fit of these parameters, on data of these "
                "shapes, with this ledger, got another. Pass an empty folder, or what "
                "was passed then."
            )
        with _damage_explained(step):
            state = TrainState(**self._read(step, "state", vars(start)))
            if state.step != step:
                raise ValueError("step")
            _check_like(state, start)
            position = check_int("position", found["position"], low=0, high=2**63)
            charge = found["charge"]
            if charge is not None:
                check_int("charge", charge, low=1)
            # checkpoints of older releases have none
            self._tokens = list(found.get("tokens", (None,)))
            fitted = found.get("fitted")
            return Checkpoint(state, position, charge, self._tokens, fitted)

    def finished(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the parameters of a finished fit, and what its model needs else.

        Raises
        ------
        ValueError
            If there is none, or it cannot be read.
        """
        step = self._manager.latest_step()
        fitted = None
        if step is not None:
            with _damage_explained(step):
                fitted = self._read(step, "public", None).get("fitted")
        if fitted is None:
            raise ValueError(
                "checkpoint_dir must hold a finished fit to restore, got none."
            )
        with _damage_explained(step):
            state = self._read(step, "state", None, arrays=True)
            return state["parameters"] | (state["average"] or {}), fitted

    def keep(
        self, checkpoint: Checkpoint, ledger: PrivacyLedger | None, *, last: bool
    ) -> None:
        """Write a checkpoint if one is due; it replaces the one before.

        Raises
        ------
        PrivacyError
            If another run has gone on with the charge. Nothing was written.
        """
        state, number = checkpoint.state, checkpoint.charge
        if state.step % self._every and not last:
            return
        public = {
            "configuration": self._digest,
            "position": checkpoint.position,
            "charge": number,
        }
        if last:
            public["fitted"] = checkpoint.fitted
        if ledger is None or number is None:
            self._save(state, public)
            return
        with newest_checkpoint(ledger, number, self._tokens) as tokens:
            self._save(state, public | {"tokens": tokens})
        self._tokens = tokens[:1]

    def _save(self, state: TrainState, public: dict[str, Any]) -> None:
        from orbax.checkpoint import args

        self._manager.save(
            state.step,
            args=args.Composite(
                state=args.StandardSave(vars(state)), public=args.JsonSave(public)
            ),
        )

    def _read(self, step: int, name: str, like: Any, *, arrays: bool = False) -> Any:
        """Return one item, as the tree ``like``, as what was written, or as JSON."""
        from orbax.checkpoint import args

        written = like is not None or arrays
        item = args.StandardRestore(like) if written else args.JsonRestore()
        tree = self._manager.restore(step, args=args.Composite(**{name: item}))[name]
        # free of the devices that orbax has put them on
        return jax.tree.map(
            lambda leaf: np.asarray(leaf) if isinstance(leaf, jax.Array) else leaf, tree
        )


@contextmanager
def open_checkpoints(
    folder: Folder | None, every: int, configuration: str
) -> Iterator[Checkpoints | None]:
    """Hold the folder for one fit; give None without a folder.

    Parameters
    ----------
    folder : path-like or None
        Made, for its owner alone, if it is not there.
    every : int
        Steps between checkpoints.
    configuration : str
        All that both runs must have in common. Public.

    Raises
    ------
    PrivacyError
        If another fit holds the folder.
    """
    if folder is None:
        yield None
        return
    from orbax import checkpoint as orbax

    path = Path(folder).absolute()
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _locked(path / _LOCK):
        for entry in path.iterdir():
            if _UNFINISHED in entry.name:
                shutil.rmtree(entry)
        options = orbax.CheckpointManagerOptions(
            max_to_keep=1, enable_async_checkpointing=False
        )
        with orbax.CheckpointManager(path, options=options) as manager:
            yield Checkpoints(manager, every, configuration)


def check_folder(folder: Any, every: Any) -> None:
    """Raise TypeError or ValueError unless these name checkpoints to be made."""
    check_int("checkpoint_every", every, low=1)
    if folder is not None:
        require("checkpoint_dir", "orbax", extra="train")
    if folder is not None and not isinstance(folder, str | os.PathLike):
        raise TypeError(f"checkpoint_dir must be None or a path, got {folder!r}.")
    if folder is not None and Path(folder).exists() and not Path(folder).is_dir():
        raise ValueError(
            f"checkpoint_dir must be a folder, got the file {str(folder)!r}."
        )


def _check_like(state: TrainState, start: TrainState) -> None:
    """Raise ValueError unless a state has the shapes and types of another."""
    described = [
        [(leaf.shape, leaf.dtype) for leaf in map(np.asarray, leaves)]
        for leaves in (jax.tree.leaves(vars(one)) for one in (state, start))
    ]
    if described[0] != described[1]:
        raise ValueError("state")


@contextmanager
def _damage_explained(step: int) -> Iterator[None]:
    try:
        yield
    except (KeyError, OSError, TypeError, ValueError) as error:
        raise ValueError(
            f"checkpoint_dir must hold checkpoints that are whole, got number {step} "
            "damaged. Pass an empty folder: the fit has to start anew."
        ) from error


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a file that no other process, and no other fit of this one, may hold."""
    try:
        held = FileLock(path, timeout=0).acquire()
    except Timeout as error:
        raise PrivacyError(
            "checkpoint_dir must be used by one fit at a time, got the folder of "
            "one that is running. Pass another folder."
        ) from error
    with held:
        yield
