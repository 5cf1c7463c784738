"""The README as a user runs it: each code block of each section, in a fresh folder.

A section may build on "First fit" and on nothing else.
"""

import re
import shlex
import shutil
import sys
import tomllib
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import jax
import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_estimator

from privfeat import BudgetExceededError, PrivacyLedger, audit
from privfeat.cli import main as privfeat
from privfeat.core.accounting.plan import Query

README = Path(__file__).resolve().parent.parent / "README.md"
FIRST = "First fit"
# Beginnings of the commands that no test can run here, and what they need.
NOT_RUN = {
    "make quickstart": "an environment of its own",
    "source .venv/bin/activate": "that environment",
    "privfeat-extract --data hfds/": "the Hugging Face hub",
    "privfeat-extract overlap private.h5": "your files: tests/extract/test_overlap.py",
    "torchrun": "8 GPUs: tests/extract/test_ranks.py",
    "srun": "a launcher: tests/linear/test_processes.py",
    "privfeat fit --distributed": "two hosts: tests/cli/test_distributed.py",
    "privfeat train --data images/": "your images: tests/cli/test_train.py",
    "python benchmarks/reproduce_tables.py": "hours: tests/benchmarks",
}


@dataclass(frozen=True)
class Block:
    """A fenced block of code, and the line of the README on which it begins."""

    section: str
    language: str
    line: int
    code: str


def blocks_of(text):
    """Return all fenced blocks; a fence that says no language has the language ''."""
    blocks, section, start = [], "", None
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if start is not None:
            if line.startswith("```"):
                code = "\n".join(lines[start + 1 : number])
                blocks.append(Block(section, lines[start][3:], start + 1, code))
                start = None
        elif line.startswith("```"):
            start = number
        elif line.startswith("## "):
            section = line[3:]
    assert start is None, "a fence is left open"
    return blocks


TEXT = README.read_text()
BLOCKS = blocks_of(TEXT)
SECTIONS = dict.fromkeys(block.section for block in BLOCKS if block.section != FIRST)
SLOW = {"Whole networks"}


def commands_of(block):
    return [line for line in block.code.splitlines() if line.strip()]


def is_run(command):
    return not any(command.startswith(beginning) for beginning in NOT_RUN)


def run_command(command):
    from privfeat_extract.cli import main as privfeat_extract

    program, *arguments = shlex.split(command, comments=True)
    run = {"privfeat": privfeat, "privfeat-extract": privfeat_extract}[program]
    assert run(arguments) == 0, command


def run_section(section, names):
    """Run the blocks of a section in the working directory, names as they stand."""
    for block in BLOCKS:
        if block.section != section:
            continue
        if block.language == "sh":
            for command in filter(is_run, commands_of(block)):
                run_command(command)
        else:
            # so that a traceback shows the line of the README
            code = "\n" * block.line + block.code
            exec(compile(code, str(README), "exec"), names)


@pytest.fixture(scope="module")
def first_fit(tmp_path_factory):
    """Return the folder and the names that "First fit" leaves behind."""
    pytest.importorskip("kymatio")
    folder, names = tmp_path_factory.mktemp("readme"), {"__name__": "readme"}
    (folder / "quickstart").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        # what `make quickstart` does
        run_command(
            "privfeat-extract --data digits --model scattering "
            "--out quickstart/digits.h5"
        )
        run_section(FIRST, names)
    return folder, names


@pytest.fixture
def names(first_fit, tmp_path, monkeypatch):
    """Return a copy of those names, in a copy of that folder."""
    folder, names = first_fit
    shutil.copytree(folder, tmp_path / "readme")
    monkeypatch.chdir(tmp_path / "readme")
    return dict(names)


def test_first_fit_has_the_accuracy_it_states(first_fit):
    folder, names = first_fit
    assert 0.8 < names["clf"].score(names["test"].X, names["test"].y) < 0.97
    assert names["clf"].privacy_.epsilon <= 1.0
    assert (folder / "predictions.csv").is_file()


@pytest.mark.parametrize(
    "section",
    [
        pytest.param(name, marks=pytest.mark.slow if name in SLOW else ())
        for name in SECTIONS
    ],
)
def test_section_runs(section, names, monkeypatch):
    if section == "Whole networks":
        pytest.importorskip("flax")
    if section in {"How it is audited", "Looking at a fit"}:
        pytest.importorskip("jax_privacy")
    # One process has no others to find; several: tests/linear/test_processes.py
    monkeypatch.setattr(jax.distributed, "initialize", lambda **_: None)
    run_section(section, names)


def test_ledger_has_left_what_is_stated(names):
    run_section("A ledger for a team", names)
    assert names["left"].epsilon == pytest.approx(2.76, abs=0.005)
    clf, train, left = (names[name] for name in ("clf", "train", "left"))
    clf.set_params(epsilon=left.epsilon + 0.01)
    with pytest.raises(BudgetExceededError):
        clf.fit(train.X, train.y)
    clf.set_params(epsilon=left.epsilon).fit(train.X, train.y)


def test_every_block_is_python_or_commands():
    assert {block.language for block in BLOCKS} == {"python", "sh"}


def test_what_is_not_run_is_in_the_readme():
    commands = [
        command
        for block in BLOCKS
        if block.language == "sh"
        for command in commands_of(block)
    ]
    for beginning in NOT_RUN:
        assert any(command.startswith(beginning) for command in commands), beginning


