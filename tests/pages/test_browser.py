"""The site in a real browser, from a folder: widths, light and dark, and its search."""

import os
import subprocess
import sys

import pytest

from tests.pages.blocks import ROOT
from tests.report.test_browser import open_page  # noqa: F401, a fixture

pytestmark = [
    pytest.mark.browser,
    # the driver of the browser leaves its event loop to the interpreter
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1", "JAX_PLATFORMS": "cpu"},
        check=True,
        timeout=1500,  # it runs the gallery, unless another test did
    )
    return folder


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_all_pages_fit_and_are_accessible(open_page, site, width, scheme):  # noqa: F811
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    page = open_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    requests, wrong = [], {}
    page.on("request", lambda request: requests.append(request.url))
    files = sorted(file for file in site.rglob("*.html") if file.name != "404.html")
    assert len(files) > 50
    for file in files:
        page.goto(file.as_uri())
        page.wait_for_load_state("load")
        found = [one["id"] for one in axe.Axe().run(page).response["violations"]]
        if page.evaluate("document.documentElement.scrollWidth") > width:
            found.append("wider than the window")
        for image in page.locator("article img").all():
            image.scroll_into_view_if_needed()
            if not image.evaluate("i => i.decode().then(() => i.naturalWidth)"):
                found.append("a picture that is not shown")
        if found:
            wrong[str(file.relative_to(site))] = found
    assert wrong == {}
    assert {url.partition(":")[0] for url in requests} <= {"file", "data", "blob"}
    page.close()


def test_search_works_without_a_server(open_page, site):  # noqa: F811
    page = open_page(viewport={"width": 1280, "height": 900})
    page.goto((site / "index.html").as_uri())
    page.locator("input.md-search__input").fill("temperature scaling")
    first = page.locator(".md-search-result__item a").first
    first.wait_for()
    assert first.get_attribute("href").startswith(site.as_uri())
    page.close()
