"""``privfeat budget serve``: the ledger is read, and nothing else happens to it."""

import http.client
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from privfeat import PrivacyLedger
from tests.core.ledgers import make_statement

GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.fixture
def path(tmp_path, capsys):
    path = tmp_path / "team.ledger"
    ledger = PrivacyLedger(path, dataset="tiny", epsilon=3.0, delta=1e-5, who="Ann")
    ledger.charge(make_statement(epsilon=1.0), estimator="DPFC")
    capsys.readouterr()  # that it was created
    return path


def test_out_writes_the_page_once_and_leaves_the_ledger_alone(run, path, tmp_path):
    before, page = path.read_bytes(), tmp_path / "page.html"
    os.utime(path, (1, 1))
    path.chmod(0o400)
    assert run("budget", "serve", path, "--out", page)[0] == 0
    text = page.read_text(encoding="utf-8")
    assert "<h2>tiny</h2>" in text
    assert "Ann" in text
    assert (path.read_bytes(), path.stat().st_mtime) == (before, 1)
    assert sorted(os.listdir(tmp_path)) == ["page.html", "team.ledger"]


def test_a_ledger_that_is_not_there_is_not_made(fails, tmp_path):
    path, page = tmp_path / "none", tmp_path / "page.html"
    assert "no such file" in fails("budget", "serve", path, "--out", page)
    assert os.listdir(tmp_path) == []


def test_an_old_ledger_is_not_taken_over(fails, tmp_path):
    path = Path(shutil.copy(GOLDEN / "ledger-v1.sqlite", tmp_path))
    before = path.read_bytes()
    told = fails("budget", "serve", path, "--out", tmp_path / "page.html")
    assert "`privfeat budget show` takes it over" in told
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == [path.name]


def test_the_page_does_not_take_the_place_of_the_ledger(fails, path, tmp_path):
    other = tmp_path / "link.html"
    before = path.read_bytes()
    os.link(path, other)
    for out in (path, other):
        assert "it is a ledger" in fails("budget", "serve", path, "--out", out)
        assert out.read_bytes() == before


@pytest.mark.parametrize("port", [-1, 65536])
def test_serve_refuses_what_is_no_port(fails, path, port):
    assert "--port must be in" in fails("budget", "serve", path, "--port", port)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("end", "status"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)], ids=["c", "term"]
)
def test_serve_shows_the_page_until_it_is_interrupted(path, end, status):
    before = path.read_bytes()
    # a process in the background is started with this signal ignored
    script = (
        "import signal, sys; from privfeat.cli import main\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", script, "budget", "serve", path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as served:
        try:
            url = urlsplit(served.stdout.readline().split()[0])
            connection = http.client.HTTPConnection(url.netloc, timeout=300)
            connection.request("GET", url.path)
            answer = connection.getresponse()
            assert answer.status == 200
            assert b"<h2>tiny</h2>" in answer.read()
            connection.close()
        finally:
            served.send_signal(end)
        assert served.wait(timeout=300) == status
    assert path.read_bytes() == before
