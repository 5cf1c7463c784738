"""One fit by several processes: who reads which rows, and sums over all of them.

Statistics are sums, so several hosts need one thing beyond their own rows: the sum of
their exact totals, formed before the noise. The first process alone draws the noise,
and hands the noisy value to the others.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Num

from privfeat._checks import check_choice
from privfeat.exceptions import PrivacyError

RowSource = Literal["shared", "own"]


@dataclass(frozen=True)
class Team:
    """The processes that fit one model together.

    Attributes
    ----------
    index, size : int
        Number of this process, and of all.
    rows : {"shared", "own"}
        Whether all processes were given the same rows, of which each reads its part,
        or each its own.
    """

    index: int = 0
    size: int = 1
    rows: RowSource = "shared"

    def part(self, n_chunks: int) -> range:
        """Return the chunks that this process reads: each is read by one process."""
        if self.rows == "own":
            return range(n_chunks)
        return range(
            n_chunks * self.index // self.size, n_chunks * (self.index + 1) // self.size
        )

    def total(self, values: Num[np.ndarray, "..."]) -> Num[np.ndarray, "..."]:
        """Return the sum of ``values`` over all processes, to each of them."""
        if self.size == 1:
            return values
        first = {device.process_index: device for device in reversed(jax.devices())}
        mesh = Mesh([first[index] for index in range(self.size)], ("processes",))
        spread = NamedSharding(mesh, PartitionSpec("processes"))  # type: ignore[no-untyped-call]
        whole = NamedSharding(mesh, PartitionSpec())  # type: ignore[no-untyped-call]
        with jax.enable_x64(True):
            parts = jax.make_array_from_process_local_data(  # type: ignore[no-untyped-call]
                spread, values[None]
            )
            sum_parts = jax.jit(lambda parts: parts.sum(0), out_shardings=whole)
            return np.array(sum_parts(parts))

    def from_first(self, values: Num[np.ndarray, "..."]) -> Num[np.ndarray, "..."]:
        """Return the values of the first process, bit for bit."""
        bits = values.view(np.int64) if values.dtype == np.float64 else values
        bits = self.total(bits if self.index == 0 else np.zeros_like(bits))
        return bits.view(values.dtype)

    def each(self, value: int) -> list[int]:
        """Return the integers, below 2**63, of all processes in their order."""
        values = np.zeros(self.size, np.int64)
        values[self.index] = value
        return [int(value) for value in self.total(values)]

    def check_same(self, what: str, content: bytes) -> None:
        """Raise `PrivacyError` in all processes unless they hold the same content."""
        if len(set(self.each(_digest(content)))) > 1:
            raise PrivacyError(f"all processes must have the same {what}.")

    def check_distinct(self, what: str, content: bytes) -> None:
        """Raise `PrivacyError` in all processes if two hold the same content."""
        if len(set(self.each(_digest(content)))) < self.size:
            raise PrivacyError(
                f"each process must have {what} of its own, got the same twice: every "
                "record would count twice."
            )


_ALONE = Team()
_team: ContextVar[Team] = ContextVar("team", default=_ALONE)


def current_team() -> Team:
    """Return the processes that fits of this context run on; by default this one."""
    return _team.get()


def check_alone(what: str) -> None:
    """Raise `PrivacyError` in several processes, for what draws or reads in each."""
    if current_team().size > 1:
        raise PrivacyError(
            f"{what} must run in one process, got {current_team().size}. Call it "
            "outside all_processes()."
        )


@contextmanager
def all_processes(rows: RowSource = "shared") -> Iterator[None]:
    """Let all processes of ``jax.distributed`` work together on every fit inside.

    Parameters
    ----------
    rows : {"shared", "own"}
        ``"shared"``: every process passes the same ``X`` and ``y`` (an array, or the
        same feature file), and reads its part of it. ``"own"``: every process passes
        rows that no other has, its own shard; ``classes=`` must then be given, and
        ``groups`` are refused, since a user may have records in several shards.

    Raises
    ------
    ValueError
        If ``rows`` is neither.

    Notes
    -----
    **Guarantee.** That of a fit in one process, given that no record is passed by two
    processes under ``"own"``. Equal shards are refused; shards that overlap in part
    cannot be told.

    Every process must call the same fits in the same order. All get the same releases,
    and the same as one process would have with the same noise, bit for bit: exact sums
    do not depend on who adds them. A process that fails makes the others fail.

    Examples
    --------
    >>> from privfeat import DPLeastSquares
    >>> from privfeat.distributed import all_processes
    >>> with all_processes():  # one process, if ``initialize`` was not called
    ...     clf = DPLeastSquares(epsilon=1, classes=[0, 1]).fit([[1], [2]], [0, 1])
    """
    check_choice("rows", rows, ("shared", "own"))
    token = _team.set(Team(jax.process_index(), jax.process_count(), rows))
    try:
        yield
    finally:
        _team.reset(token)


def _digest(content: bytes) -> int:
    return int.from_bytes(hashlib.sha256(content).digest()[:7], "big")
