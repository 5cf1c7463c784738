"""What is said of a fit: the privacy statement, a value object."""

import math
import re
from dataclasses import asdict, dataclass, field, fields
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal

from privfeat._checks import check_bool, check_choice, check_real
from privfeat._types import (
    ACCOUNTINGS,
    ADJACENCIES,
    ARITHMETICS,
    UNITS,
    Accounting,
    Adjacency,
    Arithmetic,
    Unit,
)
from privfeat._version import __version__
from privfeat.core.accounting.plan import ReleasePlan, ReleaseRecord
from privfeat.core.statement import serialization
from privfeat.core.statement.selection import Selection
from privfeat.core.statement.words import words
from privfeat.exceptions import PrivacyError

if TYPE_CHECKING:
    from dp_accounting import DpEvent


@dataclass(frozen=True)
class PrivacyStatement:
    """The guarantee of one fit, and everything it rests on.

    Printing it gives plain words; ``to_json`` a record that ``from_json`` reads back;
    ``event`` what dp-accounting's accountants compose with other uses of the data.

    Attributes
    ----------
    epsilon, delta : float
        ``epsilon`` is ``inf`` for a fit without privacy.
    rho, mu : float or None
        zCDP and Gaussian-DP parameters; None when records were sampled, or runs
        selected.
    adjacency : {"add_remove", "replace_one"}
    accounting : {"exact", "zcdp", "pld", "rdp", "selection"}
    releases : tuple of ReleaseRecord
        With a selection, those of the selected run alone.
    public : tuple of str
        What the guarantee assumes to be known to everyone.
    seeded : bool
        Whether the noise can be reproduced from a seed: then nothing is protected from
        those who know or guess the seed.
    version : str
        Version of privfeat.
    selection : Selection or None
        How the fit was selected among several, which the guarantee covers.
    unit : {"record", "user"}
        What neighbours differ in: one record, or all records of one user.
    arithmetic : {"float64", "exact"}
        Continuous noise in float64, or discrete noise on whole numbers, whose stddev is
        at least the stated one (``privfeat.core.noise.exact``).
    charge : str or None
        Random name of the charge in its ledger, by which the two are known to belong
        together; None without a ledger. Statements that differ in it alone are equal.

    Raises
    ------
    TypeError, ValueError
        If a field is out of its range; if some releases have noise and epsilon is
        infinite, or the reverse; if ``selection`` does not go with ``accounting``. No
        cost is computed again.
    """

    epsilon: float
    delta: float
    rho: float | None
    mu: float | None
    adjacency: Adjacency
    accounting: Accounting | Literal["selection"]
    releases: tuple[ReleaseRecord, ...]
    public: tuple[str, ...]
    seeded: bool
    version: str = __version__
    selection: Selection | None = None
    unit: Unit = "record"
    arithmetic: Arithmetic = "float64"
    charge: str | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        check_real("epsilon", self.epsilon, low=0.0)
        check_real("delta", self.delta, low=0.0, high=1.0, include_low=False)
        for name in ("rho", "mu"):
            if getattr(self, name) is not None:
                check_real(name, getattr(self, name), low=0.0)
        check_choice("accounting", self.accounting, (*ACCOUNTINGS, "selection"))
        check_choice("adjacency", self.adjacency, ADJACENCIES)
        check_choice("arithmetic", self.arithmetic, ARITHMETICS)
        check_choice("unit", self.unit, UNITS)
        check_bool("seeded", self.seeded)
        if self.charge is not None and not re.fullmatch("[0-9a-f]{32}", self.charge):
            raise ValueError(f"charge must be 32 hex digits, got {self.charge!r}.")
        _check_tuple("version", (self.version,), str)
        _check_tuple("public", self.public, str)
        _check_tuple("releases", self.releases, ReleaseRecord)
        kind = Selection if self.accounting == "selection" else NoneType
        if not isinstance(self.selection, kind):
            raise TypeError(
                "selection must be a Selection with accounting='selection', and None "
                f"otherwise, got {self.selection!r}."
            )
        if not self.releases and self.selection is None:
            raise ValueError("releases must hold at least one, got none.")
        noisy = {record.noise_multiplier > 0.0 for record in self.releases}
        if not noisy <= {math.isfinite(self.epsilon)}:
            raise ValueError(
                "releases must have noise where epsilon is finite, and none otherwise, "
                f"got epsilon={self.epsilon!r}."
            )

    @classmethod
    def from_plan(
        cls,
        plan: ReleasePlan,
        *,
        public: tuple[str, ...],
        seeded: bool,
        unit: Unit = "record",
        arithmetic: Arithmetic = "float64",
    ) -> "PrivacyStatement":
        """Return the statement of a fit that draws exactly ``plan``."""
        return cls(
            epsilon=plan.epsilon,
            delta=plan.delta,
            rho=plan.rho,
            mu=plan.mu,
            adjacency=plan.adjacency,
            accounting=plan.accounting,
            releases=plan.records,
            public=public,
            seeded=seeded,
            unit=unit,
            arithmetic=arithmetic,
        )

    @property
    def private(self) -> bool:
        """Whether the fit has a finite epsilon and its noise cannot be reproduced."""
        return math.isfinite(self.epsilon) and not self.seeded

    def event(self) -> "DpEvent":
        """Return the fit as a dp-accounting event, for accountants of its users.

        Raises
        ------
        UnsupportedEventError
            For a selection with ``eta < 0``, which dp-accounting has no event for.
        """
        if self.selection is not None:
            return self.selection.event()
        from dp_accounting import ComposedDpEvent

        return ComposedDpEvent([each.planned().event() for each in self.releases])

    def to_json(self) -> str:
        """Return the statement as JSON, as ``statement.schema.json`` describes it."""
        left_out = [n for n in ("selection", "charge") if getattr(self, n) is None]
        kept = {n: value for n, value in asdict(self).items() if n not in left_out}
        return serialization.dumps(kept)

    @classmethod
    def from_json(cls, text: str) -> "PrivacyStatement":
        """Return the statement that ``to_json`` wrote.

        Raises
        ------
        PrivacyError
            If the text is not a statement, or of a version this release cannot read.
        """
        try:
            fields = serialization.loads(text)
            fields["releases"] = tuple(
                serialization.release_of(record) for record in fields["releases"]
            )
            fields["public"] = tuple(fields["public"])
            if "selection" in fields:
                fields["selection"] = Selection(**fields["selection"])
            return cls(**fields)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise PrivacyError("text must be a privacy statement in JSON.") from error

    def __str__(self) -> str:
        """Return the statement in words and numbers, for people."""
        return words(**{one.name: getattr(self, one.name) for one in fields(self)})


def _check_tuple(name: str, values: Any, kind: type) -> None:
    if not (isinstance(values, tuple) and all(isinstance(v, kind) for v in values)):
        raise TypeError(f"{name} must be made of {kind.__name__}, got {values!r}.")
