"""Clipped users, and rows of a file, in fits of several processes: of two threads."""

import itertools
from concurrent.futures import ThreadPoolExecutor

import h5py
import numpy as np
import pytest

from privfeat import (
    DPFC,
    DPAdamLinear,
    DPLeastSquares,
    DPLeastSquaresRegressor,
    PrivacyLedger,
    open_features,
)
from privfeat.core.sums import processes
from privfeat.data import write_features
from privfeat.exceptions import PrivacyError
from tests.teams import Board, Thread

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")
SIZE = 2


@pytest.fixture
def together():
    """Run a function as each of two processes would, and return what it returned."""
    board = Board()

    def one(function, index):
        processes._team.set(Thread(index, SIZE, board=board))
        return function(index)

    def run(function):
        with ThreadPoolExecutor(SIZE) as threads:
            return list(threads.map(one, itertools.repeat(function), range(SIZE)))

    return run


@pytest.fixture
def many():
    """Of 700 users, so that each process has a chunk; each has one to four records."""
    rng = np.random.default_rng(0)
    groups = rng.permutation(np.repeat(np.arange(700), np.arange(700) % 4 + 1))
    y = rng.integers(0, 3, len(groups))
    return rng.normal(size=(len(y), 4)) + np.eye(3, 4)[y], y, groups


@pytest.mark.parametrize(
    ("cls", "options"),
    [
        (DPFC, {"n_iter": 2, "class_weight": "balanced", "gram_clip_norm": 0.6}),
        (DPAdamLinear, {"n_iter": 2, "class_weight": [3, 1, 2], "arithmetic": "exact"}),
        (DPLeastSquares, {"class_gram": True, "class_weight": "balanced"}),
        (DPLeastSquaresRegressor, {"target_bounds": (0, 2)}),
    ],
)
def test_processes_together_find_what_one_finds(cls, options, together, many):
    X, y, groups = many
    if cls is not DPLeastSquaresRegressor:
        options = {"classes": range(3), **options}

    def fitted(_):
        made = cls(max_group_size=3, random_state=7, **options)
        return made.fit(X, y, groups)

    alone = fitted(None)
    for found in together(fitted):
        np.testing.assert_allclose(found.coef_, alone.coef_, rtol=1e-9)
        assert found.privacy_ == alone.privacy_


@pytest.mark.parametrize("user_bound", ["sum", "count"])
def test_processes_with_other_users_are_refused_where_that_matters(
    user_bound, together, many
):
    """All records of all users count; but which process reads one would differ."""
    X, y, groups = many

    def fit(index):
        clf = DPLeastSquares(classes=range(3), max_group_size=4, user_bound=user_bound)
        clf.fit(X, y, groups if index == 0 else 699 - groups)
        return clf.coef_

    if user_bound == "count":
        one, two = together(fit)
        np.testing.assert_allclose(one, two, rtol=1e-9)
        return
    with pytest.raises(PrivacyError, match="all processes must have the same groups"):
        together(fit)


@pytest.mark.parametrize("place", [0, 2999])
def test_no_process_charges_what_another_cannot_read(place, together, tmp_path):
    """Each reads its own part: the first would charge, and then wait for the other."""
    rows, y = np.ones((3000, 2), np.float32), np.arange(3000) % 3
    write_features(tmp_path / "rows.h5", {"train": (rows, y)})
    with h5py.File(tmp_path / "rows.h5", "r+") as file:
        file["train/features"][place] = np.nan
    budget = {"dataset": "a", "epsilon": 1.0, "delta": 1e-5}
    ledger = PrivacyLedger(tmp_path / "a.ledger", **budget)

    def fit(index):
        clf = DPLeastSquares(classes=range(3), ledger=ledger)
        try:
            clf.fit(open_features(tmp_path / "rows.h5")["train"].X, y)
        except (ValueError, PrivacyError) as error:
            return str(error)

    found = together(fit)
    who = int(place > 2048)  # where the part of the second process begins
    assert found[who] == "X must not contain NaN or infinity."
    assert found[1 - who].startswith("every process must be able to read its rows")
    assert not ledger.history
