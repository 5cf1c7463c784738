"""Every public name can be imported where Python has no ``fcntl``, as on Windows."""

import importlib
import subprocess
import sys

import pytest

HIDDEN = """
import importlib, sys
sys.modules["fcntl"] = None
module = importlib.import_module(sys.argv[1])
for name in module.__all__:
    getattr(module, name)
"""
COMMANDS = """
import sys
sys.modules["fcntl"] = None
from {}.cli import main
main(["--help"])
"""


def run(code: str, *arguments: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "package", ["privfeat", "privfeat.networks", "privfeat.data", "privfeat_extract"]
)
def test_public_names_are_imported_without_fcntl(package):
    assert importlib.import_module(package).__all__
    run(HIDDEN, package)


@pytest.mark.parametrize("package", ["privfeat", "privfeat_extract"])
def test_commands_start_without_fcntl(package):
    run(COMMANDS.format(package))
