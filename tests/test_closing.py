"""The last line of `.ci/run`: a run in which nothing was tested is no success."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.conftest import pytest_terminal_summary
from tests.fuzz.conftest import TRIED

PATH = Path(__file__).resolve().parent.parent / ".ci" / "closing.py"


@pytest.fixture(scope="module")
def close():
    spec = spec_from_file_location("closing", PATH)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.close


def test_runs_are_added_up(close):
    log = """
bad inputs tried: 300 passed in all
3 passed, 1 skipped in 2.10s
=========== 4 passed, 2 deselected, 1 warning in 200.00s (0:03:20) ===========
"""
    assert close(log, 210, ["test", "slow"]) == (
        ["==== 7 passed, 1 skipped, 2 deselected in 210.00s ===="],
        True,
    )


@pytest.mark.parametrize(
    ("log", "said"),
    [
        ("1 failed, 3 passed in 2s\n2 passed in 1s", "==== 1 failed, 5 passed in"),
        ("1 passed, 1 error in 2s\n2 passed in 1s", "==== 1 error, 3 passed in"),
        ("2 passed in 1s\nno tests ran in 0.01s", "2 runs of pytest should have ended"),
        ("2 skipped in 1s\n5 skipped in 1s", "NOTHING RAN by make slow: 5 tests"),
        ("", "==== no tests ran in"),
    ],
)
def test_what_is_no_success(close, log, said):
    lines, well = close(log, 3.0, ["test", "slow"])
    assert not well
    assert any(line.startswith(said) for line in lines)


def test_a_run_that_was_skipped_is_named(close):
    lines, well = close("7 passed in 1s\n5 skipped in 1s", 3.0, ["test", "slow"])
    assert well
    assert lines[0] == "NOTHING RAN by make slow: 5 tests were skipped."


def test_every_target_runs():
    script = PATH.with_name("run").read_text().splitlines()
    targets = [line.split()[1] for line in script if line.startswith("run ")]
    assert targets == ["test", "test-slow", "test-postgres", "test-browser"]


def test_counts_of_tried_inputs_are_printed():
    """`make test` ends with them; the hook reads what the fuzz kept of each test."""
    report = SimpleNamespace(
        when="teardown",
        user_properties=[(TRIED, {"refused": 3, "read": 1})],
        nodeid="tests/fuzz/test_x.py::test_x",
    )
    lines = []
    reporter = SimpleNamespace(
        stats={"": [report]},
        section=lambda *_: None,
        write_line=lines.append,
    )
    pytest_terminal_summary(reporter)
    assert lines == ["test_x: 4 (3 refused, 1 read)"]
