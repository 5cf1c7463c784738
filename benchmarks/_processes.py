"""Measurements in fresh processes, each with its own peak of memory."""

import json
import os
import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[1]


class Failed(RuntimeError):
    """A process ended without a result."""


def run_fresh(
    script: str | Path,
    arguments: Sequence[Any] = (),
    *,
    python: str | Path = sys.executable,
    environment: dict[str, str] | None = None,
    limit: float | None = None,
) -> dict[str, Any]:
    """Run a script (or ``-c``) and return the JSON object in its last line of output.

    Raises
    ------
    Failed
        If it fails, prints no such line, or takes more than ``limit`` seconds.
    """
    # the script's folder is on its path already; another interpreter lacks privfeat
    paths = [str(REPOSITORY), *filter(None, [os.environ.get("PYTHONPATH")])]
    given = {"PYTHONPATH": os.pathsep.join(paths)} | (environment or {})
    command = [str(part) for part in (python, script, *arguments)]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=limit,
            env=os.environ | given,
        )
    except subprocess.TimeoutExpired as error:
        raise Failed(f"stopped after {limit:g} s") from error
    except OSError as error:
        raise Failed(str(error)) from error
    lines = done.stdout.strip().splitlines()
    try:
        if done.returncode == 0:
            return dict(json.loads(lines[-1]))
    except (IndexError, TypeError, ValueError):
        pass
    last = (done.stderr.strip().splitlines() or ["no result"])[-1]
    raise Failed(f"exit status {done.returncode}: {last}")


_peaks = [0.0]


def peak_mib() -> float:
    """Return the largest resident memory of this process so far; it never falls.

    Linux counts pages in batches, so that of two readings the second may be smaller.
    """
    _peaks.append(max(_peaks.pop(), _read_peak()))
    return _peaks[0]


def _read_peak() -> float:
    status = Path("/proc/self/status")
    if status.exists():
        # ru_maxrss of a child starts at the peak of its parent, VmHWM at zero
        for line in status.read_text(encoding="utf-8").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 2**10
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)
