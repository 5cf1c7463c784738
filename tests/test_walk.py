"""A fit stays short: how many files it visits, and how often it changes the file."""

import os
import re
import subprocess
import sys

import pytest

from tests.audited import ROOT

# Files and moves, at most.
LIMITS = {
    "DPFC.fit, 2 steps": (39, 298),
    "DPSGDClassifier.fit, mlp, 2 steps": (43, 298),
}


@pytest.mark.slow
def test_a_fit_visits_no_more_files_and_makes_no_more_moves():
    done = subprocess.run(
        [sys.executable, "tests/walk.py"],
        cwd=ROOT,
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        check=True,
    )
    line = re.compile(r"^(\S.*): (\d+) files, \d+ functions, (\d+) moves$", re.M)
    found = {
        name: tuple(map(int, counts)) for name, *counts in line.findall(done.stdout)
    }
    assert found.keys() == LIMITS.keys()
    for name, limits in LIMITS.items():
        assert all(n <= most for n, most in zip(found[name], limits, strict=True)), name
