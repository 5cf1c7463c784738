"""What a ledger holds: one row per budget, one row per charge, each with a checksum.

The checksums notice damage, not forgery: whoever can write the database can write
another history.
"""

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from privfeat.core.budget import Budget, now
from privfeat.core.event_json import event_json
from privfeat.core.ledger_store import Execute
from privfeat.core.statement import PrivacyStatement
from privfeat.exceptions import LedgerError

VERSION = 1
SCHEMA = (
    """CREATE TABLE privfeat_budget (
        dataset TEXT NOT NULL PRIMARY KEY,
        version INTEGER NOT NULL,
        uid TEXT NOT NULL,
        epsilon DOUBLE PRECISION NOT NULL,
        delta DOUBLE PRECISION NOT NULL,
        adjacency TEXT NOT NULL,
        unit TEXT NOT NULL,
        created TEXT NOT NULL,
        sha256 TEXT NOT NULL
    )""",
    """CREATE TABLE privfeat_charge (
        dataset TEXT NOT NULL REFERENCES privfeat_budget,
        number INTEGER NOT NULL,
        estimator TEXT NOT NULL,
        asked TEXT NOT NULL,
        statement TEXT NOT NULL,
        event TEXT,
        sha256 TEXT NOT NULL,
        fitted TEXT,
        PRIMARY KEY (dataset, number)
    )""",
)


@dataclass(frozen=True)
class Charge:
    """One fit, or one search, that was charged.

    Attributes
    ----------
    number : int
        From 1, without gaps.
    estimator : str
        Name of the class.
    asked : str
        When it was charged, before it drew any noise; UTC, ISO 8601.
    statement_json : str
    fitted : str or None
        When it was finished. None: it is running, it failed, or it was killed; it may
        have released everything that its statement says.
    """

    number: int
    estimator: str
    asked: str
    statement_json: str
    fitted: str | None = None

    @property
    def status(self) -> str:
        """Return "asked" or "fitted"."""
        return "asked" if self.fitted is None else "fitted"

    @property
    def statement(self) -> PrivacyStatement:
        """What the fit may have released, at what cost."""
        return PrivacyStatement.from_json(self.statement_json)


def find_datasets(execute: Execute) -> list[str]:
    """Return the names of the data sets that have a budget."""
    rows = execute("SELECT dataset FROM privfeat_budget ORDER BY dataset")
    return [str(dataset) for (dataset,) in rows]


def find_budget(execute: Execute, dataset: str) -> Budget | None:
    """Return the budget of a data set, or None if it has none.

    Raises
    ------
    LedgerError
        If the row is damaged, or of a version this release cannot read.
    """
    rows = execute(
        "SELECT version, dataset, uid, epsilon, delta, adjacency, unit, created, sha256"
        " FROM privfeat_budget WHERE dataset = :dataset",
        dataset=dataset,
    )
    for version, *fields, sha256 in rows:
        if version != VERSION:
            raise LedgerError(
                f"ledger of {dataset!r} must have version {VERSION}, got {version!r}. "
                "Update privfeat to read it."
            )
        if _digest(version, *fields) != sha256:
            raise _damaged(dataset, "its budget does not match its checksum")
        return Budget(*fields)
    return None


def add_budget(execute: Execute, budget: Budget) -> None:
    """Write the budget of a data set that has none."""
    fields = vars(budget)
    execute(
        "INSERT INTO privfeat_budget"
        " (version, dataset, uid, epsilon, delta, adjacency, unit, created, sha256)"
        " VALUES (:version, :dataset, :uid, :epsilon, :delta, :adjacency, :unit,"
        " :created, :sha256)",
        version=VERSION,
        sha256=_digest(VERSION, *fields.values()),
        **fields,
    )


def find_charges(execute: Execute, budget: Budget) -> list[Charge]:
    """Return every charge, in order.

    Raises
    ------
    LedgerError
        If the budget is not the one that was opened, or a charge is damaged or gone.
    """
    if find_budget(execute, budget.dataset) != budget:
        raise LedgerError(
            f"ledger of {budget.dataset!r} must be the one that was opened, found "
            "another in its place."
        )
    rows = execute(
        "SELECT number, estimator, asked, statement, event, sha256, fitted"
        " FROM privfeat_charge WHERE dataset = :dataset ORDER BY number",
        dataset=budget.dataset,
    )
    charges = []
    for position, row in enumerate(rows, start=1):
        number, estimator, asked, statement, event, sha256, fitted = row
        if number != position:
            raise _damaged(budget.dataset, f"charge {position} is missing")
        if _digest(budget.uid, number, estimator, asked, statement, event) != sha256:
            raise _damaged(budget.dataset, f"charge {position} is not as written")
        charges.append(Charge(number, estimator, asked, statement, fitted))
    return charges


def add_charge(
    execute: Execute, budget: Budget, number: int, estimator: str, fit: PrivacyStatement
) -> None:
    """Write a charge with the number after the last."""
    fields = (number, estimator, now(), fit.to_json(), event_json(fit))
    names = ("number", "estimator", "asked", "statement", "event")
    execute(
        "INSERT INTO privfeat_charge"
        " (dataset, number, estimator, asked, statement, event, sha256)"
        " VALUES (:dataset, :number, :estimator, :asked, :statement, :event, :sha256)",
        dataset=budget.dataset,
        sha256=_digest(budget.uid, *fields),
        **dict(zip(names, fields, strict=True)),
    )


def mark_fitted(execute: Execute, budget: Budget, number: int) -> None:
    """Note that a charged fit is finished."""
    execute(
        "UPDATE privfeat_charge SET fitted = :fitted"
        " WHERE dataset = :dataset AND number = :number",
        fitted=now(),
        dataset=budget.dataset,
        number=number,
    )


def _digest(*fields: Any) -> str:
    text = json.dumps(fields, default=repr)  # a damaged field may be of any type
    return hashlib.sha256(text.encode()).hexdigest()


def _damaged(dataset: str, why: str) -> LedgerError:
    return LedgerError(
        f"ledger of {dataset!r} is damaged: {why}. Bring back a copy that holds every "
        "fit, or treat the budget as spent."
    )
