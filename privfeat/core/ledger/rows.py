"""What a ledger holds: one row per budget, one row per charge, each with a checksum.

The checksum of a budget covers the number and the checksums of its charges, so a charge
that is gone is missed, the last one as well. ``fitted`` has none: damage there may let
a fit go on that ended. Who can write the ledger can write another history.
"""

import hashlib
import json
from dataclasses import dataclass, field, fields
from typing import Any

from privfeat.core.ledger.budget import Budget, now
from privfeat.core.ledger.names import check_new_name
from privfeat.core.ledger.store import BUDGETS, CHARGES, Transaction, damaged
from privfeat.core.statement.event_json import event_json
from privfeat.core.statement.privacy_statement import PrivacyStatement
from privfeat.exceptions import LedgerError

VERSION = 2  # 1: a budget's checksum did not cover its charges: the last may be gone
_BUDGET = tuple(field.name for field in fields(Budget))
_CHARGE = ("number", "estimator", "asked", "statement", "event")
# The column `fitted` holds this and a token while the fit is unfinished.
_CHECKPOINT = "checkpoint "
_BY = " by "  # in the column `asked`, after the time, before a name if one was given


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
    who : str or None
        Who charged it, where a name was given.
    statement_json : str
    fitted : str or None
        When it was finished. None: it is running, it failed, or it was killed; it may
        have released everything that its statement says.
    sha256 : str
        Checksum of all but ``fitted`` and ``token``.
    token : str or None
        Of the newest checkpoint, from which alone a fit may go on; None without one.
    """

    number: int
    estimator: str
    asked: str
    statement_json: str
    fitted: str | None = None
    sha256: str = field(default="", repr=False)
    token: str | None = field(default=None, repr=False)
    who: str | None = None

    @property
    def status(self) -> str:
        """Return "asked" or "fitted"."""
        return "asked" if self.fitted is None else "fitted"

    @property
    def statement(self) -> PrivacyStatement:
        """What the fit may have released, at what cost."""
        return PrivacyStatement.from_json(self.statement_json)


def find_datasets(rows: Transaction) -> list[str]:
    """Return the names of the data sets that have a budget."""
    return sorted(str(row["dataset"]) for row in rows.select(BUDGETS))


def find_account(rows: Transaction, dataset: str) -> tuple[Budget | None, list[Charge]]:
    """Return the budget of a data set, or None if it has none, and its charges.

    Raises
    ------
    LedgerError
        If a row is damaged or gone, or of a version this release cannot read.
    """
    for row in rows.select(BUDGETS, dataset):
        version = row.get("version")
        if version not in (1, VERSION):
            raise LedgerError(
                f"ledger of {dataset!r} must have version {VERSION}, got {version!r}. "
                "Upgrade privfeat to read it."
            )
        values: dict[str, Any] = {name: row.get(name) for name in _BUDGET}
        budget = Budget(**values)
        charges = _find_charges(rows, budget)
        if version == VERSION:
            sealed = _sealed(budget, [charge.sha256 for charge in charges])["sha256"]
        else:
            sealed = _digest(version, *values.values())
        if row.get("sha256") != sealed:
            why = "its budget and the charges together do not match their checksum"
            raise damaged(f"of {dataset!r}", why)
        return budget, charges
    return None, []


def find_charges(rows: Transaction, budget: Budget) -> list[Charge]:
    """Return every charge to a budget that was opened, in order.

    Raises
    ------
    LedgerError
        As `find_account`, and if another budget is in its place.
    """
    found, charges = find_account(rows, budget.dataset)
    if found != budget:
        raise LedgerError(
            f"ledger of {budget.dataset!r} must be the one that was opened, found "
            "another in its place."
        )
    return charges


def add_budget(rows: Transaction, budget: Budget, *, new_dataset: bool) -> list[str]:
    """Write the budget of a data set that has none; ValueError as `check_new_name`.

    Returns the names of the other ones.
    """
    others = find_datasets(rows)
    check_new_name(budget.dataset, others, new_dataset=new_dataset)
    rows.insert(BUDGETS, {**vars(budget), **_sealed(budget, [])})
    _check_written(rows, budget, 0)
    return others


def add_charge(
    rows: Transaction,
    budget: Budget,
    before: list[Charge],
    estimator: str,
    fit: PrivacyStatement,
    who: str | None = None,
) -> int:
    """Write a charge after all those ``before``, and return its number."""
    number = len(before) + 1
    asked = now() if who is None else f"{now()}{_BY}{who}"
    values = (number, estimator, asked, fit.to_json(), event_json(fit))
    sha256 = _digest(budget.uid, *values)
    row = dict(zip(_CHARGE, values, strict=True))
    rows.insert(CHARGES, {"dataset": budget.dataset, **row, "sha256": sha256})
    sealed = _sealed(budget, [*(charge.sha256 for charge in before), sha256])
    rows.update(BUDGETS, {"dataset": budget.dataset, **sealed})
    _check_written(rows, budget, number)
    return number


def mark_fitted(
    rows: Transaction, budget: Budget, number: int, token: str | None = None
) -> None:
    """Note that a charged fit is finished; with a token, its newest checkpoint."""
    said = now() if token is None else _CHECKPOINT + token
    rows.update(CHARGES, {"dataset": budget.dataset, "number": number, "fitted": said})


def _find_charges(rows: Transaction, budget: Budget) -> list[Charge]:
    """Return all charges of a budget, in order; raise LedgerError for a damaged one."""
    charges = {row["number"]: row for row in rows.select(CHARGES, budget.dataset)}
    found = []
    for number in range(1, len(charges) + 1):
        if number not in charges:
            raise damaged(f"of {budget.dataset!r}", f"charge {number} is missing")
        row = charges[number]
        digest = _digest(budget.uid, *(row.get(name) for name in _CHARGE))
        if digest != row.get("sha256"):
            why = f"charge {number} is not as written; delete that row if it is none"
            raise damaged(f"of {budget.dataset!r}", why)
        said, token = row.get("fitted"), ""
        if isinstance(said, str) and said.startswith(_CHECKPOINT):
            token, said = said.removeprefix(_CHECKPOINT), None
        asked, _, who = row["asked"].partition(_BY)
        written = (row["estimator"], asked, row["statement"])
        found.append(Charge(number, *written, said, digest, token or None, who or None))
    return found


def _sealed(budget: Budget, digests: list[str]) -> dict[str, Any]:
    """Return what stands beside a budget: it fits to all charges, and to no fewer."""
    sealed = (VERSION, *vars(budget).values(), len(digests), _digest(*digests))
    return {"version": VERSION, "sha256": _digest(*sealed)}


def _check_written(rows: Transaction, budget: Budget, n_charges: int) -> None:
    """Read back what was written: a database may have rules that change it."""
    if len(find_charges(rows, budget)) != n_charges:
        raise damaged(f"of {budget.dataset!r}", "it does not keep what is written")


def _digest(*fields: Any) -> str:
    text = json.dumps(fields, default=repr)  # a damaged field may be of any type
    return hashlib.sha256(text.encode()).hexdigest()
