"""What is said of a fit: the privacy statement, a value object."""

import json
import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

from dp_accounting import DpEvent

from privfeat._checks import check_bool, check_choice, check_int, check_real
from privfeat._types import (
    ADJACENCIES,
    ARITHMETICS,
    Accounting,
    Adjacency,
    Arithmetic,
    Unit,
)
from privfeat._version import __version__
from privfeat.core.plan import PlannedRelease, Query, ReleasePlan, composed_event
from privfeat.core.repetition import SCORED_ON, Selection
from privfeat.core.rounding import rounded_up
from privfeat.exceptions import PrivacyError

STATEMENT_VERSION = 1

_METHODS = {
    "exact": "exact curve of the composed Gaussian mechanism (Balle & Wang 2018)",
    "zcdp": "zCDP, epsilon = rho + 2 sqrt(rho ln(1/delta)) (Bun & Steinke 2016)",
    "pld": "privacy loss distribution (dp-accounting)",
    "selection": "privacy profile of the best of a random number of Gaussian runs",
}
_NOISE: dict[Arithmetic, str] = {
    "float64": "Gaussian noise",
    "exact": "discrete Gaussian noise on whole sums, arithmetic='exact'",
}
_NEIGHBOURS: dict[tuple[Unit, Adjacency], str] = {
    ("record", "add_remove"): "one record is present in one data set and absent from "
    "the other",
    ("record", "replace_one"): "one record is replaced by another; their number is "
    "public",
    ("user", "add_remove"): "all records of one user are present in one data set and "
    "absent from the other",
    ("user", "replace_one"): "all records of one user are replaced by others; the "
    "number of users is public",
}


