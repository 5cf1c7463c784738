"""The site: all that is public is in its reference, and it builds without a warning."""

import ast
import importlib.util
import os
import re
import subprocess
import sys
from importlib import import_module
from types import ModuleType, SimpleNamespace

import pytest

import privfeat
from tests.pages.blocks import BLOCKS, ROOT

REFERENCE = ROOT / "docs" / "reference"
# Packages of which users import: all that say what they export, but these.
PRIVATE = ("cli", "core", "audit.random_numbers")
SHOWN = ("networks.layers", "networks.models")  # of the rooms below networks
PUBLIC = sorted(
    {
        str(path.parent if path.stem == "__init__" else path.with_suffix(""))
        .removeprefix(f"{ROOT}/")
        .replace("/", ".")
        for path in (ROOT / "privfeat").rglob("*.py")
        if "\n__all__ = " in path.read_text(encoding="utf-8")
    }
)
PUBLIC = [
    name
    for name in PUBLIC
    if not name.startswith(tuple(f"privfeat.{p}" for p in PRIVATE))
    and name.removeprefix("privfeat.") in (*SHOWN, *name.split(".")[1:2], "privfeat")
]
# Names that are no objects of their own.
LISTED = {"Padding", "FORMAT", "FORMAT_VERSION", "__version__"}


def objects():
    """Return what the pages of the reference show, imported."""
    found = []
    for page in sorted(REFERENCE.glob("*.md")):
        for path in re.findall(r"^::: (\S+)$", page.read_text(), re.MULTILINE):
            module, _, name = path.rpartition(".")
            found.append(getattr(import_module(module), name))
    return found


def test_packages_that_export_are_found():
    few = {"privfeat", "privfeat.linear", "privfeat.networks", "privfeat.distributed"}
    assert few < set(PUBLIC)
    assert len(PUBLIC) == 16


@pytest.mark.parametrize("package", PUBLIC)
def test_public_names_are_in_the_reference(package):
    module = import_module(package)
    shown = objects()
    missing = [
        name
        for name in module.__all__
        if name not in LISTED
        and all(getattr(module, name) is not thing for thing in shown)
    ]
    assert missing == []


def imported_on_pages():
    """Return the objects that code on pages and in the gallery imports of privfeat."""
    codes = [block.code for block in BLOCKS if block.language == "python"]
    codes += [path.read_text() for path in (ROOT / "docs/gallery").glob("*.py")]
    for code in codes:
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.ImportFrom) and "privfeat" in str(node.module):
                for alias in node.names:
                    yield f"{node.module}.{alias.name}"


@pytest.mark.parametrize("path", sorted(set(imported_on_pages())))
def test_what_pages_import_is_in_the_reference(path):
    """Of a module, something that is in it."""
    module, _, name = path.rpartition(".")
    thing = getattr(import_module(module), name)
    if isinstance(thing, ModuleType):
        assert any(
            getattr(thing, getattr(one, "__name__", ""), None) is one
            for one in objects()
        )
    else:
        assert any(thing is one for one in objects())


def test_make_docs_counts_warnings():
    """Quiet, mkdocs writes none, and its strict mode then counts none."""
    builds = re.findall(r"mkdocs build.*", (ROOT / "Makefile").read_text("utf-8"))
    assert builds
    assert all("--strict" in one.split("#")[0].split() for one in builds)
    assert not any("quiet" in one.split("#")[0] for one in builds)


