"""``privfeat fit --distributed`` under a launcher: here, what SLURM tells its tasks."""

import os
import signal
import socket
import subprocess
import sys
import time

import pytest

from privfeat import PrivacyLedger, persistence
from privfeat.cli import main
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


@pytest.mark.slow
def test_fit_of_several_processes_saves_one_model(features, tmp_path):
    out = tmp_path / "model"
    with held_port() as port:
        started = [start(features, out, str(port), rank, 2) for rank in range(2)]
        errors = [process.communicate(timeout=900)[1] for process in started]
    assert not any(process.returncode for process in started), errors
    assert persistence.load(out).privacy_.epsilon <= 20


def two_shells(features, out, port, index, *options):
    address = ("--coordinator", f"localhost:{port}", "--processes", "2")
    place = ("--process", str(index), "--train", features, "--out", out)
    return subprocess.Popen(
        [*COMMAND, *FIT, "--distributed", *address, *place, *options],
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
def test_fit_of_two_plain_shells_saves_one_model(features, tmp_path):
    out = tmp_path / "model"
    with held_port() as port:
        started = [two_shells(features, out, port, index) for index in range(2)]
        errors = [process.communicate(timeout=900)[1] for process in started]
    assert not any(process.returncode for process in started), errors
    assert persistence.load(out).privacy_.epsilon <= 20


@pytest.mark.slow
def test_train_of_two_plain_shells_saves_one_model(tmp_path):
    Image = pytest.importorskip("PIL.Image")
    for place, name in enumerate(["a", "b"]):
        (tmp_path / "images" / name).mkdir(parents=True)
        for i in range(12):
            image = Image.new("L", (8, 8), 20 * i + place)
            image.save(tmp_path / "images" / name / f"{i}.png")
    words = "--model mlp --image-size 8 --grey --noise-multiplier 1 --batch 24"
    words += " --set n_iter=2 --set microbatch_size=4 --quiet --distributed"
    place = ["--data", tmp_path / "images", "--out", tmp_path / "model"]
    with held_port() as port:
        job = ["--coordinator", f"localhost:{port}", "--processes", "2"]
        started = [
            subprocess.Popen(
                [*COMMAND, "train", *place, *words.split(), *job, "--process", str(i)],
                env={**os.environ, "JAX_PLATFORMS": "cpu"},
                stderr=subprocess.PIPE,
                text=True,
            )
            for i in range(2)
        ]
        errors = [process.communicate(timeout=900)[1] for process in started]
    assert not any(process.returncode for process in started), errors
    (release,) = persistence.load(tmp_path / "model").privacy_.releases
    assert release.count == 2


@pytest.mark.slow
def test_a_process_that_fails_ends_the_other_with_a_sentence(features, tmp_path):
    """The second cannot read its file, and does not wait for the first either."""
    out = tmp_path / "model"
    with held_port() as port:
        first = two_shells(features, out, port, 0)
        second = two_shells(tmp_path / "none.h5", out, port, 1)
        errors = [process.communicate(timeout=900)[1] for process in (first, second)]
    assert [first.returncode, second.returncode] == [1, 1], errors
    assert "process 1 ended or cannot be reached" in errors[0]
    assert "none.h5" in errors[1]
    assert not any("Traceback" in error or "Gloo" in error for error in errors)
    assert not (out / "model.json").exists()


@pytest.mark.slow
def test_a_spent_budget_ends_every_process_with_status_3(features, tmp_path):
    """One of them ended with 1, which a supervisor may answer with another try."""
    ledger = PrivacyLedger(tmp_path / "l", dataset="a", epsilon=0.5, delta=1e-5)
    whose = ("--ledger", tmp_path / "l", "--dataset", "a")
    with held_port() as port:
        started = [
            two_shells(features, tmp_path / "model", port, index, *whose)
            for index in range(2)
        ]
        errors = [process.communicate(timeout=900)[1] for process in started]
    assert [process.returncode for process in started] == [3, 3], errors
    for error in errors:
        assert error.splitlines()[-1].endswith("Nothing was charged.")
        assert "Terminating process" not in error
    assert ledger.history == []


@pytest.mark.slow
@pytest.mark.parametrize("ended", [0, 1])
def test_sigterm_ends_a_process_and_then_the_other(features, tmp_path, ended):
    """JAX's notifier took the signal, and both went on to their end."""
    ledger = PrivacyLedger(tmp_path / "l", dataset="a", epsilon=30, delta=1e-5)
    long = ("--estimator", "DPFC", "--set", "n_iter=100000")
    whose = ("--ledger", tmp_path / "l", "--dataset", "a", *long)
    with held_port() as port:
        started = [
            two_shells(features, tmp_path / "model", port, index, *whose)
            for index in range(2)
        ]
        while not ledger.history and all(each.poll() is None for each in started):
            time.sleep(0.1)
        time.sleep(1.0)  # somewhere among its steps
        started[ended].send_signal(signal.SIGTERM)
        errors = [process.communicate(timeout=300)[1] for process in started]
    assert started[ended].returncode == 143, errors
    assert "privfeat: interrupted. The fit was charged" in errors[ended]
    # without the first process JAX may abort the other (SIGABRT) before it can tell
    assert started[1 - ended].returncode in ((1, -6) if ended == 0 else (1,)), errors
    assert len(ledger.history) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--coordinator", "localhost:1"], "must be given together"),
        (["--distributed", "--processes", "2", "--process", "0"], "given together"),
        (
            "--distributed --coordinator a:1 --processes 2 --process 2".split(),
            "--process must be in",
        ),
        (
            "--distributed --coordinator a --processes 2 --process 0".split(),
            "--coordinator must be HOST:PORT, such as localhost:9911, got 'a'.",
        ),
        (
            "--distributed --coordinator a:b --processes 2 --process 0".split(),
            "--coordinator must be HOST:PORT",
        ),
    ],
)
def test_fit_refuses_half_an_address(capsys, options, message):
    arguments = [*FIT, "--train", "none.h5", "--out", "none", *options]
    assert main(arguments) == 1
    assert message in capsys.readouterr().err