@dataclass(frozen=True)
class ReleaseRecord:
    """What was released, how often, and with how much noise.

    Attributes
    ----------
    name : str
    count : int
    l2_sensitivity, noise_stddev : float
        In units of the statistic; their ratio is ``noise_multiplier``.
    noise_multiplier : float
    sampling_prob : float
        Poisson sampling probability; 1 when every record takes part.
    """

    name: str
    count: int
    l2_sensitivity: float
    noise_multiplier: float
    noise_stddev: float
    sampling_prob: float


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
    accounting : {"exact", "zcdp", "pld", "selection"}
    releases : tuple of ReleaseRecord
        With a selection, those of the selected run alone.
    public : tuple of str
        What the guarantee assumes to be known to everyone.
    seeded : bool
        Whether the noise can be reproduced from a seed: then nothing is protected
        from whoever knows or guesses the seed.
    version : str
        Version of privfeat.
    selection : Selection or None
        How the fit was selected among several, which the guarantee covers.
    unit : {"record", "user"}
        What neighbours differ in: one record, or all records of one user.
    arithmetic : {"float64", "exact"}
        Continuous noise in float64, or discrete noise on whole numbers, whose stddev is
        at least the stated one (``privfeat.core.exact``).
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
        records = tuple(
            ReleaseRecord(
                name=release.query.name,
                count=release.query.count,
                l2_sensitivity=release.query.l2_sensitivity,
                noise_multiplier=release.noise_multiplier,
                noise_stddev=release.noise_stddev,
                sampling_prob=release.query.sampling_prob,
            )
            for release in plan.releases
        )
        return cls(
            epsilon=plan.epsilon,
            delta=plan.delta,
            rho=plan.rho,
            mu=plan.mu,
            adjacency=plan.adjacency,
            accounting=plan.accounting,
            releases=records,
            public=public,
            seeded=seeded,
            unit=unit,
            arithmetic=arithmetic,
        )

    @property
    def private(self) -> bool:
        """Whether the fit has a finite epsilon and its noise cannot be reproduced."""
        return math.isfinite(self.epsilon) and not self.seeded

    def event(self) -> DpEvent:
        """Return the fit as a dp-accounting event, for accountants of its users.

        Raises
        ------
        UnsupportedEventError
            For a selection with ``eta < 0``, which dp-accounting has no event for.
        """
        if self.selection is not None:
            return self.selection.event()
        return composed_event(
            [
                PlannedRelease(
                    Query(
                        name=record.name,
                        l2_sensitivity=record.l2_sensitivity,
                        count=record.count,
                        sampling_prob=record.sampling_prob,
                    ),
                    record.noise_multiplier,
                )
                for record in self.releases
            ]
        )

    def to_json(self) -> str:
        """Return the statement as JSON; infinite numbers become the string "inf".

        ``statement.schema.json`` beside this module is its schema.
        """
        fields = asdict(self) | {"statement_version": STATEMENT_VERSION}
        if self.selection is None:
            del fields["selection"]
        return json.dumps(_encode(fields), indent=2, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> "PrivacyStatement":
        """Return the statement that ``to_json`` wrote.

        Raises
        ------
        PrivacyError
            If the text is not a statement, or of a version this release cannot read.
        """
        try:
            fields = _decode(json.loads(text, parse_constant=_refuse_constant))
            version = fields.pop("statement_version")
            if version != STATEMENT_VERSION:
                raise PrivacyError(
                    f"statement_version must be {STATEMENT_VERSION}, got {version!r}. "
                    "Update privfeat to read it."
                )
            fields["releases"] = tuple(
                ReleaseRecord(**record) for record in fields["releases"]
            )
            fields["public"] = tuple(fields["public"])
            if "selection" in fields:
                fields["selection"] = Selection(**fields["selection"])
            return _checked(cls(**fields))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise PrivacyError("text must be a privacy statement in JSON.") from error

    def __str__(self) -> str:
        """Return the statement in words and numbers, for people."""
        if math.isinf(self.epsilon):
            return "No privacy: epsilon is infinite, no noise was added."
        lines = [
            f"Differential privacy: epsilon = {rounded_up(self.epsilon)}, "
            f"delta = {rounded_up(self.delta, 3)}"
        ]
        if self.mu is not None and self.rho is not None:
            lines.append(
                f"  also: mu = {rounded_up(self.mu)} (GDP), "
                f"rho = {rounded_up(self.rho)} (zCDP)"
            )
        lines += [
            f"  unit: {self.unit}",
            f"  neighbours: {self.adjacency} "
            f"({_NEIGHBOURS[self.unit, self.adjacency]})",
            f"  accounting: {self.accounting}, {_METHODS[self.accounting]}",
        ]
        if self.selection is not None:
            lines += self.selection.lines()
        lines += [
            f"  releases ({_NOISE[self.arithmetic]}; stddev = noise multiplier x L2 "
            "sensitivity):",
        ]
        lines += [
            f"    {record.count} x {record.name}: noise multiplier "
            f"{record.noise_multiplier:.6g}, L2 sensitivity {record.l2_sensitivity:.6g}"
            + (
                f", sampling {record.sampling_prob:g}"
                if record.sampling_prob < 1
                else ""
            )
            for record in self.releases
        ]
        lines += ["  assumed public:", *(f"    - {fact}" for fact in self.public)]
        if self.seeded:
            lines.append(
                "  SEEDED: not private against anyone who knows or guesses the seed."
            )
        lines.append(f"  privfeat {self.version}")
        return "\n".join(lines)


def _checked(statement: PrivacyStatement) -> PrivacyStatement:
    """Return a statement that was read if it can have been written."""
    check_real("epsilon", statement.epsilon, low=0.0)
    check_real("delta", statement.delta, low=0.0, high=1.0, include_low=False)
    for name in ("rho", "mu"):
        if getattr(statement, name) is not None:
            check_real(name, getattr(statement, name), low=0.0)
    check_choice("accounting", statement.accounting, _METHODS)
    check_choice("adjacency", statement.adjacency, ADJACENCIES)
    check_choice("arithmetic", statement.arithmetic, ARITHMETICS)
    check_choice("unit", statement.unit, ("record", "user"))
    check_bool("seeded", statement.seeded)
    for record in statement.releases:
        check_int("count", record.count, low=1)
        for name in ("l2_sensitivity", "noise_multiplier", "noise_stddev"):
            check_real(name, getattr(record, name), low=0.0)
        check_real("sampling_prob", record.sampling_prob, low=0.0, high=1.0)
    for text in (statement.version, *statement.public):
        if not isinstance(text, str):
            raise TypeError("facts of a statement must be text.")
    if statement.selection is not None:
        check_real("run_mu", statement.selection.run_mu, low=0.0)
        check_choice("scored_on", statement.selection.scored_on, SCORED_ON)
        check_real("mean", statement.selection.runs.mean, low=1.0)
    return statement


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"JSON must not hold {name}.")


def _encode(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _encode(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_encode(item) for item in value]
    return "inf" if value == math.inf else value


def _decode(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _decode(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_decode(item) for item in value]
    return math.inf if value == "inf" else value
