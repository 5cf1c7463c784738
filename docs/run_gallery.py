"""Run the examples of ``gallery/``, and make pages of text, code and figures.

MkDocs calls ``on_files`` (``hooks`` in ``mkdocs.yml``). An example is a Python file.
Its docstring is the head of the page. ``# %%`` begins a cell: lines of comment, which
are Markdown, then code. ``{name:.2f}`` in the text is a value that the code above
computed. The label of a figure (``fig.set_label``) is its alternative text. A figure
without one is an error, and so is a warning.

An example runs by itself, in a folder of its own that holds what ``make quickstart``
makes. It runs again only if it, this file,
the noise of tests, constraints.txt or a module of the packages has changed. One that
takes longer than a minute is an error: readers run it as well. What it waits for other
programs does not count. On a slow machine ``GALLERY_SECONDS=300`` allows more.
"""

import ast
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
GALLERY = ROOT / "docs" / "gallery"
KEPT = ROOT / "build" / "gallery"
SECONDS = 60.0  # that an example may take
FEATURES = "quickstart/digits.h5"
CELL = re.compile(r"^# %%.*\n", re.MULTILINE)
LOOKS = {
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.constrained_layout.use": True,
    "font.size": 11,
}


def on_files(files: Any, config: Any) -> Any:
    """Add page and figures of each example, and the page that shows them all."""
    from mkdocs.structure.files import File

    examples = in_order(config.nav)
    with ThreadPoolExecutor(2) as pool:
        folders = list(pool.map(made, examples))
    for folder in folders:
        for path in sorted(folder.iterdir()):
            place = f"gallery/{path.name}"
            files.append(File.generated(config, place, abs_src_path=str(path)))
    heads = [head_of(path.read_text(encoding="utf-8")) for path in examples]
    text = overview([path.stem for path in examples], heads)
    files.append(File.generated(config, "gallery/index.md", content=text))
    return files


def in_order(nav: list[Any]) -> list[Path]:
    """Return the examples, as the navigation of the site lists them.

    Raises
    ------
    ValueError
        If it lists others than those that are there.
    """
    (pages,) = (part["Gallery"] for part in nav if "Gallery" in part)
    names = [Path(page).stem for page in pages if page != "gallery/index.md"]
    if sorted(names) != sorted(path.stem for path in GALLERY.glob("*.py")):
        raise ValueError("nav of mkdocs.yml must list each docs/gallery/*.py once.")
    return [GALLERY / f"{name}.py" for name in names]


def head_of(source: str) -> tuple[str, str]:
    """Return the title of an example, and the text below it."""
    title, _, text = (ast.get_docstring(ast.parse(source)) or "").partition("\n")
    return title.removesuffix("."), text.strip()


def overview(names: list[str], heads: list[tuple[str, str]]) -> str:
    """Return the page that shows all examples, each by its first figure."""
    text = (GALLERY / "head.txt").read_text(encoding="utf-8")
    cards = [
        f"-   ![]({name}-1.svg)\n\n    [{title}]({name}.md)\n"
        for name, (title, _) in zip(names, heads, strict=True)
    ]
    grid = "\n".join(['<div class="grid cards" markdown>\n', *cards, "</div>"])
    return f"{text}\n{grid}\n"


