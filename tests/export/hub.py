"""A stand-in for the hub: what it is asked is kept, and nothing is sent anywhere."""

import json
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


class Hub(BaseHTTPRequestHandler):
    """Answers as huggingface.co does, of one repository."""

    def do_GET(self):
        self.server.asked.append(("GET", self.path, b"", dict(self.headers)))
        self._answer(
            {"id": "me/flowers", "private": self.server.private}
            | {"siblings": [{"rfilename": name} for name in self.server.names]}
            | {"sha": "0" * 40, "modelId": "me/flowers", "tags": []}
        )

    def do_POST(self):
        size = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(size) if size else self._chunks()
        self.server.asked.append(("POST", self.path, body, dict(self.headers)))
        if self.path.endswith("/create"):
            self._answer({"url": f"{self.server.url}/me/flowers", "name": "flowers"})
        elif "/preupload/" in self.path:
            files = json.loads(body)["files"]
            regular = {"uploadMode": "regular", "shouldIgnore": False, "oid": None}
            self._answer({"files": [{"path": f["path"], **regular} for f in files]})
        else:
            commit = {"commitUrl": f"{self.server.url}/me/flowers/commit/{'0' * 40}"}
            self._answer(commit | {"commitOid": "0" * 40, "success": True})

    def _chunks(self):
        """Return a body that is sent in parts."""
        found = b""
        while size := int(self.rfile.readline() or b"0", 16):
            found += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return found

    def _answer(self, value):
        content = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args):
        """Print nothing."""


@contextmanager
def stand_in(*, private=True, names=()):
    """Give a server on this machine; ``private`` is what its repository is.

    ``names`` are those of the files that it has.
    """
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    server.asked, server.private, server.names = [], private, names
    server.url = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
