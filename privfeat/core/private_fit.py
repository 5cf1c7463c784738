"""One private fit: state, warn, charge, draw, complete. There is no other order.

    fit = private_fit(self, plan, keys, public=facts, n_units=len(X), forget=("sum_",))
    with fit.drawing() as mechanism:
        self.sum_ = mechanism.release("sum", exact).value

The first release charges the fit, between the exact sum and its noise. So what fails
before, as a file that cannot be read to its end, costs nothing. From then on the budget
is spent, whatever happens: ``privacy_`` says so. What an earlier fit had set is gone
before the body begins.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from privfeat._types import Arithmetic, Unit
from privfeat.core.accounting.plan import ReleasePlan
from privfeat.core.ledger.charging import charged
from privfeat.core.ledger.privacy_ledger import PrivacyLedger
from privfeat.core.ledger.runs import Tokens
from privfeat.core.noise.gaussian_mechanism import GaussianMechanism
from privfeat.core.noise.keys import KeyStream
from privfeat.core.part_of_charge import PartOfCharge
from privfeat.core.statement.privacy_statement import PrivacyStatement
from privfeat.core.statement.weak_choices import warn_of_weak_choices
from privfeat.core.sums.devices import check_exact_products, check_settings
from privfeat.exceptions import PrivacyError


def private_fit(
    estimator: Any,
    plan: ReleasePlan,
    keys: KeyStream,
    *,
    public: tuple[str, ...],
    n_units: int,
    forget: tuple[str, ...],
    unit: Unit = "record",
    arithmetic: Arithmetic = "float64",
    classes_read: bool = False,
) -> "PrivateFit":
    """Return the fit that draws ``plan``, not yet charged; warn of weak choices.

    Parameters
    ----------
    estimator : object
        Gets ``privacy_``; its ``ledger`` is charged, or the whole of a `PartOfCharge`.
    keys : KeyStream
        The source of the noise.
    n_units : int
        The number of records, or users. Sensitive: only a warning depends on it.
    forget : tuple of str
        Attributes that an earlier fit may have set, which ``privacy_`` will not cover.
    public, unit, arithmetic
        As in `PrivacyStatement`.
    classes_read : bool
        Whether the labels were read to find the classes.
    """
    statement = PrivacyStatement.from_plan(
        plan, public=public, seeded=keys.seeded, unit=unit, arithmetic=arithmetic
    )
    if not isinstance(getattr(estimator, "ledger", None), PartOfCharge):
        warn_of_weak_choices(statement, classes_read=classes_read, n_units=n_units)
    return PrivateFit(estimator, statement, keys, forget, plan)


def private_selection(
    estimator: Any,
    statement: PrivacyStatement,
    keys: KeyStream,
    *,
    n_units: int,
    forget: tuple[str, ...],
    classes_read: bool,
) -> "PrivateFit":
    """Return a selection among fits, as `private_fit` does.

    Each run draws plans of ``run_mu`` at most. The caller sees to it that those of a
    run, which are not counted, are of different records, that a fit in it costs no
    more, and that runs are as many as stated. PrivacyError for too small an epsilon.
    """
    if statement.selection is None:
        raise PrivacyError("a selection must be part of its statement, got none.")
    statement.selection.check_cost(statement.epsilon, statement.delta)
    warn_of_weak_choices(statement, classes_read=classes_read, n_units=n_units)
    return PrivateFit(estimator, statement, keys, forget)


class PrivateFit:
    """A fit whose cost is stated; ``charge`` is its number in the ledger, or None."""

    def __init__(
        self,
        estimator: Any,
        statement: PrivacyStatement,
        keys: KeyStream,
        forget: tuple[str, ...],
        plan: ReleasePlan | None = None,
    ) -> None:
        self._ledger = getattr(estimator, "ledger", None)
        if not isinstance(self._ledger, PrivacyLedger | PartOfCharge | None):
            kind = type(self._ledger).__name__
            raise TypeError(f"ledger must be None or a PrivacyLedger, got {kind}.")
        self.statement = statement
        self.charge: int | None = None
        self._estimator, self._keys, self._plan = estimator, keys, plan
        self._forget = forget
        # what charges it, while it may draw
        self._charge: Callable[[], tuple[int | None, PrivacyStatement]] | None = None
        self._after_charge: Callable[[], None] | None = None
        self._begun = self._charged = self._handed_out = False

    @contextmanager
    def drawing(
        self, *, number: int | None = None, tokens: Tokens = (None,)
    ) -> Iterator[GaussianMechanism]:
        """Let the body draw all that is planned; its first release charges the fit.

        A fit that goes on passes ``number`` and ``tokens``: see `charged`.
        """
        if self._plan is None:
            raise PrivacyError("a selection, or steps, must draw one by one.")
        with self.charging(number=number, tokens=tokens):
            mechanism = self.mechanism(self._plan)
            yield mechanism
            mechanism.check_complete()

    @contextmanager
    def charging(
        self, *, name: str = "", number: int | None = None, tokens: Tokens = (None,)
    ) -> Iterator["PrivateFit"]:
        """Let the body draw; its first release charges the fit, else its end.

        A selection is charged at once: each of its runs has its own mechanism. The
        charge has the ``name`` of the estimator's class if no other is given. Settings
        under which no mechanism would draw, and a budget without room, are refused
        before the body.
        """
        if self._begun:
            raise PrivacyError("a fit must be charged once: its statement is of one.")
        self._begun = True
        if math.isfinite(self.statement.epsilon):  # seeded or not
            # fits of a selection, or of steps, need products: tried before the charge
            (check_settings if self._plan else check_exact_products)()
        name = name or type(self._estimator).__name__
        ledger = None if isinstance(self._ledger, PartOfCharge) else self._ledger
        stated = self.statement
        paid = charged(ledger, stated, estimator=name, number=number, tokens=tokens)
        with paid as self._charge:
            for attribute in self._forget:
                self._estimator.__dict__.pop(attribute, None)
            try:
                if self.statement.selection is not None:
                    self.charge_now()
                yield self
                self.charge_now()
            finally:
                self._charge = None

    def after_charge(self, act: Callable[[], None]) -> None:
        """Call ``act`` between the charge of the fit and its first draw."""
        self._after_charge = act

    def charge_now(self) -> None:
        """Charge the fit unless it was: what is drawn after this is paid for.

        Raises
        ------
        BudgetExceededError, LedgerError, PrivacyError
            If it cannot be charged; PrivacyError outside of `charging`.
        """
        if self._charge is None:
            raise PrivacyError("a fit must be charged before it draws.")
        if not self._charged:
            if isinstance(self._ledger, PartOfCharge):  # charges what is around it
                self._ledger.charge(self.statement)
            self.charge, self.statement = self._charge()
            self._charged = True
            self._estimator.privacy_ = self.statement
        if self._after_charge is not None:
            self._after_charge()
            self._after_charge = None  # it is done

    def mechanism(self, plan: ReleasePlan) -> GaussianMechanism:
        """Return what draws ``plan``: that of the fit, or of one run of a selection."""
        if self._charge is None:
            raise PrivacyError("a fit must be charged before it draws.")
        if self.statement.selection is None:
            if plan is not self._plan:
                raise PrivacyError("a fit must draw the plan that it has stated.")
            if self._handed_out:
                raise PrivacyError("a fit must draw its plan once.")
            self._handed_out = True
        else:
            self.statement.selection.check_run(plan, self.statement.adjacency)
        how = self.statement.arithmetic
        return GaussianMechanism(plan, self._keys, how, self.charge_now)
