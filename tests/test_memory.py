"""What a process may use: it must not be told that the whole machine is its own."""

import os
import resource
import subprocess
import sys

import pytest

from privfeat._memory import memory_bytes

FILES = {"": "memory.max", "memory": "memory.limit_in_bytes"}


@pytest.fixture
def groups(plant, tmp_path):
    """Return a function that limits a control group; no limit holds here yet."""
    plant("groups of processes", (tmp_path, tmp_path / "own"))
    (tmp_path / "own").write_text("0::/a/b\n7:cpu,memory:/c\n")

    def limit(version, group, most):
        folder = tmp_path / version / group
        folder.mkdir(parents=True, exist_ok=True)
        (folder / FILES[version]).write_text(f"{most}\n")

    return limit


def test_memory_is_that_of_the_machine(groups):
    assert 2**28 < memory_bytes() < float("inf")


@pytest.mark.parametrize("version", FILES)
@pytest.mark.parametrize("group", ["", "a", "a/b", "c"])
def test_memory_is_what_a_group_and_those_around_it_may_take(groups, version, group):
    groups(version, group, 4096)
    assert memory_bytes() == 4096.0


def test_a_group_of_others_and_one_without_a_limit_change_nothing(groups):
    before = memory_bytes()
    groups("", "other", 4096)
    groups("", "a", "max")
    assert memory_bytes() == before


@pytest.mark.parametrize("limit", ["RLIMIT_AS", "RLIMIT_DATA"])
def test_memory_is_at_most_the_limit_of_the_process(limit):
    most = 2**33
    code = (
        "import resource; from privfeat._memory import *\n"
        f"resource.setrlimit(resource.{limit}, ({most}, {most}))\n"
        f"assert memory_bytes() <= {most}"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert resource.getrlimit(getattr(resource, limit))[0] != most


def test_memory_that_nobody_knows_is_infinite(groups, monkeypatch):
    monkeypatch.delattr(os, "sysconf")
    if resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY:
        assert memory_bytes() == float("inf")