def test_contents_lists_every_section():
    headings = re.findall(r"^## (.*)$", TEXT, re.MULTILINE)
    anchors = [
        "#" + re.sub(r"[^\w -]", "", heading).replace(" ", "-").lower()
        for heading in headings
    ]
    contents = TEXT[: TEXT.index("\n## ")]
    listed = re.findall(r"\[([^]]*)\]\(([^)]*)\)", contents)
    assert listed == list(zip(headings, anchors, strict=True))
    assert set(re.findall(r"\]\((#[^)]*)\)", TEXT)) <= set(anchors)


def test_files_that_are_named_exist():
    named = re.findall(r"`((?:privfeat|tests|benchmarks|extract)/[\w./]*)`", TEXT)
    assert named
    for name in named:
        assert (README.parent / name).exists(), name


def test_targets_that_are_named_exist():
    makefile = (README.parent / "Makefile").read_text()
    targets = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)[1].split()
    named = re.findall(r"(?:`|^)make ([\w-]+)", TEXT, re.MULTILINE)
    assert named
    assert set(named) <= set(targets)


def test_extras_that_are_named_exist():
    with (README.parent / "pyproject.toml").open("rb") as file:
        extras = tomllib.load(file)["project"]["optional-dependencies"]
    named = re.findall(r"'\.\[(\w+)\]'", TEXT)
    assert named
    assert set(named) <= set(extras)


@pytest.fixture(scope="module")
def counted_mean(tmp_path_factory):
    """Return the example of a new mechanism as the module that its user writes."""
    (code,) = (
        block.code for block in BLOCKS if block.code.startswith("# counted_mean.py\n")
    )
    folder = tmp_path_factory.mktemp("mechanism")
    (folder / "counted_mean.py").write_text(code)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        yield import_module("counted_mean")
        sys.modules.pop("counted_mean")


@pytest.mark.filterwarnings(
    "ignore::privfeat.exceptions.PrivacyWarning",
    "ignore::sklearn.exceptions.SkipTestWarning",
)
def test_new_mechanism_passes_every_check_of_sklearn(counted_mean):
    check_estimator(counted_mean.DPCountedMean())


def extreme_rows():
    """Return rows of three classes; the last is the longest and alone in its class."""
    return (
        [[1, 0, 0], [1, 1, 0], [0, 2, 0], [0, 1, 1], [0, 0, 0], [-9, -9, -9]],
        [0, 0, 1, 1, 1, 2],
    )


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
@pytest.mark.parametrize("record", range(6))
def test_new_mechanism_moves_as_declared(counted_mean, adjacency, record):
    clf = counted_mean.DPCountedMean(epsilon=1, classes=range(3), adjacency=adjacency)
    assert audit.replay(clf, *extreme_rows(), record=record).ok


def test_new_mechanism_protects_users_and_charges_a_ledger(counted_mean, tmp_path):
    X, y = extreme_rows()
    ledger = PrivacyLedger(tmp_path / "a.ledger", dataset="a", epsilon=1, delta=1e-5)
    clf = counted_mean.DPCountedMean(epsilon=1, classes=range(3), max_group_size=2)
    groups = [0, 0, 1, 1, 2, 2]
    assert audit.replay(clf, X, y, user=2, groups=groups).ok
    clf.set_params(max_group_size=None, ledger=ledger).fit(X, y)
    assert 0.999 < ledger.spent.epsilon <= 1.0


def test_replay_notices_a_bound_that_is_too_small(counted_mean):
    class TooSmall(counted_mean.DPCountedMean):
        def _queries(self, shape):
            return [Query("class_sums", 0.5)]

    clf = TooSmall(epsilon=1, classes=range(3))
    assert not audit.replay(clf, *extreme_rows(), record=5).ok


def test_replay_notices_a_small_bound_of_centred_rows(counted_mean):
    class TooSmall(counted_mean.DPCountedMean):
        def _queries(self, shape):
            return [Query("class_sums", 1.36)]  # a little less than sqrt(2)

    X, y = np.random.default_rng(0).normal([4, 0, 0, 0], size=(900, 4)), [0, 1, 2] * 300
    for kind, ok in ((counted_mean.DPCountedMean, True), (TooSmall, False)):
        clf = kind(epsilon=8, classes=range(3), adjacency="replace_one")
        assert audit.replay(clf, X, y, record=5).ok is ok


def test_new_mechanism_is_refused_a_bad_parameter_and_a_column_too_few(counted_mean):
    with pytest.raises(ValueError, match="least_count must be"):
        counted_mean.DPCountedMean(least_count=-1.0).fit(*extreme_rows())

    class Narrow(counted_mean.DPCountedMean):
        def _solve(self, *given):
            return super()._solve(*given)[:, :-1]

    with pytest.raises(ValueError, match=r"_solve must return .* \(3, 4\) here, got"):
        Narrow(epsilon=1, classes=range(3)).fit(*extreme_rows())


def test_new_mechanism_finds_the_counted_mean(counted_mean):
    X, y = extreme_rows()
    clf = counted_mean.DPCountedMean(epsilon=1e6, classes=range(3))
    with pytest.warns(match="epsilon"):
        clf.fit(X, y)
    assert clf.predict([[2, 0.1, 0], [0, 5, 1], [-1, -1, -1]]).tolist() == [0, 1, 2]
