"""The budget of a private data set over many fits: charge first, then draw noise."""

import os

from privfeat._checks import check_bool
from privfeat._types import Adjacency, Unit
from privfeat.core.ledger import names, rows
from privfeat.core.ledger.budget import (
    PrivacyValue,
    check_charged_once,
    check_covered,
    new_budget,
    spent_of,
)
from privfeat.core.ledger.opening import open_store
from privfeat.core.ledger.room import exceeded, left_of
from privfeat.core.statement.privacy_statement import PrivacyStatement
from privfeat.exceptions import LedgerError


class PrivacyLedger:
    """Durable record of every fit on one private data set, which refuses to overspend.

    Pass it as ``ledger=`` to the estimators and searches. A fit is charged before it
    draws noise. One that would exceed the budget raises `BudgetExceededError` and
    changes nothing. Copies, clones and pickles of the object spend the same budget,
    from any thread or process.

    Parameters
    ----------
    path : path or str
        A file on a file system of this machine, not of the network; or
        ``postgresql://...``, for several hosts (``pip install privfeat[postgres]``).
        It may hold many data sets.
    dataset : str
        Name of the data set, of 1 to 200 characters; no two look alike.
    epsilon, delta : float, optional
        The total budget: finite and > 0, and in [1e-10, 1). They create it, and stderr
        says so. Without them one that exists is opened; it can never be changed.
    adjacency : {"add_remove", "replace_one"}, optional
        What every fit must protect; "add_remove" for a new budget.
    unit : {"record", "user"}, optional
        Whom every fit must protect; "record" for a new budget.
    new_dataset : bool, default=False
        Create the budget also if the name may be that of another one, mistyped: the
        records are others.
    who : str, optional
        Your name, of 1 to 100 characters, for the history of what you charge.

    Attributes
    ----------
    budget : Budget
        ``dataset``, ``epsilon``, ``delta``, ``adjacency`` and ``unit``, as written.

    Raises
    ------
    TypeError, ValueError
        If a parameter is out of range, or not that of the existing budget.
    LedgerError
        If there is no ledger to open, or it is damaged or cannot be used.

    Notes
    -----
    **Guarantee.** All charged fits together are ``(spent.epsilon, spent.delta)``-DP, by
    `compose`, and ``spent.epsilon`` is at most the budget's. For Gaussian fits this is
    true also if budgets were chosen after seeing results, [1]_. Where sampled fits
    or searches are mixed in, budgets must not depend on results, nor on ``remaining``
    after such fits: nothing here can check that.

    A fit that fails or is killed after its first draw of noise stays charged. **No
    charge can vanish**: it is on disk before the first draw, and checksums of each
    charge and of all of them make damage, and a row that is gone, an error. Not counted
    are fits without ``ledger=``, scores, and what a ledger held that was deleted or put
    back as it was. No data is stored.

    References
    ----------
    .. [1] Smith & Thakurta. Fully Adaptive Composition for Gaussian Differential
       Privacy. 2022 (arXiv:2210.17520).

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = f"{folder}/digits.ledger"
    ...     ledger = PrivacyLedger(path, dataset="digits", epsilon=3.0, delta=1e-5)
    ...     ledger.remaining.epsilon
    3.0
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        dataset: str,
        epsilon: float | None = None,
        delta: float | None = None,
        adjacency: Adjacency | None = None,
        unit: Unit | None = None,
        new_dataset: bool = False,
        who: str | None = None,
    ) -> None:
        protected = {"adjacency": adjacency, "unit": unit}
        given = {"epsilon": epsilon, "delta": delta, **protected}
        wanted = new_budget(dataset, **given)
        check_bool("new_dataset", new_dataset)
        self._who = names.check_who(who)
        self._store = open_store(path)
        if wanted is not None:
            self._store.create()
        with self._store.transaction(write=wanted is not None) as found:
            budget = rows.find_account(found, dataset)[0] or wanted
            if budget is None:
                near = names.nearest(dataset, rows.find_datasets(found))
                like = "" if near is None else f" It is near {near!r}: open that."
                raise LedgerError(
                    f"dataset must be one that ledger {self._store} holds, got "
                    f"{dataset!r}.{like} Create its budget with `privfeat budget "
                    "create`, or pass epsilon and delta to PrivacyLedger."
                )
            if budget is wanted:
                others = rows.add_budget(found, budget, new_dataset=new_dataset)
                names.tell_of_new(budget, str(self._store), others)
        for name, value in given.items():
            asked = value if wanted is None else getattr(wanted, name)  # as it is kept
            if value is not None and asked != getattr(budget, name):
                raise ValueError(
                    f"{name} must be {getattr(budget, name)!r}, as in the budget of "
                    f"{dataset!r}, which cannot be changed, got {value!r}. Leave it "
                    "out, or create a budget for another dataset."
                )
        self.budget = budget

    def __repr__(self) -> str:
        return f"PrivacyLedger({str(self._store)!r}, dataset={self.budget.dataset!r})"

    @property
    def history(self) -> list[rows.Charge]:
        """Every fit and search that was charged, the first one first."""
        with self._store.transaction(write=False) as found:
            return rows.find_charges(found, self.budget)

    @property
    def spent(self) -> PrivacyValue:
        """What all charged fits cost together."""
        return spent_of(self.budget, [charge.statement for charge in self.history])

    @property
    def remaining(self) -> PrivacyValue:
        """The largest budget that one more fit, of all records, may have.

        ``DPFC(epsilon=remaining.epsilon, delta=remaining.delta)`` just fits, and so do
        several fits whose ``rho`` sum to ``remaining.rho``. Because costs add up as
        squares of mu, it is more than the budget less what was spent.
        """
        return left_of(self.budget, [charge.statement for charge in self.history])

    def charge(self, statement: PrivacyStatement, *, estimator: str) -> int:
        """Charge a fit that is going to draw noise, and return its number.

        Raises
        ------
        BudgetExceededError
            If it does not fit; with what is left. Nothing was charged.
        LedgerError
            If the ledger cannot be read and written. The fit must not happen.
        PrivacyError, ValueError
            If the statement has no finite epsilon, a seed, or another adjacency or
            unit than the budget; or if the ledger holds this very charge.
        """
        check_covered(self.budget, statement)
        with self._store.transaction(write=True) as found:
            charges = rows.find_charges(found, self.budget)
            spent = [charge.statement for charge in charges]
            check_charged_once(spent, statement)
            total = spent_of(self.budget, [*spent, statement]).epsilon
            if total <= self.budget.epsilon:
                return rows.add_charge(
                    found, self.budget, charges, estimator, statement, self._who
                )
        raise exceeded(self.budget, spent, statement, total)

    def check_room(self, statement: PrivacyStatement) -> None:
        """Raise what `charge` would raise now, but for a store that takes no writes."""
        check_covered(self.budget, statement)
        spent = [charge.statement for charge in self.history]
        check_charged_once(spent, statement)
        total = spent_of(self.budget, [*spent, statement]).epsilon
        if not total <= self.budget.epsilon:
            raise exceeded(self.budget, spent, statement, total)
