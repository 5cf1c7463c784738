"""README and guides as a user runs them: the code of each page, in a fresh folder.

A guide may build on "First fit" of the README and on the start page of its name, and
on nothing else. A start page builds on nothing.
"""

import re
import shlex
import shutil
import tomllib
from itertools import pairwise

import jax
import pytest

from docs import site
from privfeat import BudgetExceededError
from privfeat.cli import build_parser
from privfeat_extract.arguments import parse as parse_of_extract
from privfeat_extract.overlap import overlap_parser
from tests.pages.blocks import (
    BLOCKS,
    GUIDES,
    NOT_RUN,
    PAGES,
    README,
    ROOT,
    STARTS,
    blocks_of,
    run_blocks,
    run_command,
)

FIRST = "First fit"
FIRST_BLOCKS = [block for block in blocks_of(README) if block.section == FIRST]
TEXTS = {n: page.read_text(encoding="utf-8") for n, page in (PAGES | STARTS).items()}
ALL = "\n".join(TEXTS.values())
# The slow tests run the code of these.
SLOW = {"networks", "audit", "search", "report", "epsilon", "evaluation", "deploying"}
SLOW |= {"start/networks", "start/images", "estimators", "prior", "pipeline", "scale"}
SLOW |= {"text", "start/text", "gpu"}
# What a page needs beyond what the tests need.
NEEDED = {"networks": "flax", "audit": "jax_privacy", "report": "jax_privacy"}
NEEDED |= {"start/networks": "flax", "start/images": "kymatio"}
# Pages with a test of their own beside this one.
APART = {"signed-report"}
BUILT_ON_START = {"tables", "text"}
WITH_CODE = [n for n, page in PAGES.items() if n not in APART and blocks_of(page)]
NEEDED["deploying"] = "onnxruntime"
COMMANDS = [c for block in BLOCKS if block.language == "sh" for c in block.commands]
# Of the commands that are not run, those that start our programs, some by a launcher.
PROGRAMS = ("privfeat", "privfeat-extract", "privfeat_extract")
LAUNCHED = ("privfeat", "torchrun", "srun")
LEFT_OUT = [c for c in COMMANDS if c.startswith(tuple(NOT_RUN))]
LEFT_OUT = [c for c in LEFT_OUT if c.startswith(LAUNCHED)]
# Other documents, whose links are checked as well. The build of the site checks those
# of its home page, some of which lead to pages that the build makes.
DOCUMENTS = [
    *PAGES.values(),
    *STARTS.values(),
    *sorted(set((ROOT / "docs").glob("*.md")) - {ROOT / "docs" / "index.md"}),
    *(ROOT / "CONTRIBUTING.md", ROOT / "privfeat" / "core" / "README.md"),
]

# All pages of the site, of which some lie beside the code; those of the gallery have
# tests of their own.
SITE = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "docs/gallery/head.txt"]
SITE += [ROOT / document for document in site.BESIDE.values()]


@pytest.fixture(scope="module")
def first_fit(tmp_path_factory):
    """Return the folder and the names that "First fit" leaves behind."""
    pytest.importorskip("kymatio")
    folder, names = tmp_path_factory.mktemp("pages"), {"__name__": "pages"}
    (folder / "quickstart").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        # what `make quickstart` does
        run_command(
            "privfeat-extract --data digits --model scattering "
            "--out quickstart/digits.h5"
        )
        run_blocks(FIRST_BLOCKS, names)
    return folder, names


@pytest.fixture
def names(first_fit, tmp_path, monkeypatch):
    """Return a copy of those names, in a copy of that folder."""
    folder, names = first_fit
    shutil.copytree(folder, tmp_path / "pages")
    monkeypatch.chdir(tmp_path / "pages")
    # features of your photographs, where no weights are to be had
    for photos in ("photos.h5", "one.h5", "two.h5"):
        shutil.copy("quickstart/digits.h5", photos)
    # the table of its guide, and its declaration
    made = [b for b in blocks_of(STARTS["start/tables"]) if b.language == "python"]
    run_blocks(made, {})
    # the texts of theirs
    run_blocks(blocks_of(STARTS["start/text"])[:1], {})
    return dict(names)


def test_first_fit_has_the_accuracy_it_states(first_fit):
    folder, names = first_fit
    assert 0.8 < names["clf"].score(names["test"].X, names["test"].y) < 0.97
    assert names["clf"].privacy_.epsilon <= 1.0
    assert (folder / "predictions.csv").is_file()


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(name, marks=pytest.mark.slow if name in SLOW else ())
        for name in WITH_CODE
    ],
)
def test_page_runs(page, names, monkeypatch):
    pytest.importorskip(NEEDED.get(page, "numpy"))
    # One process has no others to find; several: tests/linear/test_processes.py
    monkeypatch.setattr(jax.distributed, "initialize", lambda **_: None)
    if page in BUILT_ON_START:
        run_blocks(blocks_of(STARTS[f"start/{page}"]), {})
    run_blocks([b for b in blocks_of(PAGES[page]) if b not in FIRST_BLOCKS], names)


