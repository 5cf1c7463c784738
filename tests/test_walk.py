"""Fits and extractions stay short: in files visited, and in changes of the file."""

import os
import re
import subprocess
import sys

import pytest

from tests.audited import ROOT

# Files and moves, at most.
LIMITS = {
    "DPFC.fit, 2 steps": (38, 286),
    "DPSGDClassifier.fit, mlp, 2 steps": (44, 300),
    "privfeat-extract, scattering, 8 images": (34, 642),
}


@pytest.mark.slow
def test_no_call_visits_more_files_or_makes_more_moves():
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
    assert "extract/scattering.py" in done.stdout
    for name, limits in LIMITS.items():
        assert all(n <= most for n, most in zip(found[name], limits, strict=True)), name
