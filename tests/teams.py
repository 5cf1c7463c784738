"""Threads that stand for the processes of a team."""

from dataclasses import dataclass, field
from threading import Barrier

from privfeat.core.sums.processes import Team


@dataclass(frozen=True)
class Board:
    """Where threads lay down what processes send each other."""

    barrier: Barrier = field(default_factory=lambda: Barrier(2, timeout=900))
    values: dict = field(default_factory=dict)


@dataclass(frozen=True)
class Thread(Team):
    board: Board = None

    def _added(self, values):
        self.board.values[self.index] = values
        self.board.barrier.wait()
        total = sum(self.board.values.values())
        self.board.barrier.wait()
        return total
