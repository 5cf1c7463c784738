"""Checkpoints: what a fit has released so far, on disk, so that it can go on.

A checkpoint holds parameters, optimizer, moving average, number and random name of the
charge, and the position in the key stream: releases, what was computed from them, and
public numbers. It holds no exact sum, no sampled record, no seed, and no key of noise
but that of ``"sgld"`` and ``"sghmc"``, whose noise promises nothing. orbax writes
arrays and JSON, nothing that runs when it is read, and a checkpoint appears under its
name whole or not at all.

**Privacy.** Checkpoints are written after whole steps. A fit that goes on has lost the
steps after the last checkpoint. Nothing of them has left the process (``on_step`` is
called after a checkpoint alone), so they are no releases; they are made again with
fresh batches and noise (the same, bit for bit, for a seeded fit). Both runs together
release no more than the plan counts, for one charge, if they share one history. The
first checkpoint follows the charge, before any step: it holds starting values, which no
record has moved.

With correlated noise a checkpoint begins a stretch: groups are drawn anew, and noise
after it takes nothing back of that before it. `privfeat.core.bounds.strategy` proves
what that costs, for other data as well, and a checkpoint need not hold noise.

**Other data.** Nothing is stored by which data could be recognized: a hash of them,
keyed or not, would tell a reader of the folder who is in them. Nothing has to be:

*Claim.* Let step ``t`` of a fit be made on the data set ``D_t``. If all of them are
sampled with the stated probability, and none is chosen by the exact values of another,
the fit is as private as its statement says for each record of any of them.

*Proof.* Take a record out of every ``D_t`` that holds it (or replace it there). Given
the earlier releases, step ``t`` then changes as it does between two neighbours, or not
at all: its sum moves by at most the stated sensitivity, and the record was sampled
afresh with the stated probability. The releases are those that the plan composes, and
adaptive composition does not ask that they are of one data set.

So a fit that goes on with other records is private, for one charge of the ledger that
both runs were given. It is a model of two data sets, so it warns. A *finished* fit has
nothing to release and was not fitted to what it is given: going on with it is an error,
and `DPSGDModel.restore` returns its model. Hence:

- One process at a time uses a folder: it holds the empty file ``.lock``, which stays
  there and which a kill sets free.
- Only the newest checkpoint is kept. If it cannot be read nothing goes on from an older
  one: the steps between would be released twice.
- A fit of other parameters, plan, shapes or ledger is refused, and so is one whose
  charge is of a finished fit.
- Of a charged fit only the newest checkpoint can be gone on with, and only once,
  whatever copies of the folder there are: `privfeat.core.ledger.runs`.

Of processes that train together the first alone has a folder, and passes on what it
holds; if it cannot, all of them end. Another number of processes may go on with it.

This cannot see a copied folder of a fit without a ledger: gone on with twice, it is two
fits. What an interrupted write left, which nobody may have read, is removed.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import numpy as np
from filelock import FileLock, Timeout

from privfeat._checks import check_int
from privfeat.core.ledger.privacy_ledger import PrivacyLedger
from privfeat.core.ledger.runs import newest_checkpoint
from privfeat.exceptions import PrivacyError
from privfeat.networks.training.loop import TrainState

_LOCK = ".lock"
_UNFINISHED = "orbax-checkpoint-tmp"


@dataclass
class Checkpoints:
    """The checkpoints of one fit; made by `open_checkpoints`."""

    manager: Any  # an orbax CheckpointManager
    configuration: str = ""  # a digest of all that both runs must share; public
    # as JSON: what the model of the finished fit needs beside parameters; public
    fitted: dict[str, Any] = field(default_factory=dict)
    ledger: PrivacyLedger | None = None
    name: str | None = None  # of the charge: random
    # those of the newest checkpoint; kept up to date
    tokens: list[str | None] = field(default_factory=lambda: [None])

    def newest(self, start: TrainState) -> tuple[TrainState, dict[str, Any]] | None:
        """Return the newest checkpoint, or None; ``start`` gives the shapes.

        Beside the state: ``position`` of the key stream, and ``charge``, the number of
        the charge or None. ValueError if it is of another fit, or cannot be read.
        """
        step = self.manager.latest_step()
        if step is None:
            return None
        with _damage_explained(step):
            kept = self._read(step, "public")
            configuration = str(kept["configuration"])
        if configuration != self.configuration:
            raise ValueError(
                "checkpoint_dir must hold a fit of these parameters, on data of these "
                "shapes, with this ledger, got another. Pass an empty folder, or what "
                "was passed then."
            )
        with _damage_explained(step):
            state = TrainState(**self._read(step, "state", vars(start)))
            if state.step != step or _shapes(state) != _shapes(start):
                raise ValueError("state")
            check_int("position", kept["position"], low=0, high=2**63)
            if kept["charge"] is not None:
                check_int("charge", kept["charge"], low=1)
            # checkpoints of older releases have none
            self.tokens[:] = kept.get("tokens", (None,))
        return state, kept

    def finished(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the parameters of a finished fit, and what its model needs else.

        ValueError if there is none, or it cannot be read.
        """
        step, fitted = self.manager.latest_step(), None
        if step is not None:
            with _damage_explained(step):
                fitted = self._read(step, "public").get("fitted")
        if fitted is None:
            raise ValueError(
                "checkpoint_dir must hold a finished fit to restore, got none."
            )
        with _damage_explained(step):
            state = self._read(step, "state")
            return state["parameters"] | (state["average"] or {}), fitted

    def take_name(self, name: str | None, found: dict[str, Any] | None) -> None:
        """Keep the name of the charge; PrivacyError if ``found`` is of another one.

        A ledger that was put back from an older copy has numbers again.
        """
        self.name = name
        if found is not None and found.get("name", name) != name:
            raise PrivacyError(
                f"charge {found['charge']} must be that of the interrupted fit, got "
                "another: the ledger was put back from a copy. Charge what it lacks, "
                "and start the fit anew."
            )

    def check_room(self, start: TrainState) -> None:
        """Raise OSError unless the disk has room for a checkpoint and the next one."""
        size = 2 * sum(np.asarray(leaf).nbytes for leaf in jax.tree.leaves(vars(start)))
        free = shutil.disk_usage(self.manager.directory).free
        if free < size:
            raise OSError(
                f"checkpoint_dir must have room for two checkpoints, of {size:,} "
                f"bytes, got a disk with {free:,}. Pass a folder elsewhere."
            )

    def keep(
        self, state: TrainState, position: int, charge: int | None, *, last: bool
    ) -> None:
        """Write a checkpoint; it replaces the one before.

        PrivacyError if another run has gone on with the charge: nothing was written
        then.
        """
        kept: dict[str, Any] = {"configuration": self.configuration}
        kept |= {"position": position, "charge": charge}
        if last:
            kept["fitted"] = self.fitted
        if self.ledger is None or charge is None:
            self._save(state, kept)
            return
        with newest_checkpoint(self.ledger, charge, self.tokens) as tokens:
            self._save(state, kept | {"tokens": tokens, "name": self.name})
            self.tokens[:] = tokens  # the ledger may have either, if it fails now
        self.tokens[:] = tokens[:1]

    def _save(self, state: TrainState, kept: dict[str, Any]) -> None:
        from orbax.checkpoint import args

        arrays = jax.tree.map(_on_host, vars(state))
        written = args.StandardSave(arrays), args.JsonSave(kept)
        items = dict(zip(("state", "public"), written, strict=True))
        # forced: it asks no service of JAX whether the process is to be ended
        self.manager.save(state.step, args=args.Composite(**items), force=True)

    def _read(self, step: int, name: str, like: Any = None) -> Any:
        """Return one item, the state as the tree ``like``, or as it was written."""
        from orbax.checkpoint import args

        like = jax.tree.map(_on_host, like)
        item = args.JsonRestore() if name == "public" else args.StandardRestore(like)
        tree = self.manager.restore(step, args=args.Composite(**{name: item}))[name]
        # free of the devices that orbax has put them on
        return jax.tree.map(_on_host, tree)


