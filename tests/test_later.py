"""Packages that take seconds to import are imported by the tests that use them."""

import re
from pathlib import Path

import pytest

from tests.later import Later

AT_ONCE = re.compile(r'^(import|from) (torch|timm)|^\S.*importorskip\("(torch|timm)')


def test_no_file_imports_torch_while_tests_are_collected():
    files = Path(__file__).parent.rglob("*.py")
    lines = (line for file in files for line in file.read_text("utf-8").splitlines())
    assert [line for line in lines if AT_ONCE.match(line)] == []


def test_a_package_is_looked_for_when_it_is_used():
    missing, there = Later("privfeat_has_no_such_package"), Later("math")
    assert there.floor(1.5) == 1
    assert not hasattr(missing, "__wrapped__")
    assert not hasattr(missing, "pytestmark")
    with pytest.raises(pytest.skip.Exception, match="no_such_package"):
        missing.load()