def made(example: Path, kept: Path = KEPT) -> Path:
    """Return the folder of the page and the figures of an example, run if need be.

    Raises
    ------
    RuntimeError
        If it fails, or takes too long. The message holds its traceback.
    """
    folder = kept / f"{example.stem}-{digest_of(example)}"
    if folder.is_dir():
        return folder
    kept.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept) as work:
        shutil.copytree(features(kept).parent, Path(work, "quickstart"))
        command = [sys.executable, __file__, str(example), f"{work}/page"]
        done = subprocess.run(command, cwd=work, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{example.name} fails:\n{done.stderr}")
        try:
            os.rename(f"{work}/page", folder)
        except OSError:  # another build was faster
            if not folder.is_dir():
                raise
    for old in kept.glob(f"{example.stem}-*"):
        if old != folder:
            shutil.rmtree(old, ignore_errors=True)
    return folder


def digest_of(example: Path) -> str:
    """Return a digest of all code that decides what an example shows."""
    packages = (*ROOT.glob("privfeat/**/*.py"), *ROOT.glob("extract/**/*.py"))
    others = Path(__file__), ROOT / "constraints.txt", ROOT / "tests" / "entropy.py"
    found = hashlib.sha256()
    for path in (example, *others, *sorted(packages)):
        found.update(hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()[:16]


def features(kept: Path) -> Path:
    """Return the features of the digits, as ``make quickstart`` makes them."""
    path = kept / FEATURES
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"{os.getpid()}-{time.monotonic_ns()}.h5")
        options = ["--data", "digits", "--model", "scattering", "--out", str(part)]
        command = [sys.executable, "-m", "privfeat_extract", *options]
        subprocess.run(command, check=True, capture_output=True)
        os.replace(part, path)
    return path


def page_of(source: str, name: str) -> tuple[str, list[str]]:
    """Run an example; return its page, and its figures as SVG.

    Parameters
    ----------
    source : str
        The example.
    name : str
        Its file, without the ending.

    Raises
    ------
    ValueError
        If a figure has no label.
    """
    from matplotlib import pyplot

    began = time.monotonic()
    title, text = head_of(source)
    parts, figures, names = [f"# {title}", text], [], {"__name__": "__main__"}
    starts = list(CELL.finditer(source))
    ends = [found.start() for found in starts[1:]] + [len(source)]
    for start, end in zip(starts, ends, strict=True):
        prose, code = split(source[start.end() : end])
        parts.append(prose.format_map(names))
        if not code:
            continue
        line = source.count("\n", 0, source.index(code, start.end()))
        printed = io.StringIO()
        with redirect_stdout(printed), warnings.catch_warnings():
            warnings.simplefilter("error")
            exec(compile("\n" * line + code, f"{name}.py", "exec"), names)
        parts.append(f"```python\n{code}\n```")
        if printed.getvalue():
            parts.append(f"```text\n{printed.getvalue().rstrip()}\n```")
        shown = [pyplot.figure(number) for number in pyplot.get_fignums()]
        pyplot.close("all")
        for figure in shown:
            if not figure.get_label():
                raise ValueError("a figure must have a label. Call fig.set_label(...).")
            drawn = io.StringIO()
            figure.savefig(drawn, format="svg", metadata={"Date": None})
            figures.append(drawn.getvalue())
            parts.append(f"![{figure.get_label()}]({name}-{len(figures)}.svg)")
    seconds = time.monotonic() - began
    parts.append(f"*This is [`{name}.py`]({name}.py). It ran in {seconds:.0f} s.*")
    return "\n\n".join(filter(None, parts)) + "\n", figures


def split(cell: str) -> tuple[str, str]:
    """Return the text and the code of a cell."""
    lines = cell.strip("\n").split("\n")
    count = next((i for i, line in enumerate(lines) if line[:1] != "#"), len(lines))
    prose = "\n".join(
        line.removeprefix("#").removeprefix(" ") for line in lines[:count]
    )
    return prose, "\n".join(lines[count:]).strip("\n")


def main(example: str, out: str) -> None:
    """Run an example, and write its page and figures into a new folder.

    Its noise follows from its name, as that of a test: all builds show one run.

    Raises
    ------
    RuntimeError
        If it takes too long, by the clock and by what it computes.
    """
    import matplotlib

    sys.path.insert(0, str(ROOT))
    from tests.entropy import ENTROPY, replace_entropy

    path, folder, began = Path(example), Path(out), time.monotonic()
    allowed = float(os.environ.get("GALLERY_SECONDS", SECONDS))
    matplotlib.use("svg")
    matplotlib.rcParams.update(LOOKS | {"svg.hashsalt": path.stem})
    replace_entropy()
    with ENTROPY.named(path.stem):
        text, figures = page_of(path.read_text(encoding="utf-8"), path.stem)
    if min(time.monotonic() - began, time.process_time()) > allowed:
        raise RuntimeError(
            f"{path.name} must end within {allowed:g} seconds. Make it shorter; on a "
            "slow machine set GALLERY_SECONDS to more."
        )
    folder.mkdir()
    for number, figure in enumerate(figures, 1):
        (folder / f"{path.stem}-{number}.svg").write_text(figure, encoding="utf-8")
    (folder / f"{path.stem}.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
