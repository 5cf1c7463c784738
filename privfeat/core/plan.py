"""What a fit will release, with how much noise, at what cost: immutable records.

A fit declares its statistics as `Query` objects; ``calibration.plan_releases`` turns
them and the user's budget into a `ReleasePlan` before any data is read, and only the
plan's releases can be drawn (see ``mechanisms``).
"""

import math
from dataclasses import dataclass

from dp_accounting import (
    ComposedDpEvent,
    DpEvent,
    GaussianDpEvent,
    NonPrivateDpEvent,
    PoissonSampledDpEvent,
    SelfComposedDpEvent,
)

from privfeat._types import Accounting, Adjacency


@dataclass(frozen=True)
class Query:
    """One statistic that a fit releases, adaptively, ``count`` times.

    Attributes
    ----------
    name : str
    l2_sensitivity : float
        In units of the statistic, for the plan's adjacency. Of the whole stack when
        the statistic is a stack of ``n_blocks`` blocks.
    count : int
        Number of releases of the statistic.
    n_blocks : int
        Blocks (one per class, say) that together make one release.
    sampling_prob : float
        Poisson sampling probability of a record in each release; 1 for all records.
    """

    name: str
    l2_sensitivity: float
    count: int = 1
    n_blocks: int = 1
    sampling_prob: float = 1.0


@dataclass(frozen=True)
class PlannedRelease:
    """A `Query` with its noise: ``noise_stddev / l2_sensitivity`` is the multiplier."""

    query: Query
    noise_multiplier: float

    @property
    def noise_stddev(self) -> float:
        """Standard deviation of the noise, in units of the statistic."""
        return self.noise_multiplier * self.query.l2_sensitivity

    def event(self) -> DpEvent:
        """Return the dp-accounting event of all ``count`` releases."""
        if self.noise_multiplier == 0.0:
            return NonPrivateDpEvent()
        event: DpEvent = GaussianDpEvent(float(self.noise_multiplier))
        if self.query.sampling_prob < 1.0:
            event = PoissonSampledDpEvent(self.query.sampling_prob, event)
        return SelfComposedDpEvent(event, self.query.count)


@dataclass(frozen=True)
class ReleasePlan:
    """Everything that a fit may release, and what it costs.

    Attributes
    ----------
    releases : tuple of PlannedRelease
    adjacency, accounting : str
    epsilon, delta : float
        The guarantee, by ``accounting``; ``epsilon`` is ``inf`` without privacy.
    rho, mu : float or None
        zCDP and Gaussian-DP parameters; None when records are sampled.
    """

    releases: tuple[PlannedRelease, ...]
    adjacency: Adjacency
    accounting: Accounting
    epsilon: float
    delta: float
    rho: float | None
    mu: float | None

    @property
    def private(self) -> bool:
        """Whether noise is added and records are bounded."""
        return math.isfinite(self.epsilon)

    def event(self) -> DpEvent:
        """Return the dp-accounting event of the whole fit."""
        return ComposedDpEvent([release.event() for release in self.releases])

    def __getitem__(self, name: str) -> PlannedRelease:
        """Return the planned release of the query called ``name``."""
        return {release.query.name: release for release in self.releases}[name]
