"""Every public name can be imported where Python has no ``fcntl``, as on Windows."""

import subprocess
import sys

import pytest

from privfeat import __all__ as names

CODE = """
import importlib, sys
sys.modules["fcntl"] = None
for package in "privfeat privfeat.networks privfeat.data privfeat_extract".split():
    module = importlib.import_module(package)
    print(len([getattr(module, name) for name in module.__all__]))
for package in ("privfeat", "privfeat_extract"):
    try:
        importlib.import_module(package + ".cli").main(["--help"])
    except SystemExit as end:
        assert not end.code
"""


@pytest.mark.slow
def test_public_names_and_commands_need_no_fcntl():
    """In one process, since most of its time goes into imports."""
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    counts = done.stdout.split()[:4]
    assert counts[0] == str(len(names))
    assert all(int(count) for count in counts)
    assert "usage: privfeat " in done.stdout
    assert "usage: privfeat-extract" in done.stdout
