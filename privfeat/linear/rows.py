"""From a user's array or feature file to bounded rows in fixed-size chunks."""

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from copy import copy
from functools import partial
from itertools import islice
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from privfeat._types import RowScaling
from privfeat.core.bounds.clipping import clip_rows
from privfeat.core.bounds.grid import grid_step
from privfeat.core.sums.devices import check_devices
from privfeat.core.sums.processes import current_team
from privfeat.core.sums.records import CHUNK_ROWS, MAX_ROWS, Chunk
from privfeat.data import LazyFeatures

# Bounded rows of a file are kept in memory up to this size, else read at every pass.
_CACHE_BYTES = 2**30


class BoundedRows:
    """Records as the core's ``Rows``: clipped once, or at every pass over a large file.

    Parameters
    ----------
    features : array or LazyFeatures of shape (n_samples, n_features)
    labels : int array of shape (n_samples, max_labels)
        Indices of the outputs that a record belongs to, filled up with -1.
    row_scaling, clip_norm, intercept_scaling
        As of `clip_rows`.
    kept : bool array of shape (n_samples,), optional
        Which records count; the others become empty slots. Default: all.
    private : bool
        False turns bounding off; ``row_scaling="unit"``, part of the model, stays.
    """

    def __init__(
        self,
        features: NDArray[np.floating] | LazyFeatures,
        labels: NDArray[np.integer],
        *,
        row_scaling: RowScaling,
        clip_norm: float,
        intercept_scaling: float | None,
        kept: NDArray[np.bool_] | None = None,
        private: bool,
    ) -> None:
        check_devices(private=private)
        n_samples, n_features = features.shape
        if n_samples > MAX_ROWS:
            raise ValueError(
                f"X must have at most {MAX_ROWS} rows, got more. The margin of the "
                "sensitivities does not cover the rounding of their sums."
            )
        self._features = features
        self._kept = np.ones(n_samples, bool) if kept is None else kept
        self._labels = np.where(self._kept[:, None], labels, -1).astype(np.int32)
        self.row_scaling, self.clip_norm = row_scaling, clip_norm
        self._intercept_scaling, self._private = intercept_scaling, private
        self._center, self._shifted = np.zeros(n_features), False
        self.step = grid_step(clip_norm) if private else None
        self.n_columns = n_features + (intercept_scaling is not None)
        in_memory = not isinstance(features, LazyFeatures)
        self._keep = in_memory or 4 * n_samples * self.n_columns <= _CACHE_BYTES
        self._cache: list[Chunk] | None = None

    def centred(self, center: NDArray[np.float64]) -> Self:
        """Return the records as rows from which ``center``, public, is subtracted.

        Rows of unit norm are scaled to unit norm again, and the bound holds for the
        rows that result.
        """
        rows = copy(self)
        rows._center, rows._shifted = center, bool(np.any(center))
        rows._cache = None
        return rows

    def with_constant(self, constant: float) -> Self:
        """Return the records with a constant coordinate, all of label 0, for one pass.

        The sum of the rows of label 0 then holds the sum of all rows and their number.
        """
        rows = copy(self)
        rows._labels = np.where(self._kept, 0, -1).astype(np.int32)[:, None]
        rows._intercept_scaling = constant
        rows.n_columns = self._features.shape[1] + 1
        rows._keep, rows._cache = False, None
        return rows

    def chunks(self) -> Iterable[Chunk]:
        """Return all records that this process holds, in order."""
        return self._bounded_chunks() if self._cache is None else self._cache

    def _bounded_chunks(self) -> Iterator[Chunk]:
        """Yield chunks; the next of each device is bounded while this one is used."""
        cache = []
        part = current_team().part(-(-self._features.shape[0] // CHUNK_ROWS))
        devices = jax.local_devices()
        with ThreadPoolExecutor(1) as ahead:
            chunks = (
                ahead.submit(self._chunk, number, devices[number % len(devices)])
                for number in part
            )
            waiting: deque[Future[Chunk]] = deque(islice(chunks, len(devices)))
            while waiting:
                chunk = waiting.popleft().result()
                waiting.extend(islice(chunks, 1))
                if self._keep:
                    cache.append(chunk)
                yield chunk
        if self._keep:
            self._cache = cache

    def _chunk(self, number: int, device: jax.Device) -> Chunk:
        """Return a chunk of one shape, whatever its place and the rows that follow.

        XLA compiles another shape to another order of operations, and a record's
        contribution must not depend on how many are beside it.
        """
        start = number * CHUNK_ROWS
        stop = min(start + CHUNK_ROWS, self._features.shape[0])
        rows = self._read(start, stop)
        padding = ((0, CHUNK_ROWS - len(rows)), (0, 0))
        kept = np.pad(self._kept[start:stop], padding[0])
        labels = np.pad(self._labels[start:stop], padding, constant_values=-1)
        if padding[0][1] or not rows.flags.c_contiguous:
            rows = np.ascontiguousarray(np.pad(rows, padding))
        with jax.enable_x64(True):
            placed = jax.device_put((rows, self._center, kept, labels), device)
            bounded, norms, finite = _bounded(
                *placed[:3],
                shifted=self._shifted,
                row_scaling=self.row_scaling,
                clip_norm=self.clip_norm,
                intercept_scaling=self._intercept_scaling,
                private=self._private,
            )
            if not finite:
                raise ValueError("X must not contain NaN or infinity.")
            return Chunk(bounded, norms, placed[3])

    def _read(self, start: int, stop: int) -> NDArray[np.floating]:
        if isinstance(self._features, LazyFeatures):
            return self._features.read(start, stop)
        return self._features[start:stop]


def scaled_rows(
    features: NDArray[np.floating], center: NDArray[np.float64], row_scaling: RowScaling
) -> NDArray[np.float64]:
    """Return rows as a model sees them, for predictions: not clipped, no constant."""
    rows = shifted_rows(features, center, row_scaling)
    return np.asarray(unit_rows(rows) if row_scaling == "unit" else rows)


def shifted_rows(
    features: Any, center: Any, row_scaling: RowScaling, xp: Any = np
) -> Any:
    """Return each row, scaled to unit norm for ``"unit"``, minus ``center``.

    In float64, by the array library ``xp``.
    """
    rows = features.astype(xp.float64)
    return (unit_rows(rows, xp) if row_scaling == "unit" else rows) - center[None, :]


def unit_rows(rows: Any, xp: Any = np) -> Any:
    """Return rows divided by their norms; zero rows stay zero."""
    largest = xp.max(xp.abs(rows), axis=1, keepdims=True, initial=0.0)
    rows = rows / xp.where(largest > 0.0, largest, 1.0)  # no overflow of squares
    norms = xp.linalg.norm(rows, axis=1, keepdims=True)
    return rows / xp.where(norms > 0.0, norms, 1.0)


@partial(
    jax.jit,
    static_argnames=(
        "shifted",
        "row_scaling",
        "clip_norm",
        "intercept_scaling",
        "private",
    ),
)
def _bounded(
    features: Array,
    center: Array,
    kept: Array,
    *,
    shifted: bool,
    row_scaling: RowScaling,
    clip_norm: float,
    intercept_scaling: float | None,
    private: bool,
) -> tuple[Array, Array, Array]:
    """Return bounded rows, their norms in feature units, and if all was finite.

    Slots that are not kept are empty: they have no constant coordinate either.
    """
    finite = jnp.all(jnp.isfinite(features))
    step = grid_step(clip_norm)
    if shifted:
        features = shifted_rows(features, center, row_scaling, jnp)
    elif features.dtype == jnp.float16:
        features = features.astype(jnp.float32)
    if private or row_scaling == "unit":
        rows = clip_rows(
            features,
            clip_norm=clip_norm,
            row_scaling=row_scaling,
            intercept_scaling=intercept_scaling,
        )
        if not private:
            rows, step = rows * jnp.float32(step), 1.0
    else:
        rows, step = features.astype(jnp.float32), 1.0
        if intercept_scaling is not None:
            constant = jnp.full((len(rows), 1), intercept_scaling, jnp.float32)
            rows = jnp.concatenate([rows, constant], axis=1)
    rows = jnp.where(kept[:, None], rows, jnp.float32(0.0))
    # a float64 norm can round down, the clip factor allows for it
    return rows, jnp.linalg.norm(rows.astype(jnp.float64), axis=1) * step, finite
