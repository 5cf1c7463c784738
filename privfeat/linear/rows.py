"""The records of a fit: bounded rows in chunks of one size, and their center.

Features of networks are far from centred: most of a row of unit norm is the mean of all
rows, which says nothing about its class. Subtracting it and scaling to unit norm again
makes what is left much larger, at the same sensitivity and noise.
"""

import math
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from copy import copy
from itertools import cycle, islice
from typing import Any, Self

import jax
import numpy as np
from numpy.typing import NDArray

from privfeat._types import Adjacency, RowScaling
from privfeat.core.accounting.plan import Query
from privfeat.core.bounds import replacement, sensitivity
from privfeat.core.bounds.clipping import CLIP_RANGE
from privfeat.core.bounds.grid import grid_step
from privfeat.core.noise.gaussian_mechanism import GaussianMechanism
from privfeat.core.sums.devices import check_devices
from privfeat.core.sums.processes import Team
from privfeat.core.sums.records import CHUNK_ROWS, MAX_ROWS, Chunk, rows_of_call
from privfeat.core.sums.statistics import exact_class_sums
from privfeat.data import LazyFeatures
from privfeat.linear.scaling import bounded_rows

# Bounded rows of a file are kept in memory up to this size, else read at every pass.
_CACHE_BYTES = 2**30
# The release of the mean.
MEAN = "feature_mean"
# Part of rho that the mean gets: all other releases have 5 % more noise for it.
SHARE = 0.1
# The constant coordinate that counts records, in units of the norm of a row; it takes
# 11 % of the norm from the features.
COUNT_SCALE = 0.5


