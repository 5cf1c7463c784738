"""Records of what a fit released, with the exact sums: sensitive, for audits."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from privfeat.core.noise.observation import observe, stated_name
from privfeat.core.noise.release import Release
from privfeat.core.sums.totals import ExactSum
from privfeat.exceptions import PrivacyError


@dataclass(frozen=True)
class Recorded:
    """One release with the exact sum it was drawn from. Sensitive.

    ``name`` is that of the statement: ``STEP.NAME`` in a pipeline.
    """

    name: str
    exact: NDArray[np.float64]
    release: Release

    @property
    def noise(self) -> NDArray[np.float64]:
        """What was added to the exact sum."""
        return self.release.value - self.exact


@dataclass
class Recorder:
    """Records what is released; fits get ``answers`` instead if they are given."""

    calls: list[Recorded] = field(default_factory=list)
    answers: Sequence[Recorded] | None = None

    def start(self, answers: Sequence[Recorded] | None = None) -> None:
        """Forget what was recorded, and give these answers from now on."""
        self.calls, self.answers = [], answers

    def of(self, name: str) -> list[Recorded]:
        """Return what was recorded of one query."""
        return [call for call in self.calls if call.name == name]

    def __call__(self, exact: ExactSum, release: Release) -> Release:
        """Record a release; return what the fit gets."""
        if self.answers is not None:
            if len(self.calls) >= len(self.answers):
                raise PrivacyError("neighbouring data must give as many releases.")
            release = self.answers[len(self.calls)].release
        name = stated_name(release.name)
        self.calls.append(Recorded(name, exact.value.copy(), release))
        return release


@contextmanager
def recording() -> Iterator[Recorder]:
    """Record all releases of the fits inside, with their exact sums.

    Examples
    --------
    >>> from privfeat import DPLeastSquares
    >>> with recording() as recorder:
    ...     clf = DPLeastSquares(epsilon=1, classes=[0, 1]).fit([[1], [2]], [0, 1])
    >>> [call.name for call in recorder.calls]
    ['feature_mean', 'gram', 'class_sums']
    """
    recorder = Recorder()
    with observe(recorder):
        yield recorder
