"""Draw the pictures of the report in the docs, in a real browser.

    python docs/screenshots.py

Follows the guide ``docs/guides/signed-report.md`` in a new folder, opens its report in
Chromium (Debian: apt install chromium; `pip install -e '.[browser]'`) and writes the
beginning of it, as on a phone and on a screen, to ``docs/report.png``.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image

DOCS = Path(__file__).parent
GUIDE = DOCS / "guides" / "signed-report.md"
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# Width and colours of each window; all are of one height.
WINDOWS = ((900, "light"), (390, "dark"))
HEIGHT, GAP = 1180, 24


def main() -> None:
    """Follow the guide, and draw."""
    from playwright.sync_api import sync_playwright

    path = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
    if path is None:
        raise SystemExit("Chromium must be on the path. Install it.")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        follow(folder)
        browser = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-gpu"]
        )
        report = Path(folder, "report.html").as_uri()
        shots = [shot(browser, report, *window) for window in WINDOWS]
        browser.close()
    width = sum(one.width for one in shots) + GAP * (len(shots) - 1)
    sheet, left = Image.new("RGB", (width, HEIGHT), "#8a8f94"), 0
    for one in shots:
        sheet.paste(one, (left, 0))
        left += one.width + GAP
    # a picture of letters: few colours are enough
    sheet.quantize(128).save(DOCS / "report.png", optimize=True)


def follow(folder: str) -> None:
    """Run the code and the commands of the guide."""
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for language, code in BLOCK.findall(GUIDE.read_text(encoding="utf-8")):
        lines = [code] if language == "python" else code.splitlines()
        program = [sys.executable, "-c"] if language == "python" else ["sh", "-c"]
        for line in lines:
            subprocess.run(
                [*program, line],
                cwd=folder,
                env=os.environ | {"PATH": programs},
                stdout=subprocess.DEVNULL,
                check=True,
            )


def shot(browser: Any, url: str, width: int, scheme: str) -> Image.Image:
    """Return the first screen of a page."""
    window = {"width": width, "height": HEIGHT}
    page = browser.new_page(viewport=window, color_scheme=scheme)
    page.goto(url)
    found = Image.open(BytesIO(page.screenshot()))
    page.close()
    return found.convert("RGB")


if __name__ == "__main__":
    main()
