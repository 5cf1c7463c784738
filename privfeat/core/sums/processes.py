"""One fit by several processes: which rows each reads, and sums over all of them.

Each process sums its own rows. The exact totals are added up over the processes before
the noise. The first process draws the noise and passes the noisy value to the others.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import count
from typing import Literal

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Num

from privfeat._checks import check_choice
from privfeat.core.sums.leaving import leave_at_once
from privfeat.exceptions import PrivacyError

RowSource = Literal["shared", "own"]


@dataclass(frozen=True)
class Team:
    """The processes that fit one model together.

    All were given the same rows, of which each reads its part, or each has its own.
    """

    index: int = 0  # of this process
    size: int = 1
    rows: RowSource = "shared"
    _positions: Iterator[int] = field(default_factory=count, repr=False, compare=False)

    def part(self, n_chunks: int) -> range:
        """Return the chunks that this process reads: each is read by one process."""
        if self.rows == "own":
            return range(n_chunks)
        first, end = (n_chunks * i // self.size for i in (self.index, self.index + 1))
        return range(first, end)

    def total(
        self, values: Num[np.ndarray, "..."], what: str = "sum", grid_step: float = 1.0
    ) -> Num[np.ndarray, "..."]:
        """Return the sum of ``values`` over all processes, to each of them.

        All get a PrivacyError unless all pass the same name, grid step, shape and type.
        If one process ended, the others get it.
        """
        if self.size == 1:
            return values
        described = f"{what} {float(grid_step).hex()} {values.shape} {values.dtype}"
        self.check_same(what, described.encode())
        return self._added(values)

    def from_first(
        self,
        values: Num[np.ndarray, "..."],
        what: str = "value",
        grid_step: float = 1.0,
    ) -> Num[np.ndarray, "..."]:
        """Return the values of the first process, bit for bit."""
        bits = values.view(np.int64) if values.dtype == np.float64 else values
        bits = bits if self.index == 0 else np.zeros_like(bits)
        return self.total(bits, what, grid_step).view(values.dtype)

    def each(self, value: int) -> list[int]:
        """Return the integers, below 2**63, of all processes in their order."""
        if self.size == 1:
            return [int(value)]
        values = np.zeros(self.size, np.int64)
        values[self.index] = value
        return [int(value) for value in self._added(values)]

    def check_same(self, what: str, content: bytes) -> None:
        """Raise `PrivacyError` in all processes unless they hold the same content.

        Calls are numbered, so a process a step ahead differs. Mistakes alone are seen.
        """
        position = b"%d " % next(self._positions)
        if len(set(self.each(_digest(position + content)))) > 1:
            raise PrivacyError(
                f"all processes must have the same {what}. Call the same fits with the "
                "same parameters, in one order, in each."
            )

    def check_distinct(self, what: str, content: bytes) -> None:
        """Raise `PrivacyError` in all processes if two hold the same content."""
        if len(set(self.each(_digest(content)))) < self.size:
            raise PrivacyError(
                f"each process must have {what} of its own, got the same twice: every "
                "record would count twice."
            )

    def _added(self, values: Num[np.ndarray, "..."]) -> Num[np.ndarray, "..."]:
        first = {device.process_index: device for device in reversed(jax.devices())}
        mesh = Mesh([first[index] for index in range(self.size)], ("processes",))
        spread = NamedSharding(mesh, PartitionSpec("processes"))  # type: ignore[no-untyped-call]
        whole = NamedSharding(mesh, PartitionSpec())  # type: ignore[no-untyped-call]
        try:
            with jax.enable_x64(True):
                parts = jax.make_array_from_process_local_data(  # type: ignore[no-untyped-call]
                    spread, values[None]
                )
                sum_parts = jax.jit(lambda parts: parts.sum(0), out_shardings=whole)
                return np.array(sum_parts(parts))
        except jax.errors.JaxRuntimeError:
            leave_at_once()
            other = 1 - self.index if self.size == 2 else f"another than {self.index}"
            raise TeamLostError(
                f"all {self.size} processes must run to the end, and process {other} "
                "ended or cannot be reached. If this fit was charged already, it "
                "stays charged. See the other's output."
            ) from None


class TeamLostError(PrivacyError):
    """A process that fits together with this one ended before the fit did."""


_ALONE = Team()
_team: ContextVar[Team] = ContextVar("team", default=_ALONE)
_entered: list[Team] = []  # of several processes, by any thread of this one


def current_team() -> Team:
    """Return the processes that fits of this context run on; by default this one.

    PrivacyError in another thread than the one inside `all_processes`: every process
    would fit there alone, and be charged.
    """
    team = _team.get()
    if team.size == 1 and _entered:
        raise PrivacyError(
            "a fit must run in the thread that entered all_processes(), got another. "
            "Call it there, without threads and with n_jobs=None."
        )
    return team


def check_alone(what: str) -> None:
    """Raise `PrivacyError` where several processes fit together."""
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
        rows that no other has, its own shard. Then ``classes=`` must be given, and
        ``groups`` are refused, since a user may have records in several shards.

    Notes
    -----
    **Guarantee.** That of a fit in one process, if under ``"own"`` no record is passed
    by two processes. Equal shards are refused; shards that overlap in part are not
    noticed.

    Every process must call the same fits in the same order, in the thread that entered.
    (The processes of a joblib pool are not among them: each fits by itself, and is
    charged.) All get the same releases, bit for bit those of one process with the same
    noise: exact sums do not depend on how they are added, and hosts that share rows
    must be of one kind. Before each sum and release the processes compare its name,
    grid step, shape and position. If one ends, the others end with a `PrivacyError`.

    Examples
    --------
    >>> from privfeat import DPLeastSquares
    >>> from privfeat.distributed import all_processes
    >>> with all_processes():  # one process, if ``initialize`` was not called
    ...     clf = DPLeastSquares(epsilon=1, classes=[0, 1]).fit([[1], [2]], [0, 1])
    """
    check_choice("rows", rows, ("shared", "own"))
    team = Team(jax.process_index(), jax.process_count(), rows)
    token = _team.set(team)
    _entered.extend([team] if team.size > 1 else [])
    try:
        yield
    finally:
        _team.reset(token)
        if team.size > 1:
            _entered.remove(team)


def _digest(content: bytes) -> int:
    return int.from_bytes(hashlib.sha256(content).digest()[:7], "big")
