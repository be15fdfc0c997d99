"""A web server on this machine, for tests of downloads."""

import hashlib
import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CONTENT = bytes(range(256)) * 4000
CHECKSUM = f"sha256:{hashlib.sha256(CONTENT).hexdigest()}"


class Server(ThreadingHTTPServer):
    """Sends CONTENT at every path, or pages; notes what was asked for, and can break off."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[str | None] = []  # the Range header of every request
        self.content = CONTENT
        self.pages: dict[str, bytes] | None = None
        self.break_after: int | None = None
        self.knows_ranges = True
        self.status = 200

    def address(self, name: str = "data.bin") -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/{name}"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        server = self.server
        assert isinstance(server, Server)
        asked = self.headers.get("Range")
        server.asked.append(asked)
        if server.status != 200:
            self.send_error(server.status)
            return
        if server.pages is not None:
            if self.path not in server.pages:
                self.send_error(404)
                return
            server.content = server.pages[self.path]
        wanted = re.fullmatch(r"bytes=(\d+)-", asked) if asked and server.knows_ranges else None
        start = int(wanted[1]) if wanted else 0
        if wanted and start >= len(server.content):
            self.send_error(416)
            return
        body = server.content[start:]
        self.send_response(206 if wanted else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: server.break_after])

    def log_message(self, *_: object) -> None: ...
