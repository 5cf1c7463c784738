"""Take the pictures in ``screenshots/``: ``make screenshots``.

The start page of tables is followed in an empty folder. The commands of ``TERMINALS``
run on a pseudo-terminal, so that they print what a user sees; rich draws it as SVG.
Chromium, which must be installed, opens the pages of ``BROWSER``.
"""

import io
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright
from rich.console import Console
from rich.text import Text

from tests.pages.blocks import STARTS, blocks_of, run_blocks

PICTURES = Path(__file__).resolve().parent / "screenshots"
COLUMNS = 100
BLOCKS = blocks_of(STARTS["start/tables"])
# Picture -> commands; they run after those of the page, in this order.
TERMINALS = {
    "fit": [
        "privfeat fit --estimator DPFC --epsilon 1 --delta 1e-6 --train patients.csv "
        "--columns columns.toml --target diagnosis --out again/"
    ],
    "budget": [
        "privfeat budget show patients.ledger",
        "privfeat budget history patients.ledger --dataset patients",
    ],
}
# Picture -> page, or ledger to serve one of; width and height in pixels.
BROWSER = {
    "report": ("report.html", 1000, 760),
    "serve": ("patients.ledger", 1000, 860),
}


def main() -> None:
    """Take all pictures."""
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        run_blocks(BLOCKS, {})
        for name, commands in TERMINALS.items():
            path = PICTURES / f"{name}.svg"
            path.write_text(drawn(commands), encoding="utf-8")
        for name, (page, width, height) in BROWSER.items():
            with opened(page) as url:
                photograph(url, PICTURES / f"{name}.png", width, height)
        os.chdir(PICTURES)  # so that the folder can go


def drawn(commands: list[str]) -> str:
    """Return an SVG of a terminal in which commands were run."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    for command in commands:
        console.print(Text.assemble(("$ ", "bold green"), (command, "bold")))
        console.print(Text.from_ansi(printed(command)))
    svg = console.export_svg(title="", unique_id="terminal")
    return re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)  # nothing is fetched


def printed(command: str) -> str:
    """Run a command on a pseudo-terminal; return what stays on the screen."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (40, COLUMNS))
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "TERM": "xterm-256color"}
    with subprocess.Popen(
        command, shell=True, stdout=theirs, stderr=theirs, env=environment
    ) as process:
        os.close(theirs)
        parts = []
        while part := read(ours):
            parts.append(part)
    os.close(ours)
    if process.returncode:
        raise RuntimeError(f"{command!r} ended with {process.returncode}.")
    lines = b"".join(parts).decode().replace("\r\n", "\n").rstrip().split("\n")
    kept = [line.rpartition("\r")[2] for line in lines]  # a bar writes over itself
    return "\n".join(kept)


def read(descriptor: int) -> bytes:
    """Return what is there; nothing once the other end is closed."""
    try:
        return os.read(descriptor, 65536)
    except OSError:  # so Linux tells that nobody writes any more
        return b""


@contextmanager
def opened(page: str) -> Iterator[str]:
    """Yield the URL of a page; that of a ledger is served until it was seen."""
    if page.endswith(".html"):
        yield Path(page).resolve().as_uri()
        return
    program = Path(sys.executable).with_name("privfeat")
    command = [program, "budget", "serve", page]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as served:
        assert served.stdout is not None
        try:
            yield served.stdout.readline().split()[0]
        finally:
            served.send_signal(signal.SIGINT)


def photograph(url: str, path: Path, width: int, height: int) -> None:
    """Write the top of a page as a small PNG."""
    found = filter(None, map(shutil.which, ("chromium", "google-chrome", "chrome")))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=next(found), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": width, "height": height})
        page.goto(url)
        picture = page.screenshot()
        browser.close()
    few = Image.open(io.BytesIO(picture)).convert("RGB").quantize(64)
    few.save(path, optimize=True)


if __name__ == "__main__":
    main()
