"""What a step samples, bounds and protects as one: a record, or a user."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from numpy.typing import NDArray

from privfeat._types import Unit
from privfeat.networks.augment import Views
from privfeat.networks.engine import Terms


@dataclass(frozen=True)
class Units:
    """All records of a fit, by the units that neighbouring data sets differ in.

    Attributes
    ----------
    kind : {"record", "user"}
    records, targets : array, or what is indexed like one
        The numbers of some units give what they hold, one slice each. Sensitive.
    prepare : callable
        From such a part of ``records``, the units' numbers and the key of the step to
        the inputs that ``engine`` takes.
    engine : {"fast", "reference"}, or callable
        For `engine.clipped_sum`.
    alone : callable
        From inputs and targets of records to those of units of one record each.
    public : tuple of str
        What is assumed public of the units.
    """

    kind: Unit
    records: Any
    targets: Any
    prepare: Callable[..., Any]
    engine: Literal["fast", "reference"] | Terms
    alone: Callable[[Any, Any], tuple[Any, Any]]
    public: tuple[str, ...]

    def __len__(self) -> int:
        """Return the number of units: public, since samples are drawn by it."""
        return len(self.targets)


def single_records(
    records: NDArray[Any],
    targets: NDArray[Any],
    views: Views,
    engine: Literal["fast", "reference"],
) -> Units:
    """Return every record as a unit of its own."""
    return Units(
        "record",
        records,
        targets,
        views,
        engine,
        lambda inputs, targets: (inputs, targets),
        ("the number of records, which the sampling probability is made of",),
    )
