"""The records of a fit: bounded rows in chunks of one size, and their center.

Features of networks are far from centred: most of a row of unit norm is the mean of all
rows, which says nothing about its class. Subtracting it and scaling to unit norm again
makes what is left much larger, at the same sensitivity and noise.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import replace
from functools import partial
from itertools import cycle, islice
from typing import Any, Self, TypeVar

import jax
import numpy as np
from numpy.typing import NDArray

from privfeat._memory import has_room
from privfeat._process import check_short_numbers
from privfeat._progress import passing, phase
from privfeat._types import RowScaling
from privfeat.core.bounds.grid import CLIP_RANGE, grid_step
from privfeat.core.bounds.user_clips import UserClip
from privfeat.core.noise.gaussian_mechanism import GaussianMechanism
from privfeat.core.sums.calls import rows_of_call
from privfeat.core.sums.confidence import exact_class_counts
from privfeat.core.sums.devices import check_devices
from privfeat.core.sums.processes import Team
from privfeat.core.sums.records import CHUNK_ROWS, MAX_ROWS, Chunk
from privfeat.core.sums.statistics import exact_class_sums
from privfeat.core.sums.totals import ExactSum
from privfeat.data import LazyFeatures
from privfeat.estimation.rows import COUNT_SCALE, MEAN
from privfeat.estimation.rows.scaling import bounded_rows, shifted_rows, wide_rows
from privfeat.estimation.rows.slots import Slots
from privfeat.solvers.spectrum import shrunk_towards

# Bounded rows of a file are kept in memory up to this size, else read at every pass;
# those of an array, or of a memory map, where there is room for both.
_CACHE_BYTES = 2**30
# What is read of a file at once, about: each read has a cost, and chunks are small.
_BLOCK_BYTES = 2**22
# Of features most is common to all rows: of the squared norms of four sets (digits,
# CIFAR-10, Banking77, scattering) 0.12 to 0.78 is not.
LEAST_VARIED = 0.1
_T = TypeVar("_T")
_Mean = NDArray[np.float64] | None


class BoundedRows:
    """Records as the core's ``Rows``: clipped once, or at every pass over many.

    ``labels``, of shape (n_samples, max_labels), are indices of the outputs that a
    record belongs to, filled up with -1; ``row_scaling``, ``clip_norm`` and
    ``intercept_scaling`` as of `clip_rows`. Of the processes of ``team`` each reads its
    part of the rows. ``kept`` are the records that count, by default all; the others
    become empty slots. ``slots`` say where records stand, if sums of users are clipped.
    Without ``private`` nothing is bounded; ``row_scaling="unit"``, part of the model,
    stays.
    """

    sparse = False
    noisy_count: float | None = None  # released with their mean, if it was
    varied = LEAST_VARIED  # at least, of the squared norm of a row: not common to all

    def __init__(
        self,
        features: Any,
        labels: NDArray[np.integer],
        *,
        row_scaling: RowScaling,
        clip_norm: float,
        intercept_scaling: float | None,
        team: Team,
        kept: NDArray[np.bool_] | None = None,
        slots: Slots | None = None,
        private: bool,
    ) -> None:
        check_devices(private=private)
        check_short_numbers()
        n_samples, n_features = features.shape
        if n_samples > MAX_ROWS:
            raise ValueError(
                f"X must have at most {MAX_ROWS} rows, got more. The margin of the "
                "sensitivities does not cover the rounding of their sums."
            )
        self._features, self._slots, self.users = features, slots, None
        self._kept = np.ones(n_samples, bool) if kept is None else kept
        if slots is not None:
            self.users = UserClip(clip_norm, slots.max_group_size, labels.shape[1])
            self._kept, labels = slots.records >= 0, labels[slots.records]
            n_samples = len(labels)
        self._labels = np.where(self._kept[:, None], labels, -1).astype(np.int32)
        self.row_scaling, self.clip_norm = row_scaling, clip_norm
        self._intercept_scaling, self._private = intercept_scaling, private
        self.center = np.zeros(n_features)
        part = team.part(-(-n_samples // CHUNK_ROWS))
        self._held = slice(part.start * CHUNK_ROWS, part.stop * CHUNK_ROWS)
        self.step = grid_step(clip_norm) if private else None
        self.n_columns = n_features + (intercept_scaling is not None)
        in_memory = not isinstance(features, LazyFeatures)
        n_bytes = 4 * n_samples * self.n_columns
        if in_memory:
            few = self.sparse or n_bytes <= _BLOCK_BYTES
            self._keep = few or has_room(n_bytes + features.nbytes)
        else:
            self._keep = n_bytes <= _CACHE_BYTES
        self._cache: list[Any] | None = None
        if not in_memory:  # before the charge; costs a read, a pass four times as much
            features.check_finite(self._held if slots is None else slice(None))

    def centred(
        self, center: _Mean, mechanism: GaussianMechanism, expected: _Mean = None
    ) -> Self:
        """Return the records as rows from which ``center``, public, is subtracted.

        None: their mean, which is released; a public one is ``expected``. Rows of unit
        norm are scaled to unit norm again; the bound holds for the rows that result.
        """
        rows = copy(self)
        if center is None:
            rows.center, rows.noisy_count, rows.varied = release_mean(
                self, mechanism, expected
            )
        else:
            rows.center, rows.varied = center, 1.0
        rows._cache = None
        return rows

    def with_constant(self, constant: float) -> Self:
        """Return the records with a constant coordinate, all of label 0, for one pass.

        The sum of the rows of label 0 then holds the sum of all rows and their number.
        """
        rows = copy(self)
        rows._labels = np.where(self._kept, 0, -1).astype(np.int32)[:, None]
        rows.users = self.users and replace(self.users, max_labels=1)
        rows._intercept_scaling = constant
        rows.n_columns = self._features.shape[1] + 1
        rows._keep, rows._cache = False, None
        return rows

    def class_counts(self, n_classes: int) -> ExactSum:
        """Return how many records this process holds of each label, one a record."""
        labels, kept = self._labels[self._held, 0], self._kept[self._held]
        return exact_class_counts(labels, kept, n_classes)

    def chunks(self) -> Iterable[Any]:
        """Return all records that this process holds, in order."""
        if self._cache is not None:
            return passing(self._cache, len(self._cache))
        # sparse rows stay on the host, whatever the device
        n_rows = CHUNK_ROWS if self.sparse else rows_of_call(self.n_columns)
        starts = range(self._held.start, self._held.stop, n_rows)
        chunks = passing(self._bounded_chunks(starts), len(starts))
        if not self._keep:
            return chunks
        self._cache = list(chunks)
        return self._cache

    def _bounded_chunks(self, starts: range) -> Iterator[Any]:
        """Yield chunks from these rows on; more are read and bounded meanwhile."""
        devices, n_rows, at_once = cycle(jax.local_devices()), starts.step, 1
        if isinstance(self._features, LazyFeatures):
            row_bytes = self._features.shape[1] * self._features.dtype.itemsize
            at_once = max(1, _BLOCK_BYTES // (n_rows * max(row_bytes, 1)))
        blocks = _ahead(
            (
                partial(self._block, starts[first : first + at_once], n_rows)
                for first in range(0, len(starts), at_once)
            ),
            depth=2,
        )
        chunks = (
            partial(self._chunk, start, n_rows, rows, next(devices))
            for block in blocks
            for start, rows in block
        )
        return _ahead(chunks, depth=len(jax.local_devices()))

    def _block(
        self, starts: range, n_rows: int
    ) -> Iterable[tuple[int, NDArray[np.floating]]]:
        """Return the rows of these calls, read at once."""
        # the next rows are another's
        stop = min(starts[-1] + n_rows, self._held.stop, len(self._labels))
        rows = self._read(starts[0], stop)
        parts = (rows[i : i + n_rows] for i in range(0, len(rows), n_rows))
        return zip(starts, parts, strict=True)

    def _chunk(
        self, start: int, n_rows: int, rows: NDArray[np.floating], device: jax.Device
    ) -> Chunk:
        """Return a chunk of one shape, whatever its place and the rows that follow.

        XLA compiles another shape to another order of operations, and a record's
        contribution must not depend on how many are beside it.
        """
        kept = self._kept[start : start + len(rows)]
        labels = self._labels[start : start + len(rows)]
        if missing := n_rows - len(rows):
            kept = np.pad(kept, (0, missing))
            labels = np.pad(labels, ((0, missing), (0, 0)), constant_values=-1)
        features: Any = wide_rows(rows, n_rows)
        with jax.enable_x64(True), jax.default_device(device):
            if np.any(self.center):
                features = shifted_rows(features, self.center, self.row_scaling)
            bounded = bounded_rows(
                features,
                kept,
                row_scaling=self.row_scaling,
                clip_norm=self.clip_norm,
                intercept_scaling=self._intercept_scaling,
                private=self._private,
            )
            if not np.asarray(bounded.finite).all():
                raise ValueError("X must not contain NaN or infinity.")
            parts = jax.device_put((labels, self._users(start, n_rows)), device)
            return Chunk(bounded.rows, bounded.norms, *parts)

    def _users(self, start: int, n_rows: int) -> NDArray[np.int32] | None:
        """Return whose the records of a call are, -1 for empty slots."""
        if self._slots is None:
            return None
        users = self._slots.users[start : start + n_rows]
        users = np.pad(users, (0, n_rows - len(users)), constant_values=-1)
        return users.astype(np.int32)

    def _at(self, start: int, stop: int) -> slice | NDArray[np.int64]:
        """Return the records at these places; that of an empty slot is not kept."""
        if self._slots is None:
            return slice(start, stop)
        return np.maximum(self._slots.records[start:stop], 0)

    def _read(self, start: int, stop: int) -> NDArray[np.floating]:
        if self._slots is not None:
            return np.asarray(self._features[self._at(start, stop)])
        if isinstance(self._features, LazyFeatures):
            return self._features.read(start, stop)
        # A copy: the bound reads a row twice, and another thread, or the process that
        # wrote a memory map, may change it meanwhile.
        return np.array(self._features[start:stop])


def _ahead(tasks: Iterable[Callable[[], _T]], *, depth: int) -> Iterator[_T]:
    """Yield the results of tasks, in order; one thread runs up to ``depth`` ahead."""
    with ThreadPoolExecutor(1) as thread:
        results = map(thread.submit, tasks)
        waiting = deque(islice(results, depth))
        while waiting:
            result = waiting.popleft().result()
            waiting.extend(islice(results, 1))
            yield result


def release_mean(
    rows: BoundedRows, mechanism: GaussianMechanism, expected: _Mean = None
) -> tuple[NDArray[np.float64], float, float]:
    """Return a private mean of the rows after scaling, before a clip, and their number.

    And the least part of a centred row, by its squared norm, that is not what noise has
    left of the mean in all rows.

    The mean has shape (n_features,). Rows count as they are scaled: 0.89 to 1 each.

    The noisy sum over the noisy count, at least one record. The sum is shrunk towards
    zero, or a part of the ``expected`` mean, public (`shrunk_towards`): without signal,
    nothing else is subtracted. The mean of rows in a ball lies in it, so it is cut to
    the ball as well (not without privacy, where rows are not clipped). All of this uses
    the release and public facts.
    """
    clip_norm = rows.clip_norm
    radius = 1.0 if rows.row_scaling == "unit" else clip_norm
    constant = max(COUNT_SCALE * radius, CLIP_RANGE[0])
    with phase("mean of the features"):
        exact = exact_class_sums(rows.with_constant(constant), 1)
    released = mechanism.release(MEAN, exact)
    total, count = released.value[0, :-1], released.value[0, -1] / constant
    scale = clip_norm / np.hypot(1.0, constant / radius) / radius  # of one row
    lifted = max(count, scale)
    target = None if expected is None else lifted * expected
    mean = shrunk_towards(total, released.noise_stddev, target) / lifted
    if released.noise_stddev > 0.0:
        mean *= radius / max(float(np.linalg.norm(mean)), radius)
    varied = 1.0
    if expected is None:
        most = max(float(np.linalg.norm(total)), 1e-300)
        kept = float(np.linalg.norm(mean)) * lifted / most
        length = float(mean @ mean) / radius**2
        left = (1.0 - kept) * length / max(kept * (1.0 - length), 1e-9)
        varied = min(max(1.0 - left, LEAST_VARIED), 1.0) if kept > 0.0 else LEAST_VARIED
    return np.asarray(mean), float(count), varied
