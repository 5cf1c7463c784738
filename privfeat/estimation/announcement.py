"""What a fit says before it begins, to the person who waits for it."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from privfeat._progress import hidden, progress
from privfeat.core.ledger.budget import check_covered, left_of
from privfeat.core.statement.privacy_statement import PrivacyStatement
from privfeat.core.statement.rounding import rounded_down, rounded_up


def announced(
    estimator: Any,
    statement: PrivacyStatement,
    *,
    charged: bool = True,
    first: bool = True,
) -> AbstractContextManager[None]:
    """Return what shows the cost and the progress of a fit that is ``verbose``.

    To be called before the fit is charged, so that a ledger that cannot be read costs
    nothing, and entered after that. ``charged`` is False if the fit goes on from a
    checkpoint, at no cost; ``first`` in all processes but one that fit together.
    """
    if not (estimator.verbose and first):
        return hidden()  # a search that is shown would show each of its runs
    told = cost_of(statement, estimator.ledger) if charged else None
    return _shown(type(estimator).__name__, told)


@contextmanager
def _shown(name: str, told: str | None) -> Iterator[None]:
    with progress(name) as found:
        if told is not None:
            found.tell(told)
        yield


def cost_of(statement: PrivacyStatement, ledger: Any) -> str:
    """Return the cost of a fit, its releases, and what it leaves of a ledger."""
    drawn = " + ".join(f"{r.count} x {r.name}" for r in statement.releases)
    cost = (
        f"epsilon = {rounded_up(statement.epsilon)} at delta = {statement.delta:g} for "
        f"{drawn}"
    )
    if ledger is None:
        return f"{cost}; no ledger is charged"
    budget = ledger.budget
    check_covered(budget, statement)  # as the charge will
    whole = f"epsilon = {rounded_down(budget.epsilon)}"
    fits = [*(charge.statement for charge in ledger.history), statement]
    if any(fit.mu is None for fit in fits):  # what is left would take minutes
        return f"{cost}; charged to {budget.dataset!r}, whose whole budget is {whole}"
    left = rounded_down(left_of(budget, fits).epsilon)
    return (
        f"{cost}; charged to {budget.dataset!r}, which then has epsilon = {left} left "
        f"of {whole}"
    )
