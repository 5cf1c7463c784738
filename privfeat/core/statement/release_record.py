"""What a privacy statement holds of each statistic that was released."""

from dataclasses import dataclass

from privfeat._checks import check_real
from privfeat.core.accounting.plan import PlannedRelease, Query


@dataclass(frozen=True)
class ReleaseRecord:
    """What was released, how often, and with how much noise.

    The fields are those of `PlannedRelease` and its `Query`, in the same units; another
    type is a TypeError, and a number out of range a ValueError. Without privacy the
    noise is 0.
    """

    name: str
    count: int
    l2_sensitivity: float
    noise_multiplier: float
    noise_stddev: float
    sampling_prob: float

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise TypeError(f"name must be a string, got {self.name!r}.")
        for name in ("noise_multiplier", "noise_stddev"):
            check_real(name, getattr(self, name), low=0.0, include_high=False)
        self.planned()  # checks the other fields

    @classmethod
    def of(cls, release: PlannedRelease) -> "ReleaseRecord":
        """Return the record of a planned release that was drawn."""
        return cls(
            name=release.query.name,
            count=release.query.count,
            l2_sensitivity=release.query.l2_sensitivity,
            noise_multiplier=release.noise_multiplier,
            noise_stddev=release.noise_stddev,
            sampling_prob=release.query.sampling_prob,
        )

    def planned(self) -> PlannedRelease:
        """Return the release as it was planned, but for blocks and weight."""
        query = Query(
            name=self.name,
            l2_sensitivity=self.l2_sensitivity,
            count=self.count,
            sampling_prob=self.sampling_prob,
        )
        return PlannedRelease(query, self.noise_multiplier)
