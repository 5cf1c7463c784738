"""The places that repeat a version, a dependency or a package list agree."""

import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import privfeat
from privfeat._version import __version__

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def pins():
    """Map each name in constraints.txt to its exact version."""
    found = {}
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            name, version = line.split("==")
            found[canonicalize_name(name)] = version
    return found


def all_requirements(project):
    """Return the dependencies and those of every extra."""
    groups = [project["project"]["dependencies"]]
    groups += project["project"]["optional-dependencies"].values()
    return [Requirement(line) for group in groups for line in group]


def test_package_reports_its_version():
    assert privfeat.__version__ == __version__


def test_installed_distribution_has_the_version_of_the_source():
    assert metadata.version("privfeat") == __version__


def test_citation_has_the_version_of_the_package():
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.findall(r"^version: *(\S+)$", text, flags=re.MULTILINE) == [__version__]


def test_changelog_starts_with_the_version_of_the_package():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.findall(r"^## \[(\d[^\]]*)\]", text, flags=re.MULTILINE)
    assert versions[0] == __version__


def test_every_dependency_is_pinned_inside_its_range(project, pins):
    wrong = [
        str(requirement)
        for requirement in all_requirements(project)
        if not requirement.specifier.contains(
            pins.get(canonicalize_name(requirement.name), "0")
        )
    ]
    assert wrong == []


def test_installed_dependencies_are_the_pinned_ones(project, pins):
    """A result is worth little when it came from other versions than the pinned."""
    names = {
        canonicalize_name(requirement.name)
        for requirement in all_requirements(project)
        if "gpu" not in requirement.extras
    }
    wrong = {}
    for name in sorted(names):
        try:
            installed = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue  # an extra that is not installed
        if installed.split("+")[0] != pins[name]:
            wrong[name] = f"{installed}, pinned {pins[name]}"
    assert wrong == {}


def test_every_package_is_listed_for_installation(project):
    on_disk = set()
    for top, name in (("privfeat", "privfeat"), ("extract", "privfeat_extract")):
        for init in (ROOT / top).rglob("__init__.py"):
            below = init.parent.relative_to(ROOT / top).parts
            on_disk.add(".".join((name, *below)))
    assert set(project["tool"]["setuptools"]["packages"]) == on_disk
