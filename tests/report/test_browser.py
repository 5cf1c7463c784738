"""The pages in a real browser: narrow and wide, light and dark, and on paper."""

import io
import shutil
import threading
import unicodedata
from dataclasses import replace

import numpy as np
import pytest

from privfeat import PrivacyLedger
from privfeat.core.ledger.opening import read_accounts
from privfeat.exceptions import PrivacyWarning
from privfeat.metrics import evaluation_of_predictions
from privfeat.report.html import FitReport, render_html
from privfeat.report.serving import PageServer
from privfeat.report.spending import render_spending
from tests.report.conftest import state

pytestmark = [
    pytest.mark.browser,
    # the driver of the browser leaves its event loop to the interpreter
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


# What is wider than its box, or beyond the window.
CUT = """width => [...document.querySelectorAll("main *:not(svg *)")]
    .filter(e => e.clientWidth && e.scrollWidth > e.clientWidth + 1
        || e.getBoundingClientRect().right > width + 1)
    .map(e => e.outerHTML.slice(0, 200))"""


@pytest.fixture(scope="module")
def open_page():
    api = pytest.importorskip("playwright.sync_api")
    path = next(
        filter(None, map(shutil.which, ("chromium", "google-chrome", "chrome"))), None
    )
    if path is None:
        pytest.skip("needs Chromium on the path")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox"]
        )
        yield lambda **options: patient(browser.new_page(**options))
        browser.close()


def patient(page):
    """Nothing here is timed: a machine that is busy, or asleep, must not fail it."""
    page.set_default_timeout(0)
    return page


def picture_of(page):
    """Return the whole page as a PNG.

    On a busy machine Chromium now and then has no frame to give ("Unable to capture
    screenshot"), and has one when asked again.
    """
    api = pytest.importorskip("playwright.sync_api")
    for _ in range(4):
        try:
            return page.screenshot(full_page=True)
        except api.Error as error:
            if "Unable to capture" not in str(error):
                raise
    return page.screenshot(full_page=True)


@pytest.fixture(params=["full", "unknown"])
def page_file(request, full_report, tmp_path):
    """A page with every section, or one in red, of users, with private figures."""
    report = full_report if request.param == "full" else unknown_report()
    path = tmp_path / "report.html"
    path.write_text(render_html(report), encoding="utf-8")
    return path


def unknown_report():
    draw = np.random.default_rng(0)
    y, p = draw.integers(0, 2, 4000), draw.random(4000)
    with pytest.warns(PrivacyWarning, match="random_state"):
        seeded = evaluation_of_predictions(
            np.c_[1.0 - p, p], y, classes=[0, 1], random_state=0
        )
    return FitReport(
        "A title of one very long word: " + "x" * 80,
        state(unit="user"),
        class_names=("a class whose name is rather long", "y" * 60),
        evaluation=seeded,
        reproduce="z" * 200,
    )


@pytest.fixture
def served(tmp_path):
    """Return where the page about a ledger is, as `privfeat budget serve` says."""
    path = tmp_path / "a.ledger"
    ledger = PrivacyLedger(path, dataset="a" * 200, epsilon=3, delta=1e-5, who="Ann")
    for epsilon in (0.5, 1.0):
        ledger.charge(state(epsilon=epsilon), estimator="DPFC")
    PrivacyLedger(path, dataset="unused", epsilon=1, delta=1e-6)
    with PageServer(
        lambda: render_spending(read_accounts(path), place=str(path))
    ) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.url
        server.shutdown()
        thread.join()


WIDTHS = pytest.mark.parametrize("width", [390, 768, 1280])
SCHEMES = pytest.mark.parametrize("scheme", ["light", "dark"])


@WIDTHS
@SCHEMES
def test_report_fits_and_is_accessible(open_page, page_file, width, scheme, tmp_path):
    page = check(open_page, page_file.as_uri(), width, scheme, tmp_path, n_charts=4)
    assert page.evaluate(CUT, width) == []
    page.close()


@WIDTHS
@SCHEMES
def test_page_of_a_ledger_fits_and_is_accessible(
    open_page, served, width, scheme, tmp_path
):
    # its wide tables scroll, each by itself
    check(open_page, served, width, scheme, tmp_path, n_charts=1).close()


def check(open_page, url, width, scheme, tmp_path, *, n_charts):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    page = open_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
    requests, problems = [], []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: problems.append(message.text))
    page.goto(url)
    assert requests == [url]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("svg").count() == n_charts
    for box in page.locator("svg").evaluate_all(
        "all => all.map(e => e.getBoundingClientRect().width)"
    ):
        assert 250 < box <= width
    picture = picture_of(page)
    (tmp_path / "page.png").write_bytes(picture)  # for people to look at
    assert int.from_bytes(picture[16:20]) == width
    found = axe.Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    assert problems == []
    return page


def test_wide_tables_become_blocks_on_a_phone(open_page, page_file):
    page = open_page(viewport={"width": 390, "height": 800})
    page.goto(page_file.as_uri())
    wide = page.locator("table.wide")
    assert wide.count() >= 3
    for style in wide.evaluate_all("all => all.map(e => getComputedStyle(e).display)"):
        assert style == "block"
    # for a screen reader they are still tables
    assert page.get_by_role("table", name="Releases").get_by_role("row").count() == 1
    page.close()


@pytest.mark.parametrize("n_charges", [0, 3, 9, 14, 40])
def test_report_prints(open_page, full_report, tmp_path, n_charges):
    """Wherever pages end: no heading is left alone, and no small table is split."""
    pypdf = pytest.importorskip("pypdf")
    charges = tuple({"number": i, "for": f"fit {i}"} for i in range(n_charges))
    path = tmp_path / "report.html"
    long = replace(full_report, ledger=replace(full_report.ledger, charges=charges))
    path.write_text(render_html(long), encoding="utf-8")
    page = open_page()
    page.goto(path.as_uri())
    headings = page.locator("h1, h2, h3").all_text_contents()
    tables = page.locator("table.whole").all_text_contents()
    paper = page.pdf(prefer_css_page_size=True, print_background=True)
    page.close()
    pages = [
        squeezed(one.extract_text()) for one in pypdf.PdfReader(io.BytesIO(paper)).pages
    ]
    assert len(pages) <= 7 + n_charges // 40
    left = list(pages)
    for heading in map(squeezed, headings):  # in their order: texts may name them
        while heading not in left[0]:
            del left[0]
        left[0] = left[0].partition(heading)[2]
        assert len(left[0]) > 30, heading
    assert len(tables) > 8
    for table in map(squeezed, tables):
        assert any(table in text for text in pages), table


def squeezed(text):
    """Return a text without blanks and ligatures: lines break where they may."""
    return "".join(unicodedata.normalize("NFKC", text).split())
