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
counts, for one charge, if they share one history. Hence:

- one process at a time uses a folder, held by a lock;
- only the newest checkpoint is kept, and where it cannot be read nothing goes on from
  an older one: the steps between would be released twice;
- a fit of other parameters, plan, shapes or ledger is refused, and so is one whose
  charge is of a fit that is finished.

What this cannot see: a folder that is copied and gone on with twice is two fits. What
an interrupted write left, which nobody may have read, is removed.
"""

import fcntl
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

from privfeat._checks import check_int
from privfeat._extras import require
from privfeat.exceptions import PrivacyError
from privfeat.trainers.loop import TrainState

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
    """

    state: TrainState
    position: int = 0
    charge: int | None = None


class Checkpoints:
    """The checkpoints of one fit; made by `open_checkpoints`."""

    def __init__(self, manager: Any, every: int, configuration: str) -> None:
        self._manager = manager
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
            return Checkpoint(state, found["position"], found["charge"])

    def keep(self, checkpoint: Checkpoint, *, last: bool) -> None:
        """Write a checkpoint if one is due; it replaces the one before."""
        from orbax.checkpoint import args

        state = checkpoint.state
        if state.step % self._every and not last:
            return
        public = {
            "configuration": self._digest,
            "position": checkpoint.position,
            "charge": checkpoint.charge,
        }
        self._manager.save(
            state.step,
            args=args.Composite(
                state=args.StandardSave(vars(state)), public=args.JsonSave(public)
            ),
        )

    def _read(self, step: int, name: str, like: Any) -> Any:
        """Return one item, as the tree ``like``, or as JSON."""
        from orbax.checkpoint import args

        item = args.JsonRestore() if like is None else args.StandardRestore(like)
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
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise PrivacyError(
                "checkpoint_dir must be used by one fit at a time, got the folder of "
                "one that is running. Pass another folder."
            ) from error
        yield
