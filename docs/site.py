"""What the site adds to this folder: documents that lie beside the code.

MkDocs calls the functions ``on_...`` below (``hooks`` in ``mkdocs.yml``). A link that
leads to such a document becomes one to its page, and so does one to an example of the
gallery, whose page ``run_gallery.py`` makes; a link to other files of the repository
becomes their path, since a site that is read offline does not hold them.
"""

import posixpath
import re
from collections import Counter
from pathlib import Path
from typing import Any

import griffe
from latex2mathml.converter import convert
from markdown.extensions.toc import slugify
from mkdocs.structure.files import File

# Page of the site -> document of the repository.
BESIDE = {
    "auditors.md": "privfeat/core/README.md",
    "changelog.md": "CHANGELOG.md",
    "contributing.md": "CONTRIBUTING.md",
    "measurements.md": "benchmarks/RESULTS.md",
    "security.md": ".github/SECURITY.md",
}
PAGES = {document: page for page, document in BESIDE.items()}
LINK = re.compile(
    r"(?<!!)\[(?P<text>[^\]]*)\]\((?P<path>[^)#:\s]+)(?P<anchor>#[^)\s]*)?\)"
)
# Between dollars, as GitHub reads it; not in code.
FORMULA = re.compile(
    r"(?P<code>```.*?```|`[^`\n]*`)|\$\$(?P<block>[^$]+)\$\$|\$(?P<inline>[^$\n`]+)\$",
    re.DOTALL,
)
WITH_FORMULAS = {"theory.md"}
GLOSSARY = "glossary.md"
COMMANDS = "reference/commands.md"  # other pages of the reference are docstrings
# A drawing in text, which GitHub draws.
DRAWING = re.compile(r"```mermaid\nflowchart TD\n(?P<lines>.*?)```\n", re.DOTALL)
# Lists too long for it, and the words themselves.
UNLINKED = {GLOSSARY, "changelog.md", "measurements.md"}
# A word in code, a link, a picture, a heading, a tag or a formula is no first use.
WORD = (
    r"(?P<skip>```.*?```|``[^`]+``|`(?:[^`\n]|\n(?!\n))*`|!?\[[^\]]*\]\([^)]*\)"
    r"|^#.*?$|<[^>]+>"
    r"|\$\$[^$]+\$\$|\$[^$]+\$)"
)
LIST = re.compile(r'(?P<start><nav class="md-nav[^>]* aria-label=")(?P<name>[^"]*)"')
# What the theme loads for its search where there is no server.
WORKER = re.compile(r'https://[^"\s]+/iframe-worker/shim')
# The README's sections are the home page of the site.
HOME = "README.md"


class OwnDocstrings(griffe.Extension):
    """Drop the docstring that an attribute has from the class of its value alone."""

    def on_attribute_instance(self, *, node: Any, attr: Any, **_: Any) -> None:
        """See griffe: called for each attribute that is found."""
        value = getattr(node, "obj", None)
        text = getattr(value, "__doc__", None) or ""
        if text == type(value).__doc__ or text.startswith("Alias for field number"):
            attr.docstring = None


def on_files(files: Any, config: Any) -> Any:
    """Add a page for each document that lies beside the code."""
    for page, document in BESIDE.items():
        with open(document, encoding="utf-8") as file:
            files.append(File.generated(config, page, content=file.read()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Return the text of a page with links that lead to pages of the site."""
    uri = page.file.src_uri
    here = posixpath.dirname(BESIDE.get(uri, f"docs/{uri}"))

    def led(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(here, link["path"]))
        if target == HOME:
            found = "index.md"
        elif target in PAGES:
            found = PAGES[target]
        elif target.startswith("docs/") and target.endswith((".md", ".py")):
            found = target.removeprefix("docs/")
            if not uri.startswith("gallery/"):  # whose pages link to their own source
                found = found.replace(".py", ".md")
        else:
            return (
                link["text"] if "`" in link["text"] else f"{link['text']} (`{target}`)"
            )
        relative = posixpath.relpath(found, posixpath.dirname(uri) or ".")
        return f"[{link['text']}]({relative}{link['anchor'] or ''})"

    text = with_glossary(LINK.sub(led, DRAWING.sub(in_words, markdown)), uri)
    return FORMULA.sub(in_mathml, text) if uri in WITH_FORMULAS else text


def in_words(drawing: re.Match[str]) -> str:
    """Return a table of the arrows of a drawing: nothing draws it without a network."""
    names = dict(re.findall(r"(\w+)\[([^\]:]+)\]", drawing["lines"]))
    arrows: dict[str, list[str]] = {}
    for start, end in re.findall(r"(\w+) --> (\w+)", drawing["lines"]):
        arrows.setdefault(names[start], []).append(names[end])
    rows = [f"| {room} | {', '.join(ends)} |" for room, ends in arrows.items()]
    return "\n".join(["| room | uses |", "| --- | --- |", *rows, ""])


def on_page_content(html: str, **_: Any) -> str:
    """Let the empty corner of a table be no heading, which would name nothing."""
    return re.sub(r"<th([^>]*)></th>", r"<td\1></td>", html)


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Let the search of a page find its worker beside it, and each list have a name.

    The worker would come from another server, and lists of contents of two objects with
    like-named parts have one name: a reader of the screen could not tell them apart.
    """
    here = posixpath.dirname(page.url) or "."
    seen: Counter[str] = Counter()

    def named(found: re.Match[str]) -> str:
        seen[found["name"]] += 1
        number = seen[found["name"]]
        return found[0] if number == 1 else f'{found["start"]}{found["name"]} {number}"'

    output = LIST.sub(named, output)
    return WORKER.sub(posixpath.relpath("iframe-worker.js", here), output)


def in_mathml(found: re.Match[str]) -> str:
    """Return a formula as browsers read it, without a script; code as it is."""
    if found["code"]:
        return found["code"]
    if found["block"] is None:  # a line may begin with it: Markdown takes it for text
        return f"<span>{convert(found['inline'])}</span>"
    shown = convert(found["block"], display="block")
    return f'<div style="overflow-x: auto" tabindex="0">{shown}</div>'


def glossary() -> dict[str, str]:
    """Return the anchor of each word of the glossary, by the word in small letters."""
    text = (Path(__file__).parent / GLOSSARY).read_text(encoding="utf-8")
    anchors = {}
    for section in text.split("\n## ")[1:]:
        heading, _, rest = section.partition("\n\n")
        anchor = slugify(heading, "-")
        also = re.match(r"\*Also: (.*)\.\*", rest)
        for word in [heading, *(also[1].split(", ") if also else [])]:
            anchors[word.lower()] = anchor
    return anchors


def with_glossary(markdown: str, uri: str) -> str:
    """Return the text of a page where first uses of words lead to the glossary."""
    if uri in UNLINKED or (uri.startswith("reference/") and uri != COMMANDS):
        return markdown
    anchors, seen = glossary(), set[str]()
    page = posixpath.relpath(GLOSSARY, posixpath.dirname(uri) or ".")
    words = "|".join(map(re.escape, sorted(anchors, key=len, reverse=True)))

    def led(found: re.Match[str]) -> str:
        anchor = anchors.get((found["word"] or "").lower())
        if anchor is None or anchor in seen:
            return found[0]
        seen.add(anchor)
        return f"[{found[0]}]({page}#{anchor})"

    pattern = rf"{WORD}|(?<![\w/-])(?P<word>{words})(?P<plural>s?)(?![\w/-])"
    return re.sub(pattern, led, markdown, flags=re.S | re.M | re.I)
