"""The gallery: what every example has, and how its page is made.

That each example runs is the business of the site, which ``test_site`` builds.
"""

import ast
from pathlib import Path

import pytest
import yaml

from docs import run_gallery
from docs.run_gallery import GALLERY, head_of, in_order, made, page_of
from tests.pages.blocks import ROOT

EXAMPLES = sorted(GALLERY.glob("*.py"))
EXAMPLE = '''"""A title.

For whoever tests.
"""

# %%
# The code comes after this.

import matplotlib.pyplot as plt

half = 1 / 2
print("printed")
fig, ax = plt.subplots()
fig.set_label("an empty figure")

# %%
# ## What we learnt
#
# It is {half:.2f}.
'''


def test_there_are_twelve_examples_or_more():
    assert len(EXAMPLES) >= 12


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_reads_as_a_story(path):
    source = path.read_text(encoding="utf-8")
    ast.parse(source)
    title, text = head_of(source)
    assert 10 < len(title) < 70
    assert text.startswith("For whoever ")
    assert "After this page you " in text.replace("\n", " ")
    assert source.count("set_label(") >= 1
    prose = source[source.index("\n# ## What we learnt\n") :]
    assert "{" in prose, "what was learnt must hold numbers of the run"
    assert "](../guides/" in prose
    assert len(source.splitlines()) < 120
    assert all(
        getattr(node, "module", None) not in {"urllib", "requests"}
        for node in ast.walk(ast.parse(source))
    )


def test_navigation_lists_every_example():
    class Loader(yaml.SafeLoader):
        """Reads the tags of mkdocs.yml as nothing."""

    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    nav = yaml.load(text, Loader)["nav"]
    assert sorted(in_order(nav)) == EXAMPLES
    with pytest.raises(ValueError, match="once"):
        in_order([{"Gallery": ["gallery/index.md", "gallery/noise.md"]}])


def test_page_holds_text_code_output_figure_and_numbers():
    page, (figure,) = page_of(EXAMPLE, "name")
    assert page.startswith("# A title\n\nFor whoever tests.\n\nThe code comes")
    assert "```python\nimport matplotlib" in page
    assert "```text\nprinted\n```\n\n![an empty figure](name-1.svg)" in page
    assert "It is 0.50." in page
    assert "%%" not in page
    assert "</svg>" in figure


@pytest.mark.parametrize(
    ("planted", "error"),
    [
        ('fig.set_label("an empty figure")', ""),
        ("half = 1 / 2", "half = 1 / 0"),
        ("half = 1 / 2", "other = 1 / 2"),
        ('print("printed")', "import warnings; warnings.warn('a', stacklevel=1)"),
    ],
)
def test_page_is_not_made_of_a_faulty_example(planted, error):
    with pytest.raises((ValueError, ZeroDivisionError, KeyError, UserWarning)):
        page_of(EXAMPLE.replace(planted, error), "name")


@pytest.mark.slow
def test_example_runs_again_only_if_it_changed(tmp_path):
    kept = tmp_path / "kept"
    (kept / "quickstart").mkdir(parents=True)
    (kept / run_gallery.FEATURES).touch()  # as if made before
    example = tmp_path / "name.py"
    example.write_text(EXAMPLE, encoding="utf-8")
    folder = made(example, kept)
    assert {path.name for path in folder.iterdir()} == {"name.md", "name-1.svg"}
    time = folder.stat().st_mtime_ns
    assert made(example, kept) == folder
    assert folder.stat().st_mtime_ns == time
    example.write_text(EXAMPLE.replace("1 / 2", "3 / 4"), encoding="utf-8")
    changed = made(example, kept)
    assert "It is 0.75." in (changed / "name.md").read_text(encoding="utf-8")
    assert [path for path in kept.iterdir() if path.stem.startswith("name")] == [
        changed
    ]
    example.write_text(EXAMPLE.replace("1 / 2", "1 / 0"), encoding="utf-8")
    with pytest.raises(RuntimeError, match=r"name\.py fails:(.|\n)*ZeroDivisionError"):
        made(example, kept)


@pytest.mark.slow
def test_example_that_takes_too_long_is_an_error(tmp_path, monkeypatch):
    kept = tmp_path / "kept"
    (kept / "quickstart").mkdir(parents=True)
    (kept / run_gallery.FEATURES).touch()
    example = tmp_path / "name.py"
    example.write_text(EXAMPLE)
    monkeypatch.setenv("GALLERY_SECONDS", "0.01")
    with pytest.raises(RuntimeError, match=r"name\.py must end within 0\.01 seconds"):
        made(example, kept)
    assert [path.name for path in kept.iterdir()] == ["quickstart"]


def test_an_example_may_take_a_minute():
    assert run_gallery.SECONDS == 60


def test_examples_and_pages_that_are_made_are_not_committed():
    assert {path.suffix for path in GALLERY.iterdir()} <= {".py", ".txt"}
    assert Path(run_gallery.KEPT).relative_to(ROOT).parts[0] == "build"
