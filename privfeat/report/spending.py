"""A page about a whole ledger, for those who spend it: hours and names are on it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import numpy as np

from privfeat.core.ledger.budget import Budget, PrivacyValue, spent_of
from privfeat.core.ledger.opening import Account
from privfeat.core.ledger.room import left_of
from privfeat.core.statement.privacy_statement import PrivacyStatement
from privfeat.core.statement.rounding import rounded_down, rounded_up
from privfeat.report.html import load_templates
from privfeat.report.svg import step_chart

MOST_POINTS = 12  # where fits are sampled or selected: each takes a second


@dataclass(frozen=True)
class Spending:
    """The spending of one data set as the page shows it, rounded against us."""

    budget: Budget
    row: dict[str, Any]  # its line in the table of all data sets
    # from when on how much epsilon was spent: 0 at the beginning; the last is now
    times: tuple[datetime, ...]
    spent: tuple[float, ...]
    charges: tuple[dict[str, Any], ...]


def spending_of(account: Account, now: datetime) -> Spending:
    """Return what the page says of one data set."""
    budget, charges = account.budget, account.charges
    shown, spent, left = _figures(budget, tuple(c.statement_json for c in charges))
    begun = datetime.fromisoformat(budget.created)
    times = (begun, *(datetime.fromisoformat(charges[i].asked) for i in shown))
    fits = [charge.statement for charge in charges]
    return Spending(
        budget=budget,
        row={
            "data set": budget.dataset,
            "spent": rounded_up(spent[-1] if spent else 0.0),
            "budget": rounded_up(budget.epsilon),
            "left": rounded_down(left.epsilon),
            "fits": len(charges),
        },
        times=(*times, max(now, *times)),
        spent=(0.0, *spent, spent[-1] if spent else 0.0),
        charges=tuple(
            {
                "fit": charge.number,
                "charged": charge.asked[:16].replace("T", " "),
                "by": charge.who or "",
                "epsilon": rounded_up(fit.epsilon),
                "estimator": charge.estimator,
                "delta": rounded_up(fit.delta),
                "status": charge.status,
            }
            for charge, fit in zip(charges, fits, strict=True)
        ),
    )


@lru_cache(maxsize=256)
def _figures(
    budget: Budget, statements: tuple[str, ...]
) -> tuple[tuple[int, ...], tuple[float, ...], PrivacyValue]:
    """Return after which charges, and how much, was spent, and what is left.

    Kept, because a page is asked for more often than a fit is charged.
    """
    fits = [PrivacyStatement.from_json(one) for one in statements]
    shown: Sequence[int] = range(len(fits))
    if any(fit.mu is None for fit in fits) and len(fits) > MOST_POINTS:
        chosen = np.linspace(0, len(fits) - 1, MOST_POINTS).astype(int)
        shown = [int(index) for index in chosen]
    spent = [spent_of(budget, fits[: index + 1]).epsilon for index in shown]
    return tuple(shown), tuple(spent), left_of(budget, fits)


def render_spending(
    accounts: Sequence[Account], *, place: str, now: datetime | None = None
) -> str:
    """Return one HTML document about all data sets of a ledger: no script, no network.

    ``place`` is where the ledger is, in words; charts end ``now``. ImportError if
    jinja2 or matplotlib is missing.
    """
    templates = load_templates(autoescape=True)
    templates.globals["step_chart"] = step_chart
    now = datetime.now(UTC) if now is None else now
    found = [spending_of(account, now) for account in accounts]
    page = templates.get_template("spending.j2")
    return page.render(place=place, found=found)
