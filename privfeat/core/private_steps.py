"""Several private fits under one charge, each on what the ones before it released.

    steps = private_steps(self, whole, {"scaler": plan, "clf": other}, keys, ...)
    with steps.charging():
        with steps.turn("scaler") as part:
            scaler.set_params(ledger=part).fit(X)
        ...

**Guarantee.** With ``whole`` for mu, all that the steps release together is ``mu``-GDP
for the records, or users, if each step is given one row for each record, a function of
that record, public facts and earlier releases alone, and of the same user.

*Proof.* Let ``r`` be what the steps before step ``i`` released. For a fixed ``r`` one
function makes a row of each record. So records that differ in one, or in those of one
user, become rows that do, and no fewer or more: neighbours under either adjacency. The
fit of step ``i``, which is ``mu_i``-GDP for its rows, is so for the records, or users.
Fits that are ``mu_i``-GDP for every ``r`` compose adaptively to one that is
``sqrt(sum mu_i**2)``-GDP (Dong, Roth & Su 2022, Corollary 2); `joined_plans` computes
the sum from the noise. A step draws this noise and nothing else: its `PartOfCharge`
takes no statement but that of its plan, and `PrivateFit` draws what it states.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from privfeat._types import Arithmetic, Unit
from privfeat.core.accounting.plan import ReleasePlan
from privfeat.core.noise.keys import KeyStream
from privfeat.core.noise.observation import in_step
from privfeat.core.part_of_charge import PartOfCharge
from privfeat.core.private_fit import PrivateFit
from privfeat.core.shares import joined_plans
from privfeat.core.statement.privacy_statement import PrivacyStatement
from privfeat.core.statement.weak_choices import warn_of_weak_choices
from privfeat.exceptions import PrivacyError


def private_steps(
    estimator: Any,
    whole: ReleasePlan,
    parts: Mapping[str, ReleasePlan],
    keys: KeyStream,
    *,
    public: tuple[str, ...],
    n_units: int,
    forget: tuple[str, ...],
    unit: Unit = "record",
    arithmetic: Arithmetic = "float64",
    classes_read: bool = False,
) -> "PrivateSteps":
    """Return the steps of one charge, not yet charged; warn of weak choices.

    Parameters
    ----------
    whole, parts
        As of `joined_plans`, which refuses parts that cost more than the whole.
    estimator, keys, public, n_units, forget, unit, arithmetic, classes_read
        As of `private_fit`. Steps that are seeded have seeds drawn from ``keys``.

    Raises
    ------
    PrivacyError, UnsupportedEventError
        As `joined_plans`. Nothing is charged.
    """
    statement = PrivacyStatement.from_plan(
        joined_plans(whole, parts),
        public=public,
        seeded=keys.seeded,
        unit=unit,
        arithmetic=arithmetic,
    )
    if not isinstance(getattr(estimator, "ledger", None), PartOfCharge):
        warn_of_weak_choices(statement, classes_read=classes_read, n_units=n_units)
    fit = PrivateFit(estimator, statement, keys, forget)
    made = {
        name: PartOfCharge(
            part,
            unit=unit,
            arithmetic=arithmetic,
            seeded=statement.seeded,
            charge_whole=fit.charge_now,
        )
        for name, part in parts.items()
    }
    return PrivateSteps(fit, made)


class PrivateSteps:
    """Steps whose cost is stated; each has its turn, and the first to draw charges."""

    def __init__(self, fit: PrivateFit, parts: Mapping[str, PartOfCharge]) -> None:
        self._fit, self._parts, self._begun = fit, parts, False

    @property
    def statement(self) -> PrivacyStatement:
        """The cost of all steps together."""
        return self._fit.statement

    @contextmanager
    def charging(self) -> Iterator[None]:
        """Let the body give each step its turn; the first to draw charges all.

        Raises
        ------
        PrivacyError
            If the body left one out.
        """
        with self._fit.charging():
            self._begun = True
            try:
                yield
            finally:
                self._begun = False
            left = [name for name, part in self._parts.items() if not part.taken]
            if left:
                raise PrivacyError(f"all steps must be fitted, left: {left}.")

    @contextmanager
    def turn(self, name: str) -> Iterator[PartOfCharge]:
        """Give the next step, by its name, its part of the charge.

        Raises
        ------
        PrivacyError
            Outside of `charging`, out of order, or if the body did not fit the step.
        """
        if not self._begun:
            raise PrivacyError("steps must be fitted within `charging`.")
        waiting = [step for step, part in self._parts.items() if not part.taken]
        if waiting[:1] != [name]:
            raise PrivacyError(f"steps must be fitted in their order, got {name!r}.")
        part = self._parts[name]
        part.is_open = True
        try:
            with in_step(name):
                yield part
        finally:
            part.is_open = False
        if not part.taken:
            raise PrivacyError(f"a step must be fitted in its turn: {name!r} was not.")
