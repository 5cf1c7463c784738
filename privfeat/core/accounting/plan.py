"""What a fit will release, with how much noise, at what cost: immutable records.

A fit declares its statistics as `Query` objects. ``calibration.plan_releases`` turns
them and a budget into a `ReleasePlan` before any data is read. Only its releases can be
drawn (``gaussian_mechanism``); the statement of the fit has a `ReleaseRecord` of each.
"""

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from privfeat._checks import check_int, check_positive, check_real
from privfeat._types import Accounting, Adjacency
from privfeat.core.bounds import sensitivity
from privfeat.core.bounds.strategy import Banded
from privfeat.exceptions import PrivacyError, UnsupportedEventError

if TYPE_CHECKING:
    from dp_accounting import DpEvent


@dataclass(frozen=True)
class Query:
    """One statistic that a fit releases, adaptively, ``count`` times.

    Attributes
    ----------
    l2_sensitivity : float
        In units of the statistic, for the plan's adjacency; of all blocks together.
    n_blocks : int
        Blocks (one per class, say) that together make one release.
    sampling_prob : float
        Poisson sampling probability of a record in each release, in [1e-9, 1]; 1 for
        all records. Rounded down to a multiple of ``2**-52`` where it is drawn. Less
        costs no more, composed or not: deltas of the pair are convex in it, least at 0.
    weight : float
        Part of rho that one release gets, relative to the others; > 0.
    clipped : bool
        Whether the bound is of sums clipped by user (`ExactSum.users`).
    strategy : Banded, optional
        How noise is correlated; ``sampling_prob`` is then that of a record in its turn.
    participations : int
        In how many releases a record can be.
    """

    name: str
    l2_sensitivity: float
    count: int = 1
    n_blocks: int = 1
    sampling_prob: float = 1.0
    weight: float = 1.0
    clipped: bool = False
    strategy: Banded | None = None
    participations: int = field(init=False)

    def __post_init__(self) -> None:
        """Check all ranges: a sensitivity of 0 or NaN would mean no noise."""
        check_positive("l2_sensitivity", self.l2_sensitivity)
        check_int("count", self.count, low=1)
        how = self.strategy
        check_int("n_blocks", self.n_blocks, low=1, high=1 if how else 2**31 - 1)
        check_real("sampling_prob", self.sampling_prob, low=1e-9, high=1.0)
        check_positive("weight", self.weight)
        often = self.count if how is None else how.participations(self.count)
        object.__setattr__(self, "participations", often)

    def per_user(self, most: int, *, clipped: bool = False) -> "Query":
        """Return the query for neighbours that differ in all records of one user."""
        if self.sampling_prob < 1.0 or self.strategy is not None:
            raise UnsupportedEventError(
                "sampling_prob must be 1 with groups, because records of a user are "
                f"not sampled together, got {self.sampling_prob!r}. Pass 1."
            )
        bound = sensitivity.per_user(self.l2_sensitivity, 1 if clipped else most)
        return replace(self, l2_sensitivity=bound, clipped=clipped)


@dataclass(frozen=True)
class PlannedRelease:
    """A `Query` with its noise: ``noise_stddev / l2_sensitivity`` is the multiplier."""

    query: Query
    noise_multiplier: float

    @property
    def noise_stddev(self) -> float:
        """Standard deviation of the noise, in units of the statistic."""
        return self.noise_multiplier * self.query.l2_sensitivity

    def record(self) -> "ReleaseRecord":
        """Return what a privacy statement says of the release."""
        query, noise = self.query, (self.noise_multiplier, self.noise_stddev)
        drawn = *noise, query.sampling_prob, query.strategy
        return ReleaseRecord(query.name, query.count, query.l2_sensitivity, *drawn)

    def event(self) -> "DpEvent":
        """Return the dp-accounting event of all ``count`` releases."""
        import dp_accounting as dp

        if self.noise_multiplier == 0.0:
            return dp.NonPrivateDpEvent()
        event: DpEvent = dp.GaussianDpEvent(float(self.noise_multiplier))
        if self.query.sampling_prob < 1.0:
            event = dp.PoissonSampledDpEvent(self.query.sampling_prob, event)
        return dp.SelfComposedDpEvent(event, self.query.participations)


@dataclass(frozen=True)
class ReleaseRecord:
    """What a privacy statement says of a release.

    Attributes
    ----------
    name, count, l2_sensitivity, sampling_prob, strategy
        As of the `Query`.
    noise_multiplier : float
        Finite and >= 0; 0 without privacy.
    noise_stddev : float
        ``noise_multiplier * l2_sensitivity``, in units of the statistic.
    """

    name: str
    count: int
    l2_sensitivity: float
    noise_multiplier: float
    noise_stddev: float
    sampling_prob: float
    strategy: Banded | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise TypeError(f"name must be a string, got {self.name!r}.")
        for name in ("noise_multiplier", "noise_stddev"):
            check_real(name, getattr(self, name), low=0.0, include_high=False)
        self.planned()  # checks the other fields

    def planned(self) -> PlannedRelease:
        """Return the release as it was planned, but for blocks and weight."""
        drawn = 1, self.sampling_prob, 1.0, False, self.strategy
        query = Query(self.name, self.l2_sensitivity, self.count, *drawn)
        return PlannedRelease(query, self.noise_multiplier)


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
    private : bool
        Whether noise is added and records are bounded.
    records : tuple of ReleaseRecord
        What the statement of the fit holds.

    Raises
    ------
    PrivacyError
        If noise and a finite epsilon do not go together, or two queries share a name.
    """

    releases: tuple[PlannedRelease, ...]
    adjacency: Adjacency
    accounting: Accounting
    epsilon: float
    delta: float
    rho: float | None
    mu: float | None
    private: bool = field(init=False, repr=False, compare=False)
    records: tuple[ReleaseRecord, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        noisy = {release.noise_multiplier > 0.0 for release in self.releases}
        if noisy != {math.isfinite(self.epsilon)}:
            raise PrivacyError(
                "a plan must have noise in every release and a finite epsilon, or "
                f"neither, got epsilon={self.epsilon!r}."
            )
        names = [release.query.name for release in self.releases]
        if len(set(names)) < len(names):
            raise PrivacyError(f"the names of queries must be different, got {names}.")
        object.__setattr__(self, "private", noisy == {True})
        records = tuple(release.record() for release in self.releases)
        object.__setattr__(self, "records", records)

    def event(self) -> "DpEvent":
        """Return the dp-accounting event of the whole fit."""
        from dp_accounting import ComposedDpEvent

        return ComposedDpEvent([release.event() for release in self.releases])

    def __getitem__(self, name: str) -> PlannedRelease:
        """Return the planned release of the query called ``name``."""
        return {release.query.name: release for release in self.releases}[name]