class BoundedRows:
    """Records as the core's ``Rows``: clipped once, or at every pass over a large file.

    Parameters
    ----------
    features : array or LazyFeatures of shape (n_samples, n_features)
    labels : int array of shape (n_samples, max_labels)
        Indices of the outputs that a record belongs to, filled up with -1.
    row_scaling, clip_norm, intercept_scaling
        As of `clip_rows`.
    team : Team
        The processes that fit together, of which each reads its part of the rows.
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
        team: Team,
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
        self.center = np.zeros(n_features)
        self._chunk_numbers = team.part(-(-n_samples // CHUNK_ROWS))
        self.step = grid_step(clip_norm) if private else None
        self.n_columns = n_features + (intercept_scaling is not None)
        in_memory = not isinstance(features, LazyFeatures)
        self._keep = in_memory or 4 * n_samples * self.n_columns <= _CACHE_BYTES
        self._cache: list[Chunk] | None = None

    def centred(
        self, center: NDArray[np.float64] | None, mechanism: GaussianMechanism
    ) -> Self:
        """Return the records as rows from which ``center``, public, is subtracted.

        None: their mean, which is released. Rows of unit norm are scaled to unit norm
        again, and the bound holds for the rows that result.
        """
        rows = copy(self)
        rows.center = release_mean(self, mechanism) if center is None else center
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
        if self._keep and self._cache is None:
            self._cache = list(self._bounded_chunks())
        return self._bounded_chunks() if self._cache is None else self._cache

    def _bounded_chunks(self) -> Iterator[Chunk]:
        """Yield chunks; the next of each device is bounded while this one is used."""
        devices = jax.local_devices()
        numbers, n_rows = self._chunk_numbers, rows_of_call(self.n_columns)
        with ThreadPoolExecutor(1) as ahead:
            chunks = (
                ahead.submit(self._chunk, CHUNK_ROWS * number, n_rows, device)
                for number, device in zip(
                    numbers[:: n_rows // CHUNK_ROWS], cycle(devices)
                )
            )
            waiting: deque[Future[Chunk]] = deque(islice(chunks, len(devices)))
            while waiting:
                chunk = waiting.popleft().result()
                waiting.extend(islice(chunks, 1))
                yield chunk

    def _chunk(self, start: int, n_rows: int, device: jax.Device) -> Chunk:
        """Return a chunk of one shape, whatever its place and the rows that follow.

        XLA compiles another shape to another order of operations, and a record's
        contribution must not depend on how many are beside it.
        """
        end = CHUNK_ROWS * self._chunk_numbers.stop  # the next rows are another's
        stop = min(start + n_rows, end, self._features.shape[0])
        rows = self._read(start, stop)
        padding = ((0, n_rows - len(rows)), (0, 0))
        kept = np.pad(self._kept[start:stop], padding[0])
        labels = np.pad(self._labels[start:stop], padding, constant_values=-1)
        if padding[0][1] or not rows.flags.c_contiguous:
            rows = np.ascontiguousarray(np.pad(rows, padding))
        with jax.enable_x64(True):
            placed = jax.device_put((rows, self.center, kept, labels), device)
            bounded, norms, finite = bounded_rows(
                *placed[:3],
                shifted=bool(np.any(self.center)),
                row_scaling=self.row_scaling,
                clip_norm=self.clip_norm,
                intercept_scaling=self._intercept_scaling,
                private=self._private,
            )
            if not np.all(finite):
                raise ValueError("X must not contain NaN or infinity.")
            return Chunk(bounded, norms, placed[3])

    def _read(self, start: int, stop: int) -> NDArray[np.floating]:
        if isinstance(self._features, LazyFeatures):
            return self._features.read(start, stop)
        return self._features[start:stop]


def public_center(
    center: Any, n_features: int, row_scaling: RowScaling
) -> NDArray[np.float64]:
    """Return a center that is public, (n_features,): the array given, or zeros.

    Raises
    ------
    TypeError, ValueError
        If ``center`` is neither a bool nor a finite array of this shape, or too long to
        be a mean of rows of unit norm.
    """
    if isinstance(center, bool | np.bool_):
        return np.zeros(n_features)
    values = np.asarray(center)
    if values.dtype.kind not in "iuf":
        raise TypeError(
            f"center must be a bool or an array of numbers, got {center!r}."
        )
    if values.shape != (n_features,):
        raise ValueError(
            f"center must have shape ({n_features},), got {values.shape}. Pass the "
            "mean of public rows, or True."
        )
    norm = float(np.linalg.norm(values))
    longest = 1.0 + 1e-6 if row_scaling == "unit" else CLIP_RANGE[1]
    if not norm <= longest:
        raise ValueError(
            f"center must have norm at most {longest:.6g}, got {norm:.6g}. Divide each "
            "public row by its norm before the mean, for row_scaling='unit'."
        )
    return values.astype(np.float64)


def mean_query(
    others: Sequence[Query],
    clip_norm: float,
    adjacency: Adjacency,
    row_scaling: RowScaling,
) -> Query:
    """Return the query for the mean; ``others`` are the other releases of the fit.

    The statistic is the sum of the bounded rows with their constant coordinate:
    sensitivity ``clip_norm``, and twice that under replace-one, as of one class sum.
    Next to a row of unit norm the constant is the same in every bounded row, and two of
    them differ by less; a row that is clipped with its constant may have lost it.
    A sampled release costs ``sampling_prob**2`` of a full one, to leading order.
    """
    cost = sum(query.count * query.weight * query.sampling_prob**2 for query in others)
    if row_scaling == "unit":
        features = clip_norm / math.hypot(1.0, COUNT_SCALE)
        bound = replacement.row_sum(features, COUNT_SCALE * features, adjacency)
    else:
        bound = sensitivity.class_sums(clip_norm, adjacency)
    return Query(MEAN, bound, weight=SHARE / (1.0 - SHARE) * cost)


def release_mean(
    rows: BoundedRows, mechanism: GaussianMechanism
) -> NDArray[np.float64]:
    """Return a private mean of the rows, (n_features,), after scaling, before a clip.

    Notes
    -----
    The noisy sum over the noisy count, at least one record. The sum is shrunk by the
    factor ``max(0, 1 - d s**2 / norm(sum)**2)`` of James and Stein for noise of stddev
    ``s``: without signal, nothing is subtracted. The mean of rows in a ball lies in it,
    so it is cut to the ball as well (not without privacy, where rows are not clipped).
    All of this uses the release alone.
    """
    clip_norm = rows.clip_norm
    radius = 1.0 if rows.row_scaling == "unit" else clip_norm
    constant = max(COUNT_SCALE * radius, CLIP_RANGE[0])
    released = mechanism.release(
        MEAN, exact_class_sums(rows.with_constant(constant), 1)
    )
    total, count = released.value[0, :-1], released.value[0, -1] / constant
    # of one row in the sum
    scale = clip_norm / np.hypot(1.0, constant / radius) / radius
    energy = float(total @ total)
    noise = len(total) * released.noise_stddev**2
    shrink = max(0.0, 1.0 - noise / energy) if energy > 0.0 else 0.0
    mean = total * shrink / max(count, scale)
    if released.noise_stddev > 0.0:
        mean *= radius / max(float(np.linalg.norm(mean)), radius)
    return np.asarray(mean)
