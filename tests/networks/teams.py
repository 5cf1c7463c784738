"""Several processes played by threads, which meet where processes would."""

import contextvars
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count
from threading import Condition

import numpy as np

from privfeat.core.sums.processes import Team, TeamLostError

ALONE = Team()


class Meeting:
    """Where so many threads add up arrays, again and again."""

    def __init__(self, size):
        self._changed, self._size, self._ended = Condition(), size, False
        self._rounds = defaultdict(dict)

    def added(self, index, position, values):
        """Return the sum of what all threads bring to their call of this number."""
        with self._changed:
            brought = self._rounds[position]
            brought[index] = values.copy()
            self._changed.notify_all()
            self._changed.wait_for(
                lambda: len(brought) == self._size or self._ended, timeout=900
            )
        if len(brought) < self._size:
            raise TeamLostError("another thread ended")
        return np.array(sum(brought[i] for i in range(self._size)))

    def leave(self):
        with self._changed:
            self._ended = True
            self._changed.notify_all()


@dataclass(frozen=True)
class ThreadTeam(Team):
    """One of several threads, as if it were one of several processes."""

    meeting: Meeting = field(default=None, compare=False)
    calls: object = field(default_factory=count, compare=False)

    def _added(self, values):
        return self.meeting.added(self.index, next(self.calls), values)


class Teams:
    """Runs a function in several threads, each of which is told its place."""

    def __init__(self, plant):
        self._team = contextvars.ContextVar("team", default=ALONE)
        plant("team of this context", self._team)

    def __call__(self, fit, *, size=2, rows="shared"):
        """Return what ``fit(index)`` returned, or raised, in each thread."""
        meeting = Meeting(size)

        def run(index):
            self._team.set(ThreadTeam(index, size, rows, meeting=meeting))
            try:
                return fit(index)
            except Exception as error:  # noqa: BLE001 - what is tested
                meeting.leave()
                return error
            finally:
                self._team.set(ALONE)

        with ThreadPoolExecutor(size) as threads:
            others = [threads.submit(run, index) for index in range(1, size)]
            first = run(0)  # a ledger is charged in the main thread alone
            return [first, *(other.result() for other in others)]
