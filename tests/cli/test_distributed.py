"""``privfeat fit --distributed`` under a launcher: here, what SLURM tells its tasks."""

import os
import subprocess
import sys

from privfeat import persistence
from tests.ports import held_port

FIT = ("fit", "--estimator", "DPLeastSquares", "--epsilon", "20", "--quiet")
COMMAND = (
    sys.executable,
    "-c",
    "from privfeat.cli import main; raise SystemExit(main())",
)


def start(features, out, port, rank, size):
    slurm = {
        "SLURM_JOB_ID": "4242",
        "SLURM_STEP_NODELIST": "localhost",
        "SLURM_NTASKS": str(size),
        "SLURM_PROCID": str(rank),
        "SLURM_LOCALID": str(rank),
    }
    environment = {**os.environ, **slurm, "JAX_PLATFORMS": "cpu"}
    environment["JAX_COORDINATOR_PORT"] = port
    arguments = [*FIT, "--train", features, "--out", out, "--distributed"]
    return subprocess.Popen(
        [*COMMAND, *arguments], env=environment, stderr=subprocess.PIPE, text=True
    )


def test_fit_of_several_processes_saves_one_model(features, tmp_path):
    out = tmp_path / "model"
    with held_port() as port:
        started = [start(features, out, str(port), rank, 2) for rank in range(2)]
        errors = [process.communicate(timeout=900)[1] for process in started]
    assert not any(process.returncode for process in started), errors
    assert persistence.load(out).privacy_.epsilon <= 20


def test_fit_names_the_remedy_without_a_launcher(features, tmp_path):
    arguments = [*FIT, "--train", features, "--out", tmp_path / "m", "--distributed"]
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True)
    assert done.returncode != 0
    assert "--distributed must run under a launcher" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "m").exists()
