"""Totals of chunk sums: exact, whatever their order, devices and processes.

The cores of a CPU share the chunks of a sum; an accelerator is handed several at once.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import numpy as np
from jaxtyping import Bool, Float64, Int64, Num, Shaped

from privfeat._process import one_thread_a_product
from privfeat.core.bounds.user_clips import UserClip
from privfeat.core.sums.arithmetic import kernels
from privfeat.core.sums.processes import Team
from privfeat.core.sums.records import Chunk, Rows

# Sums of a call are at most 2**53: so many fit into an int64 before it must be carried.
_CARRY_BITS = 40
_PARTS_BEFORE_CARRY = 2**9


@dataclass(frozen=True)
class ExactSum:
    """A sum over records before noise. Sensitive: only a mechanism may release it.

    If several processes fit together, it sums the records of this one until `over`.

    Attributes
    ----------
    total : array of int64, or of float64 without privacy
        In steps of the grid.
    grid_step : float
        In units of the statistic; a power of two, unless it is `scaled`.
    carry : array of int64, optional
        What did not fit into ``total``, in ``2**40`` steps of the grid.
    users : UserClip, optional
        How what each user adds was clipped, if it was.
    value : array of float64
        The sum in units of the statistic, rounded to float64.
    """

    total: Shaped[np.ndarray, "..."]
    grid_step: float = 1.0
    carry: Int64[np.ndarray, "..."] | None = None
    users: UserClip | None = None
    value: Float64[np.ndarray, "..."] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        value = np.asarray(rounded(self.total, self.carry) * self.grid_step)
        object.__setattr__(self, "value", value)

    def scaled(self, scale: float) -> "ExactSum":
        """Return the sum times ``scale``, as a block of a stack of sums.

        It stays whole in its steps; only ``value`` is rounded once more.
        """
        return replace(self, grid_step=self.grid_step * scale)

    def over(self, team: Team, what: str) -> "ExactSum":
        """Return the sum over all processes, each of which passes its own.

        It is a PrivacyError in all of them unless all say the same ``what`` of it.
        """
        if self.total.dtype == np.float64:
            return replace(self, total=team.total(self.total, what, self.grid_step))
        low, high = _split(self.total)
        carry = high if self.carry is None else self.carry + high
        total, carry = team.total(np.stack([low, carry]), what, self.grid_step)
        return replace(self, total=total, carry=carry)


def rounded(
    total: Shaped[np.ndarray, "..."], carry: Int64[np.ndarray, "..."] | None
) -> Float64[np.ndarray, "..."]:
    """Return ``total + 2**40 carry``, rounded once, however it was split in two."""
    if carry is None:
        return total.astype(np.float64)
    low, high = _split(total)
    return np.asarray(np.ldexp((carry + high).astype(np.float64), _CARRY_BITS) + low)


def exact_sum(
    rows: Rows,
    shape: tuple[int, ...],
    grid_step: float,
    part_of: Callable[..., Num[Any, "p q"]],
    sampler: Callable[[int], Bool[np.ndarray, " b"]] | None = None,
    users: UserClip | None = None,
) -> ExactSum:
    """Return the sum over all chunks of ``part_of`` a chunk, times ``grid_step``.

    ``part_of`` is called with 64-bit types on, and returns an array of this shape: with
    privacy whole numbers of at most ``2**53``. On a CPU several threads call it. What
    ``sampler`` draws for a chunk, in the order of chunks, is its second argument.
    ``users`` says how ``part_of`` clips what each user adds, if it does.
    """

    def drawn(chunk: Chunk) -> tuple[Any, ...]:
        return (chunk,) if sampler is None else (chunk, sampler(len(chunk.labels)))

    total = Total(rows.step is not None, shape)
    with closing(in_order(part_of, map(drawn, rows.chunks()))) as parts:
        for part in parts:
            total.add(part)
    return total.sum(grid_step, users)


def in_order(
    function: Callable[..., Any], calls: Iterable[tuple[Any, ...]]
) -> Generator[Any]:
    """Yield what ``function`` returns for each call, in the order of the calls.

    On a CPU in as many threads as the products of NumPy have, which ``OMP_NUM_THREADS``
    or ``threadpoolctl`` may limit; an accelerator works through its queue by itself.
    Arguments are drawn in this thread, in order, few ahead. 64-bit types are on.
    """

    def result(*arguments: Any) -> Any:
        with jax.enable_x64(True):  # a setting of each thread
            return function(*arguments)

    if jax.default_backend() != "cpu":
        yield from (result(*arguments) for arguments in calls)
        return
    waiting: deque[Future[Any]] = deque()
    with one_thread_a_product() as n_threads, ThreadPoolExecutor(n_threads) as pool:
        for arguments in calls:
            waiting.append(pool.submit(result, *arguments))
            if len(waiting) > n_threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


class Total:
    """A running total: whole, hence exact, with privacy; float64 without.

    One on each device that parts come from; added up on the host.
    """

    def __init__(self, private: bool, shape: tuple[int, ...]) -> None:
        self._dtype = np.int64 if private else np.float64
        self._shape = shape
        self._parts: dict[Any, Any] = {}
        self._n_parts = 0
        self._carry: Any = None

    def add(self, part: Num[Any, "..."]) -> None:
        """Add the sum of a call: whole, at most ``2**53``, with privacy."""
        where = getattr(part, "device", None)
        with jax.enable_x64(True):
            if where not in self._parts:
                zero: Any = np.zeros(part.shape, self._dtype)
                if not isinstance(part, np.ndarray):
                    zero = jax.device_put(zero, where)
                self._parts[where] = zero
            if isinstance(part, np.ndarray):
                self._parts[where] += part.astype(self._dtype)
            else:
                # The first part too: code that is compiled for a second part alone
                # would tell how many chunks there were.
                self._parts[where] = kernels.added(self._parts[where], part)
        self._n_parts += 1
        if self._n_parts == _PARTS_BEFORE_CARRY:
            self._parts = {None: self._carried(self._gathered())}
            self._n_parts = 1

    def sum(self, grid_step: float, users: UserClip | None = None) -> ExactSum:
        """Return the total of this process, times ``grid_step``; `add` no more then."""
        return ExactSum(self._gathered(), grid_step, self._carry, users)

    def _gathered(self) -> Shaped[np.ndarray, "..."]:
        """Return the sum of the parts, on the host."""
        first, *others = [*map(np.asarray, self._parts.values())] or [
            np.zeros(self._shape, self._dtype)
        ]
        return np.asarray(sum(others, start=first))

    def _carried(self, total: Shaped[np.ndarray, "..."]) -> Shaped[np.ndarray, "..."]:
        """Move what is above ``2**40`` of a whole total to the carry."""
        if self._dtype == np.float64:
            return total
        low, high = _split(total)
        self._carry = high if self._carry is None else self._carry + high
        return low


def _split(
    total: Int64[np.ndarray, "..."],
) -> tuple[Int64[np.ndarray, "..."], Int64[np.ndarray, "..."]]:
    """Return ``total = low + 2**40 high`` in two words, ``low`` in ``[0, 2**40)``."""
    return total & (2**_CARRY_BITS - 1), total >> _CARRY_BITS
