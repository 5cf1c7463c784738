"""How a process ends that waits for nobody: here by a stand-in for its last call."""

import atexit
import os
import sys

from privfeat.core.sums import leaving


def test_a_process_that_leaves_says_all_and_fails(monkeypatch):
    """A status of 0 would tell whoever started it that the fit is there."""
    steps = []
    monkeypatch.setattr(atexit, "register", steps.append)
    leaving.leave_at_once()
    (leave,) = steps
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        monkeypatch.setattr(stream, "flush", lambda name=name: steps.append(name))
    with monkeypatch.context() as patch:
        patch.setattr(os, "_exit", lambda status: steps.append(status))
        leave()
    assert sorted(steps[1:3]) == ["stderr", "stdout"]
    assert steps[3:] == [1]