@pytest.mark.parametrize(
    "page",
    [pytest.param(n, marks=pytest.mark.slow if n in SLOW else ()) for n in STARTS],
)
def test_start_page_runs_in_an_empty_folder(page, tmp_path, monkeypatch):
    pytest.importorskip(NEEDED.get(page, "numpy"))
    monkeypatch.chdir(tmp_path)
    run_blocks(blocks_of(STARTS[page]), {})
    for name in ("report.html", "card.md"):
        assert (tmp_path / name).is_file()


def test_ledger_has_left_what_is_stated(names):
    run_blocks(blocks_of(GUIDES / "ledger.md")[:1], names)
    assert names["left"].epsilon == pytest.approx(2.76, abs=0.005)
    clf, train, left = (names[name] for name in ("clf", "train", "left"))
    clf.set_params(epsilon=left.epsilon + 0.01)
    with pytest.raises(BudgetExceededError):
        clf.fit(train.X, train.y)
    clf.set_params(epsilon=left.epsilon).fit(train.X, train.y)


def test_readme_is_no_wall():
    assert len(TEXTS["README"].splitlines()) <= 150
    assert {f"docs/guides/{name}.md" for name in PAGES if name != "README"} <= set(
        re.findall(r"\]\(([^)#]*)", TEXTS["README"])
    )


@pytest.mark.parametrize("page", SITE, ids=lambda page: str(page.relative_to(ROOT)))
def test_page_begins_with_whom_it_is_for(page):
    text = page.read_text(encoding="utf-8")
    title, _, first = text.split("\n")[:3]
    assert title.startswith("# ")
    assert first.startswith("For whoever ")
    assert "After this page you " in text.split("\n\n")[1].replace("\n", " ")


def test_badges_say_what_the_package_says():
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    listed = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    told = f"Python {listed[0]} to {listed[-1]}; licence {project['license']}"
    assert f"![{told}](docs/badges.svg)" in TEXTS["README"]
    badges = (ROOT / "docs" / "badges.svg").read_text(encoding="utf-8")
    assert f"<title>{told}</title>" in badges
    for shown in (f">{listed[0]}–{listed[-1]}<", f">{project['license']}<"):
        assert shown in badges


def test_every_block_is_python_or_commands():
    assert {block.language for block in BLOCKS} == {"python", "sh"}


def test_what_is_not_run_is_on_a_page():
    for beginning in NOT_RUN:
        assert any(command.startswith(beginning) for command in COMMANDS), beginning


@pytest.mark.parametrize("command", LEFT_OUT, ids=lambda command: command[:40])
def test_what_is_not_run_parses(command):
    """An option that is gone, or a value that is none, ends the test with status 2."""
    words = shlex.split(command, comments=True)
    at = next(i for i, word in enumerate(words) if word in PROGRAMS)
    program, *given = words[at:]
    if program == "privfeat":
        assert build_parser().parse_args(given).verb == given[0]
    elif given[0] == "overlap":
        assert overlap_parser().parse_args(given[1:])
    else:
        assert parse_of_extract(given).out


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith(("http://", "https://", "mailto:")):
            continue
        path, _, anchor = target.partition("#")
        found = (page.parent / path).resolve() if path else page
        assert found.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", found.read_text("utf-8"), re.MULTILINE)
            anchors = [
                re.sub(r"[^\w -]", "", heading).replace(" ", "-").lower()
                for heading in headings
            ]
            assert anchor in anchors, target


def test_files_that_are_named_exist():
    named = re.findall(r"`((?:privfeat|tests|benchmarks|extract)/[\w./]*)`", ALL)
    assert named
    for name in named:
        assert (ROOT / name).exists(), name


def test_targets_that_are_named_exist():
    makefile = (ROOT / "Makefile").read_text()
    targets = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)[1].split()
    named = re.findall(r"(?:`|^)make ([\w-]+)", ALL, re.MULTILINE)
    assert named
    assert set(named) <= set(targets)


def test_extras_that_are_named_exist():
    with (ROOT / "pyproject.toml").open("rb") as file:
        extras = tomllib.load(file)["project"]["optional-dependencies"]
    named = re.findall(r"'\.\[(\w+)\]'", ALL)
    assert named
    assert set(named) <= set(extras)


def test_home_page_of_the_site_leaves_what_the_readme_leaves():
    """Guides lead to the first fit of the README, which is the home page there."""
    home = [b.code for b in blocks_of(ROOT / "docs" / "index.md")]
    assert {block.code for block in FIRST_BLOCKS} <= set(home)


def test_every_extra_of_a_user_is_in_the_table():
    with (ROOT / "pyproject.toml").open("rb") as file:
        extras = tomllib.load(file)["project"]["optional-dependencies"]
    rows = re.findall(r"^\| (.*?) \|", (ROOT / "docs/install.md").read_text(), re.M)
    told = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert told == set(extras) - {"browser", "docs", "dev", "mutation"}


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: page.stem)
def test_no_heading_skips_a_level(page):
    """Who hears a page goes by its headings; the tests in a browser find it late."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
    levels = [len(marks) for marks in re.findall(r"^(#+) ", text, flags=re.M)]
    assert all(below <= above + 1 for above, below in pairwise(levels))
