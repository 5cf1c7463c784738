"""SIGKILL at any file operation of an extraction: complete, or resumable."""

import signal
import subprocess
import sys

import pytest

from privfeat.data import FeatureFileError, open_features

# Counts what is done to files in the folder of the output, and kills itself at one.
CHILD = """
import os, signal, sys
folder, kill_at = sys.argv[1], int(sys.argv[2])
count = 0
def hook(event, arguments):
    global count
    if any(isinstance(a, (str, bytes)) and folder in os.fsdecode(a) for a in arguments):
        count += 1
        if count == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
from privfeat_extract.cli import main
sys.addaudithook(hook)
status = main(sys.argv[3:])
print(count)
sys.exit(status)
"""


def extract(folder, kill_at):
    """Run the command in a process of its own; 30 images of each split."""
    argv = ["--data", "digits", "--model", "scattering", "--limit", "30", "--quiet"]
    command = [sys.executable, "-c", CHILD, str(folder), str(kill_at), *argv]
    return subprocess.run(
        [*command, "--out", str(folder / "out.h5")],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX")
def test_a_killed_extraction_is_complete_or_resumable(tmp_path):
    pytest.importorskip("kymatio")
    (tmp_path / "whole").mkdir()
    whole = extract(tmp_path / "whole", 0)
    assert whole.returncode == 0, whole.stderr
    n_events = int(whole.stdout.splitlines()[-1])
    expected = (tmp_path / "whole" / "out.h5").read_bytes()
    ended = []
    for kill_at in range(1, n_events + 1, max(1, n_events // 12)):
        folder = tmp_path / f"killed-{kill_at}"
        folder.mkdir()
        assert extract(folder, kill_at).returncode == -signal.SIGKILL
        out = folder / "out.h5"
        if out.exists():
            assert out.read_bytes() == expected
            ended.append("complete")
            continue
        with pytest.raises(FeatureFileError):
            open_features(out)
        again = extract(folder, 0)
        assert again.returncode == 0, again.stderr
        assert out.read_bytes() == expected
        ended.append("resumed")
