"""The budget of test records: from queries to releases, in the order of every fit."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfeat._types import Adjacency, Unit
from privfeat.core.accounting.calibration import plan_releases
from privfeat.core.accounting.plan import Query, ReleasePlan
from privfeat.core.ledger.privacy_ledger import PrivacyLedger
from privfeat.core.noise.keys import KeyStream
from privfeat.core.noise.release import Release
from privfeat.core.private_fit import private_fit
from privfeat.core.statement.privacy_statement import PrivacyStatement
from privfeat.core.sums.records import check_number
from privfeat.core.sums.totals import ExactSum
from privfeat.estimation.inputs import Users, seed_of

# From which records count, a mask of shape (n,), to their sum.
SumOf = Callable[[NDArray[np.bool_]], ExactSum]


@dataclass
class PrivateEvaluation:
    """One use of test records; a ledger shows it under the name of this class.

    What it is made with is as of `private_evaluation`; ``users`` says whose the records
    are, where users are protected. ``privacy_`` is there once it is charged.
    """

    epsilon: float | None
    delta: float
    adjacency: Adjacency
    ledger: PrivacyLedger | None
    random_state: Any
    users: Users | None = None
    privacy_: PrivacyStatement = field(init=False)

    @property
    def most(self) -> int:
        """How many records of what is protected count."""
        return 1 if self.users is None else self.users.max_group_size

    def plan(self, queries: Sequence[Query]) -> ReleasePlan:
        """Return what will be released, before a record is read."""
        per_unit = [query.per_user(self.most) for query in queries]
        return plan_releases(
            queries if self.users is None else per_unit,
            epsilon=self.epsilon,
            delta=self.delta,
            adjacency=self.adjacency,
        )

    def release(
        self,
        plan: ReleasePlan,
        sums: Mapping[str, SumOf],
        *,
        n_records: int,
        public: Sequence[str],
        estimator: Any = None,
        forget: tuple[str, ...] = (),
    ) -> dict[str, Release]:
        """Return the releases of the plan, which is charged, by the names of queries.

        ``sums`` holds, by name, what sums the records that count: at most `most` of a
        user, which that user's records and a key alone decide. ``estimator`` gets the
        statement as ``privacy_`` and loses what ``forget`` names, if not this object.
        """
        check_number(n_records)
        users = self.users
        unit: Unit = "record" if users is None else "user"
        known = [*public, "that all values are finite"]
        if users is not None:
            known.append(f"that of a user's records at most {self.most} count")
        if self.adjacency == "replace_one":
            known.append(f"the number of {unit}s")
        keys = KeyStream(seed_of(self.random_state))
        fit = private_fit(
            self if estimator is None else estimator,
            plan,
            keys,
            public=tuple(known),
            n_units=n_records if users is None else users.n_users,
            forget=forget,
            unit=unit,
        )
        counted = np.ones(n_records, bool)
        if users is not None:
            counted = users.kept_records(keys.draw_integer())
        with fit.drawing() as mechanism:
            return {
                planned.query.name: mechanism.release(
                    planned.query.name, sums[planned.query.name](counted)
                )
                for planned in plan.releases
            }
