"""How a process ends that waits for nobody: here by a stand-in for its last call."""

import atexit
import os
import sys
from functools import partial

import pytest

from privfeat.core.sums import leaving


@pytest.mark.parametrize(("given", "status"), [((), 1), ((3,), 3)])
def test_a_process_that_leaves_says_all_and_fails(monkeypatch, given, status):
    """A status of 0 would tell whoever started it that the fit is there."""
    steps = []
    monkeypatch.setattr(atexit, "register", lambda *call: steps.append(partial(*call)))
    leaving.leave_at_once(*given)
    (leave,) = steps
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        monkeypatch.setattr(stream, "flush", lambda name=name: steps.append(name))
    with monkeypatch.context() as patch:
        patch.setattr(os, "_exit", lambda status: steps.append(status))
        leave()
    assert sorted(steps[1:3]) == ["stderr", "stdout"]
    assert steps[3:] == [status]
