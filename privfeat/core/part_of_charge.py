"""What a step of several fits has in the place of a ledger: its part of their charge.

`private_steps` makes one for each step, from the plan that the step has told before.
"""

from collections.abc import Callable
from typing import Any, NoReturn

from privfeat._types import Arithmetic, Unit
from privfeat.core.accounting.plan import ReleasePlan
from privfeat.core.statement.privacy_statement import PrivacyStatement
from privfeat.exceptions import PrivacyError


class PartOfCharge:
    """Takes the one charge that was planned of a step, while it is that step's turn.

    Attributes
    ----------
    taken : bool
        Whether the step was charged: then it may draw its plan.
    """

    def __init__(
        self,
        plan: ReleasePlan,
        *,
        unit: Unit,
        arithmetic: Arithmetic,
        seeded: bool,
        charge_whole: Callable[[], None],
    ) -> None:
        self._charge_whole = charge_whole
        self._told = PrivacyStatement.from_plan(
            plan, public=(), seeded=seeded, unit=unit, arithmetic=arithmetic
        )
        self.is_open = self.taken = False

    def charge(self, statement: PrivacyStatement) -> None:
        """Take the charge of a fit; all that it draws is in its statement.

        The first step to draw charges all of them. How many blocks a release has is not
        compared: its sensitivity is that of all together, whatever their number.

        Raises
        ------
        PrivacyError
            If the statement is not of the releases, noise and neighbours that were
            told, in another turn than the step's, or at the second time.
        """
        if not self.is_open or self.taken:
            raise PrivacyError("a step must be fitted once, in its turn.")
        told, found = self._told, statement
        if (
            found.releases != told.releases
            or (found.adjacency, found.unit) != (told.adjacency, told.unit)
            or (found.arithmetic, found.seeded) != (told.arithmetic, told.seeded)
            or found.selection is not None
        ):
            raise PrivacyError(
                "a step must draw exactly what it has told before, got another plan."
            )
        self._charge_whole()
        self.taken = True

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        """Refuse a copy, which could be charged as well."""
        raise PrivacyError("a part of a charge must not be copied.")
