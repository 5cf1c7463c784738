"""Files and folders are small enough to be read at once."""

from collections import Counter

import pytest

from tests.audited import CORE, ROOT

FOLDERS = ("privfeat", "extract", "tests", "benchmarks")


@pytest.mark.parametrize("folder", FOLDERS)
def test_files_have_fewer_than_300_lines(folder):
    files = sorted((ROOT / folder).rglob("*.py"))
    assert files
    long = {
        str(file.relative_to(ROOT)): n for file in files if (n := length(file)) > 299
    }
    assert long == {}


def test_files_of_the_core_have_fewer_than_200_lines():
    files = {*CORE.rglob("*.py")}
    assert {str(file) for file in files if length(file) > 199} == set()


def test_folders_of_the_package_have_at_most_14_files():
    counts = Counter(file.parent for file in (ROOT / "privfeat").rglob("*.py"))
    assert {str(folder): n for folder, n in counts.items() if n > 14} == {}


def length(file):
    return len(file.read_text(encoding="utf-8").splitlines())