@pytest.mark.slow
def test_fit_names_the_remedy_without_a_launcher(features, tmp_path):
    arguments = [*FIT, "--train", features, "--out", tmp_path / "m", "--distributed"]
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True)
    assert done.returncode != 0
    assert "--distributed must run under a launcher" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "m").exists()


@pytest.mark.slow
def test_a_port_in_use_is_refused_in_words(features, tmp_path):
    """JAX ended by a segmentation fault."""
    with socket.socket() as other:
        other.bind(("localhost", 0))
        other.listen()
        first = two_shells(features, tmp_path / "m", other.getsockname()[1], 0)
        error = first.communicate(timeout=900)[1]
    assert first.returncode == 1
    assert "must have a free port" in error


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_process_that_waits_for_the_others(features, tmp_path, number):
    """It waits in C, where Python answers no signal."""
    with held_port() as port:
        first = two_shells(features, tmp_path / "m", port, 0)
        until = time.monotonic() + 600
        while not listens(port) and time.monotonic() < until:
            time.sleep(0.1)
        time.sleep(1.0)
        first.send_signal(number)
        first.communicate(timeout=100)
    assert first.returncode == -number


def listens(port):
    with socket.socket() as found:
        return found.connect_ex(("localhost", port)) == 0


_LEAVING = """
import atexit
import jax
from privfeat.distributed import initialize

def tell():  # runs before JAX closes the connections of its sums
    print(jax.distributed.is_initialized())

atexit.register(tell)
initialize(coordinator_address="localhost:{port}", num_processes=1, process_id=0)
print(jax.distributed.is_initialized())
"""


@pytest.mark.slow
def test_a_process_waits_for_the_others_before_its_connections_close():
    """One that still read the last sum lost it now and then: it ended with status 1."""
    with held_port() as port:
        ended = subprocess.run(
            [sys.executable, "-c", _LEAVING.format(port=port)],
            env={**os.environ, "JAX_PLATFORMS": "cpu"},
            stdout=subprocess.PIPE,
            text=True,
            timeout=900,
        )
    assert ended.stdout.split() == ["True", "False"]
    assert ended.returncode == 0
