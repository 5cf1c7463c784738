"""Phases and steps of fits, shown without a number of records."""

import errno
import io
import re
import sys
from types import ModuleType

import numpy as np
import pytest

from privfeat import DPFC, DPLeastSquares, DPNewton, PrivacyLedger, _progress
from privfeat._progress import hidden, passing, phase, progress, steps

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")


def test_nothing_is_shown_unless_asked(capfd):
    items = [1, 2]
    assert passing(items, 2) is items
    assert list(steps("gradients", 5, done=2)) == [2, 3, 4]
    with phase("Gram matrix"):
        pass
    assert capfd.readouterr() == ("", "")


def test_a_pass_outside_of_a_phase_moves_no_bar(capsys):
    with progress("A"):
        assert list(passing(iter("abc"), 3)) == ["a", "b", "c"]
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("n", [0, 1, 3, 7])
def test_a_pass_yields_what_it_is_given_once_and_in_order(n):
    items = [object() for _ in range(5)]
    with progress("A"), phase("Gram matrix"):
        found = list(passing(iter(items), n or 1))
    assert all(a is b for a, b in zip(items, found, strict=True))


def test_steps_are_all_taken():
    with progress("A"):
        assert list(steps("gradients", 5, done=2)) == [2, 3, 4]


@pytest.fixture
def places(plant):
    """Return where the bar was after each item of a pass."""
    found = []
    original = plant.genuine("move of a bar")

    def move_to(self, place):
        original(self, place)
        if self._bar is not None:
            found.append(round(self._bar.n, 6))

    plant("move of a bar", move_to)
    return found


def test_a_step_moves_the_bar_by_one_in_all_its_passes(places):
    with progress("A"):
        for _ in steps("Newton steps", 2, passes=2):
            for _ in range(3):  # one pass more than was said
                list(passing("ab", 2))
    assert places == [0.25, 0.5, 0.75, 1.0, 1.0, 1.25, 1.5, 1.75, 2.0, 2.0]


def test_a_bar_never_goes_beyond_its_end(places):
    with progress("A"), phase("Gram matrix"):
        list(passing(range(6), 3))
    assert max(places) == 1.0


@pytest.fixture
def clock(plant):
    """Return a list whose last entry is the time."""
    now = [0.0]
    plant("clock of the lines", lambda: now[-1])
    return now


def test_lines_come_once_a_minute(clock, capsys):
    with progress("A"):
        for step in steps("gradients", 500):
            clock.append(step)  # a second each
            _progress._shown.get()._bar.refresh()
    lines = capsys.readouterr().err.split("\n")
    assert lines.pop() == ""
    assert len(lines) == 8
    pattern = r"A, gradients: step \d+ of 500, \d\d:\d\d gone, (\?|\d\d:\d\d) left"
    assert all(re.fullmatch(pattern, line) for line in lines)


def test_lines_of_a_phase_are_per_cent(plant, capsys):
    plant("seconds between lines", 0.0)
    with progress("A"), phase("Gram matrix"):
        for _ in passing(range(4), 4):
            _progress._shown.get()._bar.refresh()
    err = capsys.readouterr().err
    assert "A, Gram matrix: 25 %, " in err
    assert "\r" not in err


def test_quick_work_prints_no_line(capsys):
    with progress("A"):
        list(steps("gradients", 5))
    assert capsys.readouterr().err == ""


def test_a_fit_within_another_is_hidden(capsys, plant):
    plant("seconds between lines", 0.0)
    with progress("A"):
        with hidden():
            list(steps("gradients", 5))
        assert capsys.readouterr().err == ""


@pytest.mark.parametrize("cls", [DPFC, DPLeastSquares, DPNewton])
def test_a_fit_shows_its_phases_and_no_number_of_records(cls, plant, capsys):
    """All but the cost, which is public, is the same for another number of rows."""
    plant("seconds between lines", 0.0)
    told = []
    for n in (2371, 1129):
        X = np.eye(7)[np.arange(n) % 7]
        cls(classes=range(7), verbose=1).fit(X, np.arange(n) % 7)
        err = capsys.readouterr().err
        assert str(n) not in err
        told.append(set(re.findall(r"^(\w+, [\w ]+):", err, re.M)))
    assert told[0] == told[1]
    assert f"{cls.__name__}, mean of the features" in told[0]


@pytest.fixture
def rows():
    return np.eye(4)[np.arange(40) % 4], np.arange(40) % 4


def test_a_fit_tells_what_it_leaves_of_a_ledger(rows, tmp_path, capsys):
    ledger = PrivacyLedger(tmp_path / "a", dataset="a", epsilon=3.0, delta=1e-5)
    clf = DPLeastSquares(epsilon=1.0, classes=range(4), ledger=ledger, verbose=1)
    capsys.readouterr()  # that a budget was created
    clf.fit(*rows)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(
        "DPLeastSquares: epsilon = 1 at delta = 1e-05 for 1 x feature_mean + 1 x gram "
        "+ 1 x class_sums; to be charged to 'a', which then has epsilon = 2."
    )
    left = float(re.search(r"epsilon = ([\d.]+) left of epsilon = 3$", line)[1])
    assert left <= ledger.remaining.epsilon < left + 1e-4


class Refusing(io.StringIO):
    """A stderr that is full, or whose reader or terminal is gone."""

    def write(self, text):
        raise self.error

    def flush(self):
        self.write("")


def refusing(error):
    stderr = Refusing()
    stderr.error = error
    return stderr


def closed():
    stderr = io.StringIO()
    stderr.close()
    return stderr


@pytest.mark.parametrize(
    "stderr",
    [
        refusing(OSError(errno.ENOSPC, "cannot be written")),
        refusing(OSError(errno.EPIPE, "cannot be written")),
        refusing(OSError(errno.EIO, "cannot be written")),
        refusing(RuntimeError("of another package")),
        closed(),
        None,
    ],
    ids=["full", "pipe", "terminal", "other", "closed", "none"],
)
@pytest.mark.parametrize("where", ["terminal", "file", "notebook"])
def test_a_fit_is_not_lost_with_its_stderr(
    rows, tmp_path, monkeypatch, plant, stderr, where
):
    """It is charged before the first line is shown; a notebook may have no widgets."""
    path = tmp_path / "ledger"
    ledger = PrivacyLedger(path, dataset="d", epsilon=3.0, delta=1e-5)
    if isinstance(stderr, Refusing):
        stderr.isatty = lambda: where == "terminal"
    if where == "notebook":
        monkeypatch.setitem(sys.modules, "ipykernel", ModuleType("ipykernel"))
    plant("seconds between lines", 0.0)
    monkeypatch.setattr(sys, "stderr", stderr)
    X, y = rows
    DPNewton(classes=range(4), n_iter=2, ledger=ledger, verbose=1).fit(X, y)
    assert [charge.status for charge in ledger.history] == ["fitted"]


def test_a_fit_without_privacy_tells_so(rows, capsys):
    DPLeastSquares(epsilon=np.inf, classes=range(4), verbose=1).fit(*rows)
    assert "epsilon = inf at delta" in capsys.readouterr().err
