"""Scripts that run as several processes of one job."""

import os
import subprocess
import sys
from pathlib import Path

import privfeat
from tests.ports import held_port

ROOT = Path(privfeat.__file__).parents[1]


def run_job(script, folder, case, *, size=2, flags=""):
    """Run ``script FOLDER INDEX SIZE PORT CASE`` in each; return statuses and errors.

    All are killed if one does not end.
    """
    # Those of this process as well: with more threads, float32 sums round otherwise.
    flags = f"{os.environ.get('XLA_FLAGS', '')} {flags}".strip()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "XLA_FLAGS": flags}
    environment["JAX_PLATFORMS"] = "cpu"
    with held_port() as port:
        started = [
            subprocess.Popen(
                [sys.executable, script, *map(str, (folder, index, size, port, case))],
                env=environment,
                stderr=subprocess.PIPE,
                text=True,
            )
            for index in range(size)
        ]
        try:
            errors = [process.communicate(timeout=900)[1] for process in started]
        finally:
            for process in started:
                process.kill()
    return [process.returncode for process in started], errors