@pytest.fixture(scope="module")
def site():
    spec = importlib.util.spec_from_file_location("docs_site", ROOT / "docs/site.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_drawing_is_a_table_on_the_site(site):
    page = (ROOT / "docs/design.md").read_text("utf-8")
    page = site.DRAWING.sub(site.in_words, page)
    assert "```mermaid" not in page
    assert re.search(r"^\| linear \| .*core|^\| cli \| ", page, re.MULTILINE)


def test_first_use_of_a_word_leads_to_the_glossary(site):
    text = "# Epsilon\n\n`epsilon` is [epsilon](e.md). Epsilons, and epsilon.\n"
    linked = site.with_glossary(text, "guides/a.md")
    assert linked.count("glossary.md") == 1
    assert linked.endswith("[Epsilons](../glossary.md#epsilon), and epsilon.\n")


def test_words_of_more_than_one_entry_lead_to_the_longest(site):
    linked = site.with_glossary("Gaussian DP and DP.", "index.md")
    assert "[Gaussian DP](glossary.md#gaussian-differential-privacy)" in linked
    assert "[DP](glossary.md#differential-privacy)" in linked


@pytest.mark.parametrize(
    ("uri", "linked"),
    [
        ("auditors.md", "[Epsilon](glossary.md#epsilon)"),
        ("contributing.md", "[Epsilon](glossary.md#epsilon)"),
        ("security.md", "[Epsilon](glossary.md#epsilon)"),
        ("reference/commands.md", "[Epsilon](../glossary.md#epsilon)"),
        ("gallery/index.md", "[Epsilon](../glossary.md#epsilon)"),
        ("changelog.md", "Epsilon"),
        ("glossary.md", "Epsilon"),
        ("measurements.md", "Epsilon"),
        ("reference/budget.md", "Epsilon"),
    ],
)
def test_pages_of_prose_lead_to_the_glossary(site, uri, linked):
    assert site.with_glossary("Epsilon.", uri) == f"{linked}."


def test_head_of_the_gallery_leads_to_the_glossary(site):
    text = (ROOT / "docs/gallery/head.txt").read_text(encoding="utf-8")
    assert "(../glossary.md#" in site.with_glossary(text, "gallery/index.md")


@pytest.mark.parametrize("code", ["`a\nbudget b`", "``prior=``", "`budget create`"])
def test_no_word_of_code_leads_to_the_glossary(site, code):
    assert site.with_glossary(f"Call {code}.\n", "guides/a.md") == f"Call {code}.\n"


def test_no_word_of_a_formula_leads_to_the_glossary(site):
    text = "$$a = \\delta$$\n\nand $\\epsilon$, $rho$: epsilon.\n"
    linked = site.with_glossary(text, "theory.md")
    assert linked.startswith("$$a = \\delta$$\n\nand $\\epsilon$, $rho$: [epsilon](")


def test_empty_corners_and_lists_are_read_as_they_are(site):
    assert site.on_page_content("<th></th><th>a</th>") == "<td></td><th>a</th>"
    nav = '<nav class="md-nav" aria-label="A">'
    page = SimpleNamespace(url="a.html")
    shown = site.on_post_page(nav + nav, page)
    assert shown == nav + nav.replace('"A"', '"A 2"')


def test_glossary_names_each_word_once(site):
    text = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert headings == sorted(headings, key=lambda h: site.slugify(h, "-"))
    assert set(site.glossary().values()) == {
        site.slugify(heading, "-") for heading in headings
    }


@pytest.mark.slow
def test_site_builds_without_a_warning(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path],
        cwd=ROOT,
        # other tests run beside it: an example may take longer than a minute here
        env=os.environ
        | {"NO_MKDOCS_2_WARNING": "1", "JAX_PLATFORMS": "cpu"}
        | {"GALLERY_SECONDS": "600"},
        capture_output=True,
        text=True,
        timeout=1500,  # it runs the gallery
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    for page in (
        "index.html",
        "guides/ledger.html",
        "auditors.html",
        "gallery/noise.html",
    ):
        assert (tmp_path / page).is_file()
    theory = (tmp_path / "theory.html").read_text(encoding="utf-8")
    article = theory[theory.index("<article") : theory.index("</article")]
    assert article.count("<math") > 50
    assert "$" not in article
    # the docstrings of estimators are put together when their classes are made
    shown = (tmp_path / "reference" / "estimators.html").read_text(encoding="utf-8")
    assert shown.count('id="privfeat.linear.DPFC.fit"') == 1
    assert "max_group_size" in shown


def test_the_picture_of_a_fit_is_of_this_version():
    """``make screenshots`` takes it anew."""
    drawn = (ROOT / "docs/screenshots/fit.svg").read_text("utf-8")
    assert f"privfeat&#160;{privfeat.__version__}<" in drawn
