"""A page for the browser of this machine alone, read anew each time it is asked for.

The server listens on 127.0.0.1. Other users of the machine, and pages of other sites in
the same browser, could reach that address: so the page is under a random name that only
the printed URL has, and a request by another name of the host (DNS rebinding) is
refused. It answers GET and HEAD, and changes nothing.
"""

import hmac
import uuid
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock
from typing import Any

from privfeat.exceptions import PrivacyError

HOST = "127.0.0.1"
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class PageServer(ThreadingHTTPServer):
    """A server of one page, which ``render`` makes.

    A `PrivacyError` of ``render`` is shown in its place. Port 0 is any that is free;
    OSError if the port is taken. Everyone on this machine who knows the ``url``
    may read the page.
    """

    daemon_threads = True
    allow_reuse_address = False

    def __init__(self, render: Callable[[], str], *, port: int = 0) -> None:
        super().__init__((HOST, port), _Handler)
        self.path = f"/{uuid.uuid4().hex}/"  # 122 random bits of the operating system
        self.url = f"http://{HOST}:{self.server_port}{self.path}"
        self._render, self._turn = render, Lock()

    def page(self) -> tuple[HTTPStatus, str, str]:
        """Return the status, the type and the text of an answer."""
        with self._turn:  # matplotlib draws one chart at a time
            try:
                return HTTPStatus.OK, "text/html", self._render()
            except PrivacyError as error:
                return HTTPStatus.INTERNAL_SERVER_ERROR, "text/plain", f"{error}\n"


class _Handler(BaseHTTPRequestHandler):
    server: PageServer
    server_version, sys_version = "privfeat", ""
    timeout = 30  # seconds for a request to come

    def do_GET(self) -> None:
        """Answer with the page, if it is asked for by its name."""
        hosts = {f"{name}:{self.server.server_port}" for name in (HOST, "localhost")}
        asked = self.path.encode(errors="surrogateescape")
        named = self.headers.get_all("Host", [])
        if len(named) != 1 or named[0].lower() not in hosts:
            found = HTTPStatus.FORBIDDEN, "text/plain", "wrong name of this host\n"
        elif not hmac.compare_digest(asked, self.server.path.encode()):
            found = HTTPStatus.NOT_FOUND, "text/plain", "not here\n"
        else:
            found = self.server.page()
        status, kind, text = found
        content = text.encode()
        self.send_response(status)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    do_HEAD = do_GET

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing: the path is the secret of the page."""
