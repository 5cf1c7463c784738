"""What commands show on a terminal, and what they write into a log."""

import os
import re
import subprocess
import sys

import pytest

from tests.cli.tiny import fit_arguments


def on_a_terminal(*argv):
    """Return what a process writes to a terminal that does not say its size."""
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, *map(str, argv)], stdout=theirs, stderr=theirs, stdin=theirs
    ) as process:
        os.close(theirs)
        written = b""
        while True:
            try:
                part = os.read(ours, 2**16)
            except OSError:  # the process has closed it
                break
            if not part:
                break
            written += part
    os.close(ours)
    assert process.returncode == 0, written
    return written.decode()


def test_a_terminal_gets_bars():
    code = (
        "from privfeat._progress import *\n"
        "with progress('A'):\n"
        "  with phase('Gram matrix'): list(passing(range(9), 9))\n"
        "  list(steps('gradients', 3))\n"
    )
    written = on_a_terminal("-c", code)
    assert re.search(r"\rA, Gram matrix:   0%\|.*\| \[00:00<\?\]", written)
    assert re.search(r"\rA, gradients: 3/3 steps \|.*\| \[00:00<00:00\]\r?\n", written)


@pytest.mark.slow
def test_fit_shows_bars_on_a_terminal_and_one_line_in_a_pipe(features, tmp_path):
    command = ("-c", "from privfeat.cli import main; raise SystemExit(main())")
    arguments = [*map(str, fit_arguments(features, tmp_path / "a"))]
    written = on_a_terminal(*command, *arguments)
    assert "DPLeastSquares: epsilon = " in written
    for shown in ("mean of the features", "Gram matrix", "inverse of the Gram matrix"):
        assert f"\rDPLeastSquares, {shown}:   0%|" in written
    arguments = [*map(str, fit_arguments(features, tmp_path / "b"))]
    done = subprocess.run(
        [sys.executable, *command, *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    (line,) = done.stderr.splitlines()
    assert line.startswith("DPLeastSquares: epsilon = ")
