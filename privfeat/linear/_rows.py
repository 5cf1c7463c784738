"""From a user's array or feature file to bounded rows in fixed-size chunks."""

from collections.abc import Iterator
from copy import copy
from typing import Self

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from privfeat._types import RowScaling
from privfeat.core.clipping import clip_rows, grid_step
from privfeat.core.records import CHUNK_ROWS, MAX_ROWS, Chunk
from privfeat.data import LazyFeatures
from privfeat.exceptions import PrivacyError

EXACT_BACKENDS = ("cpu", "gpu")
# Bounded rows of a file are kept in memory up to this size, else read at every pass.
_CACHE_BYTES = 2**31


class BoundedRows:
    """Records as the core's ``Rows``: clipped once, or at every pass over a large file.

    Parameters
    ----------
    features : array or LazyFeatures of shape (n_samples, n_features)
    labels : int array of shape (n_samples, max_labels)
        Indices of the outputs that a record belongs to, filled up with -1.
    row_scaling, clip_norm, intercept_scaling
        See ``core.clipping.clip_rows``.
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
        if jax.default_backend() not in EXACT_BACKENDS:
            raise PrivacyError(
                f"the device must be one of {EXACT_BACKENDS}, got "
                f"{jax.default_backend()!r}. Exact sums need IEEE float64."
            )
        n_samples, n_features = features.shape
        if n_samples > MAX_ROWS:
            raise ValueError(
                f"X must have at most {MAX_ROWS} rows, got more. Sums of more rows "
                "are not exact."
            )
        self._features = features
        self._kept = np.ones(n_samples, bool) if kept is None else kept
        self._labels = np.where(self._kept[:, None], labels, -1).astype(np.int32)
        self._row_scaling = row_scaling
        self._clip_norm = clip_norm
        self._intercept_scaling = intercept_scaling
        self._private = private
        self._center = np.zeros(n_features)
        self.step = grid_step(clip_norm) if private else None
        self.n_columns = n_features + (intercept_scaling is not None)
        in_memory = not isinstance(features, LazyFeatures)
        size = 4 * n_samples * self.n_columns
        self._keep = in_memory or size <= _CACHE_BYTES
        self._cache: list[Chunk] | None = None

    def centred(self, center: NDArray[np.float64]) -> Self:
        """Return the records as rows from which ``center``, public, is subtracted.

        Rows of unit norm are scaled to unit norm again, and the bound holds for the
        rows that result.
        """
        rows = copy(self)
        rows._center, rows._cache = center, None
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

    def chunks(self) -> Iterator[Chunk]:
        """Yield all records."""
        if self._cache is not None:
            yield from self._cache
            return
        cache = []
        for start in range(0, self._features.shape[0], CHUNK_ROWS):
            stop = min(start + CHUNK_ROWS, self._features.shape[0])
            chunk = self._bound(self._read(start, stop), slice(start, stop))
            if self._keep:
                cache.append(chunk)
            yield chunk
        if self._keep:
            self._cache = cache

    def chunks_of(self, label: int) -> Iterator[Chunk]:
        """Yield the records that carry ``label``."""
        indices = np.flatnonzero(np.any(self._labels == label, axis=1))
        for start in range(0, len(indices), CHUNK_ROWS):
            part = indices[start : start + CHUNK_ROWS]
            yield self._bound(self._read_rows(part), part)

    def _read(self, start: int, stop: int) -> NDArray[np.floating]:
        if isinstance(self._features, LazyFeatures):
            return _check_finite(self._features.read(start, stop))
        return self._features[start:stop]

    def _read_rows(self, indices: NDArray[np.integer]) -> NDArray[np.floating]:
        if isinstance(self._features, LazyFeatures):
            return _check_finite(self._features.read_rows(indices))
        return np.asarray(self._features[indices])

    def _bound(
        self, features: NDArray[np.floating], records: slice | NDArray[np.integer]
    ) -> Chunk:
        # One shape for every chunk: XLA compiles another shape to another order of
        # operations, and a record's contribution must not depend on how many follow.
        padding = CHUNK_ROWS - len(features)
        features = np.ascontiguousarray(np.pad(features, ((0, padding), (0, 0))))
        if np.any(self._center):
            features = shifted_rows(features, self._center, self._row_scaling)
        labels = np.pad(
            self._labels[records], ((0, padding), (0, 0)), constant_values=-1
        )
        if features.dtype == np.float16:
            features = features.astype(np.float32)
        with jax.enable_x64(True):
            if self._private or self._row_scaling == "unit":
                rows = clip_rows(
                    features,
                    clip_norm=self._clip_norm,
                    row_scaling=self._row_scaling,
                    intercept_scaling=self._intercept_scaling,
                )
                if not self._private:
                    rows = rows * jnp.float32(grid_step(self._clip_norm))
            else:
                rows = _with_constant(features, self._intercept_scaling)
            # an empty slot has no constant coordinate; the count as data, not as shape
            filled = np.pad(self._kept[records], (0, padding))
            rows = jnp.where(filled[:, None], rows, jnp.float32(0.0))
            norms = jnp.linalg.norm(rows.astype(jnp.float64), axis=1)
            # a float64 norm can round down, the clip factor allows for it
            return Chunk(rows, norms * (self.step or 1.0), jnp.asarray(labels))


def scaled_rows(
    features: NDArray[np.floating], center: NDArray[np.float64], row_scaling: RowScaling
) -> NDArray[np.float64]:
    """Return rows as a model sees them, for predictions: not clipped, no constant."""
    rows = shifted_rows(features, center, row_scaling)
    return unit_rows(rows) if row_scaling == "unit" else rows


def shifted_rows(
    features: NDArray[np.floating], center: NDArray[np.float64], row_scaling: RowScaling
) -> NDArray[np.float64]:
    """Return each row, scaled to unit norm for ``"unit"``, minus ``center``."""
    rows = features.astype(np.float64)
    return (unit_rows(rows) if row_scaling == "unit" else rows) - center


def unit_rows(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return rows divided by their norms; zero rows stay zero."""
    largest = np.max(np.abs(rows), axis=1, keepdims=True, initial=0.0)
    rows = rows / np.where(largest > 0.0, largest, 1.0)  # no overflow of squares
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(norms > 0.0, norms, 1.0))


def _with_constant(features: NDArray[np.floating], constant: float | None) -> jax.Array:
    rows = features.astype(np.float32)
    if constant is not None:
        column = np.full((len(rows), 1), constant, np.float32)
        rows = np.concatenate([rows, column], axis=1)
    return jnp.asarray(rows)


def _check_finite(features: NDArray[np.floating]) -> NDArray[np.floating]:
    if not np.all(np.isfinite(features)):
        raise ValueError("X must not contain NaN or infinity.")
    return features
