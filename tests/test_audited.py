"""One list of audited files: whole, true, and what the tests read."""

import ast
import json
import re

from tests import mutation
from tests.audited import CORE, ROOT, audited_files, core_files, files_beyond, stages
from tests.rules import DRAWING, FROM_NOISE_AND_LEDGER, NOT_AUDITED

# It shows exact sums to their owner.
NOT_RELEASED = {"privfeat/audit/recorder.py"}


def test_every_file_of_the_core_is_listed_once():
    found = sorted(CORE.rglob("*.py"))
    assert sorted(file for file in audited_files() if CORE in file.parents) == found


def test_every_listed_file_exists():
    assert len(files_beyond()) > 30
    assert [file for file in files_beyond() if not file.is_file()] == []


def test_every_module_of_the_core_has_tests_for_its_mutants():
    """``make mutation`` runs these files on each mutant of the module."""
    files = {
        file
        for module in mutation.modules_of_the_core()
        for file in mutation.tests_of(module)
    }
    assert len(files) > 100
    assert [file for file in sorted(files) if not file.is_file()] == []


def test_a_folder_of_the_core_has_at_most_ten_files():
    assert len(stages()) == 7
    folders = {file.parent for file in core_files()} - {CORE}
    assert folders > {CORE / stage for stage in stages()}
    for folder in folders:
        files = set(folder.glob("*.py")) - {folder / "__init__.py"}
        assert 1 < len(files) <= 10, folder


def imported(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
            yield node.module


def test_whoever_draws_noise_or_sums_records_is_listed():
    """A file that makes an exact sum, or a mechanism, decides what a statement says."""
    deciding = {
        "privfeat.core.sums.totals.ExactSum",
        "privfeat.core.noise.gaussian_mechanism.GaussianMechanism",
        "privfeat.core.noise.draws",
        "privfeat.core.noise.discrete",
        "privfeat.core.private_fit.private_fit",
        "privfeat.core.private_fit.private_selection",
    }
    listed = {*audited_files()}
    unlisted = {
        file.relative_to(ROOT).as_posix()
        for file in (ROOT / "privfeat").rglob("*.py")
        if file not in listed and deciding & set(imported(file))
    }
    assert unlisted == NOT_RELEASED


def test_no_audited_file_goes_around_the_core():
    """Of its noise and its ledger they use what a fit hands them, and nothing else."""
    rooms = ("privfeat.core.noise.", "privfeat.core.ledger.")
    found, drawing = set(), set()
    for file in files_beyond():
        # `from a import b` gives `a.b` and `a`, of which the first is used
        names = {name for name in imported(file) if name.startswith(rooms)}
        names -= {name.rpartition(".")[0] for name in names}
        if any(name.startswith("privfeat.core.noise.draws") for name in names):
            drawing.add(file.relative_to(ROOT).as_posix())
        found |= {n for n in names if not n.startswith("privfeat.core.noise.draws")}
    assert found == FROM_NOISE_AND_LEDGER
    assert drawing == DRAWING


def test_what_audited_files_use_is_audited_or_need_not_be():
    """A new helper is listed for auditors, or in ``NOT_AUDITED``: somebody decides."""
    used = {
        file
        for name in {name for path in audited_files() for name in imported(path)}
        if name.startswith("privfeat.")
        for place in [ROOT.joinpath(*name.split("."))]
        for file in (place.with_suffix(".py"), place / "__init__.py")
        if file.is_file() and file.read_text().count("\n") > 1
    }
    unlisted = used - {*audited_files()}
    assert {file.relative_to(ROOT).as_posix() for file in unlisted} == NOT_AUDITED


def test_every_accepted_mutant_is_of_a_line_that_is_there():
    """A line that is gone would accept a change of another that reads the same."""
    accepted = json.loads((ROOT / "tests" / "accepted_mutants.json").read_text())
    for module, changes in accepted.items():
        source = CORE.joinpath(*module.split(".")).with_suffix(".py").read_text()
        written = " ".join(line.strip() for line in source.splitlines())
        for change in changes:
            assert change.split(" => ")[0] in written, module


def test_what_coverage_leaves_out_is_there():
    """The files had moved: without a server `make coverage` could not pass."""
    (pattern,) = re.findall(
        r'left_out="(privfeat.*?)"', (ROOT / "Makefile").read_text()
    )
    assert {file.name for file in ROOT.glob(pattern)} == {
        "postgres_store.py",
        "postgres_tables.py",
    }
