"""The server of a page: who may read it, and by which name."""

import http.client
import socket
import threading

import pytest

from privfeat import LedgerError
from privfeat.report.serving import HOST, PageServer


@pytest.fixture
def serve():
    """Return a function that serves a page in a thread."""
    servers = []

    def serve(render=lambda: "<p>ε</p>"):
        server = PageServer(render)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        servers.append((server, thread))
        return server

    yield serve
    for server, thread in servers:
        server.shutdown()
        thread.join()
        server.server_close()


def ask(server, path=None, method="GET", hosts=None):
    """Return the answer to a request with these names of the host."""
    connection = http.client.HTTPConnection(HOST, server.server_port, timeout=60)
    path = server.path if path is None else path
    connection.putrequest(method, path, skip_host=True)
    for host in [f"{HOST}:{server.server_port}"] if hosts is None else hosts:
        connection.putheader("Host", host.replace("PORT", str(server.server_port)))
    connection.endheaders()
    answer = connection.getresponse()
    content = answer.read().decode()
    connection.close()
    return answer, content


def test_page_is_served_to_who_knows_its_name(serve):
    server = serve()
    assert server.url == f"http://127.0.0.1:{server.server_port}{server.path}"
    answer, content = ask(server)
    assert (answer.status, content) == (200, "<p>ε</p>")
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert ask(server, hosts=["LocalHost:PORT"])[0].status == 200


def test_page_is_made_anew_every_time(serve):
    pages = iter(["first", "second"])
    server = serve(lambda: next(pages))
    assert [ask(server)[1] for _ in range(2)] == ["first", "second"]


def test_page_is_not_cached_framed_or_told_to_others(serve):
    answer, _ = ask(serve())
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert answer.headers["X-Frame-Options"] == "DENY"
    policy = answer.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'")
    assert "script" not in policy
    assert answer.headers["Access-Control-Allow-Origin"] is None
    assert "Python" not in answer.headers["Server"]


@pytest.mark.parametrize(
    "hosts",
    [
        *([], ["evil.example:PORT"], ["127.0.0.1"], ["127.0.0.1:1"], [""]),
        *(["127.0.0.1.evil.example:PORT"], ["127.0.0.1:PORT", "127.0.0.1:PORT"]),
        ["127.0.0.1:PORT", "evil.example:PORT"],
    ],
)
def test_another_name_of_the_host_is_refused(serve, hosts):
    """As after DNS rebinding: a page of another site that knows even the path."""
    answer, content = ask(serve(), hosts=hosts)
    assert answer.status == 403
    assert "ε" not in content


@pytest.mark.parametrize(
    "path", ["/", "/favicon.ico", "/x/", "TOKEN?", "TOKEN#", "TOKENx", "/../TOKEN", "é"]
)
def test_another_path_is_not_found(serve, path):
    server = serve()
    path = path.replace("TOKEN", server.path).encode().decode("latin-1")
    with socket.create_connection((HOST, server.server_port), timeout=60) as opened:
        host = f"Host: {HOST}:{server.server_port}"
        opened.sendall(f"GET {path} HTTP/1.0\r\n{host}\r\n\r\n".encode("latin-1"))
        answer = opened.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.0 404 ")
    assert "ε".encode() not in answer


def test_names_of_pages_are_long_and_differ(serve):
    paths = {serve().path for _ in range(3)}
    assert len(paths) == 3
    assert {len(path) for path in paths} == {34}


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_nothing_can_be_sent(serve, method):
    assert ask(serve(), method=method)[0].status == 501


def test_head_has_no_page(serve):
    answer, content = ask(serve(), method="HEAD")
    assert (answer.status, content) == (200, "")
    assert answer.headers["Content-Length"] == "9"


def test_a_ledger_that_cannot_be_read_is_said_and_the_server_goes_on(serve):
    pages = [LedgerError("ledger <b> is damaged"), None]

    def render():
        error = pages.pop(0)
        if error is not None:
            raise error
        return "well"

    server = serve(render)
    answer, content = ask(server)
    assert (answer.status, content) == (500, "ledger <b> is damaged\n")
    assert answer.headers["Content-Type"].startswith("text/plain")
    assert ask(server)[1] == "well"


def test_server_is_for_this_machine_alone_and_prints_no_path(serve, capfd):
    server = serve()
    assert server.server_address[0] == "127.0.0.1"
    ask(server)
    ask(server, path="/x")
    assert capfd.readouterr() == ("", "")


def test_a_port_in_use_is_an_error(serve):
    with pytest.raises(OSError, match="in use"):
        PageServer(lambda: "", port=serve().server_port)