@contextmanager
def open_checkpoints(
    folder: str | os.PathLike[str], **about: Any
) -> Iterator[Checkpoints]:
    """Hold the folder for one fit; made, for its owner alone, if it is not there.

    PrivacyError if another fit holds it.
    """
    from orbax import checkpoint as orbax

    path = Path(folder).absolute()
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _locked(path / _LOCK):
        for entry in path.iterdir():
            if _UNFINISHED in entry.name:
                shutil.rmtree(entry)
        here = jax.process_index()  # of several processes this one waits for no other
        options = orbax.CheckpointManagerOptions(
            max_to_keep=1,
            enable_async_checkpointing=False,
            create=False,
            multiprocessing_options=orbax.options.MultiprocessingOptions(
                primary_host=here, active_processes={here}
            ),
        )
        with orbax.CheckpointManager(path, options=options) as manager:
            yield Checkpoints(manager, **about)


def _on_host(leaf: Any) -> Any:
    return np.asarray(leaf) if isinstance(leaf, jax.Array) else leaf


def _shapes(state: TrainState) -> list[Any]:
    """Return the shapes and types of all arrays."""
    leaves = map(np.asarray, jax.tree.leaves(vars(state)))
    return [(leaf.shape, leaf.dtype) for leaf in leaves]


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
