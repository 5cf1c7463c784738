"""What steps of one charge release of neighbouring records."""

from dataclasses import replace

import numpy as np
import pytest

from privfeat import DPLeastSquares
from privfeat.audit import recording
from privfeat.core.accounting.calibration import plan_releases
from privfeat.core.accounting.plan import Query
from privfeat.core.noise.keys import KeyStream
from privfeat.core.private_steps import private_steps
from privfeat.core.shares import shares_of_rho
from privfeat.exceptions import PrivacyWarning
from tests.linear.replaying import check_sensitivity


@pytest.fixture(scope="module")
def records():
    rng = np.random.default_rng(5)
    return rng.normal(size=(40, 3)), rng.integers(0, 2, 40)


class Chain:
    """Two fits: the second on rows that the first one's coefficients make."""

    def __init__(self, adjacency, leak=False):
        self.adjacency, self.leak, self.ledger = adjacency, leak, None

    def fit(self, X, y):
        whole = plan_releases(
            [Query("all", 1.0)], epsilon=2.0, adjacency=self.adjacency
        )
        rhos = shares_of_rho(whole, {"first": 1.0, "second": 2.0})
        # a center would be a public one only, and sums are easier to read without
        made = {
            name: DPLeastSquares(
                rho=rho,
                adjacency=self.adjacency,
                classes=[0, 1],
                center=False,
                random_state=7,
            )
            for name, rho in rhos.items()
        }
        keys = KeyStream(7)
        with pytest.warns(PrivacyWarning):
            begun = private_steps(
                self,
                whole,
                {
                    "first": made["first"].planned(3),
                    "second": made["second"].planned(1),
                },
                keys,
                public=(),
                n_units=len(X),
                forget=(),
            )
        with begun.charging():
            with begun.turn("first") as part:
                made["first"].set_params(ledger=part).fit(X, y)
            rows = made["first"].decision_function(X)[:, None]
            if self.leak:  # a fault: rows that depend on all records
                rows = rows - X.sum()
            with begun.turn("second") as part:
                made["second"].set_params(ledger=part).fit(rows, y)
        self.steps = made
        return self


def split(chain, calls):
    """Return the statement and the calls of each step."""
    first, second = (chain.steps[n].privacy_ for n in ("first", "second"))
    place = sum(release.count for release in first.releases)
    assert {call.name.partition(".")[0] for call in calls[:place]} == {"first"}
    calls = [replace(call, name=call.name.partition(".")[2]) for call in calls]
    return [(first, calls[:place]), (second, calls[place:])]


def neighbours(X, y, adjacency):
    """Extreme records in the place of one, or none there."""
    for row in ([1e6, -1e6, 1e6], [0.0, 0.0, 0.0], [-5.0, 0.1, 3.0]):
        for label in (0, 1):
            if adjacency == "add_remove":
                yield np.vstack([X, row]), np.append(y, label)
            else:
                yield np.vstack([row, X[1:]]), np.append(label, y[1:])
    if adjacency == "add_remove":
        yield X[1:], y[1:]


def moves(adjacency, records, **options):
    chains = []
    with recording() as spy:
        spy.start()
        chain = Chain(adjacency, **options).fit(*records)
        calls = spy.calls
        for other in neighbours(*records, adjacency):
            spy.start(answers=calls)
            Chain(adjacency, **options).fit(*other)
            pairs = zip(split(chain, calls), split(chain, spy.calls), strict=True)
            chains += [(stated, one, two) for (stated, one), (_, two) in pairs]
    return chains


def check_all(moved):
    for statement, one, two in moved:
        check_sensitivity(statement, one, two)


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_given_equal_earlier_releases_no_sum_of_a_step_moves_beyond_its_bound(
    records, adjacency
):
    check_all(moves(adjacency, records))


def test_the_check_notices_rows_that_follow_from_all_records(records):
    moved = moves("add_remove", records, leak=True)
    with pytest.raises(AssertionError):
        check_all(moved)
