"""Serve one page and its answers over HTTP to this machine's browser alone.

Three things keep other people out. The server listens on the loopback interface only. Every address begins
with a secret, since all users of this machine reach the loopback interface. And a request must name this
machine in its Host and Origin headers, so that a page from elsewhere that points a name of its own at
127.0.0.1 (DNS rebinding) is refused. A browser is started with an address that works once, because command
lines are visible to all users; it is redirected to the secret one.

A connection carries one request and lives for a bounded time; their number is bounded too. Nothing that a
client sends makes the server write a traceback or stop serving.
"""

from __future__ import annotations

import contextlib
import hmac
import secrets
import socket
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, final
from urllib.parse import urlsplit

from dalembert.errors import DalembertError
from dalembert.host.process import renew_after_fork

ADDRESS: Final = "127.0.0.1"
"""The loopback interface, which other machines do not reach."""
NAMES: Final = ("127.0.0.1", "localhost")
"""Names under which a browser on this machine asks."""
MAX_BODY_BYTES: Final = 1 << 20
"""Length of a request's body: 1 MiB holds the sliders of some 50,000 joints."""
MAX_LENGTH_DIGITS: Final = 18
"""Digits of a Content-Length that are read as a number; Python refuses to convert thousands of them."""
MAX_CONNECTIONS: Final = 64
"""Connections served at the same time; a browser opens six."""
CONNECTION_SECONDS: Final = 30.0
"""Time that a connection may take from its first byte to its end [s]; a loop closure takes milliseconds."""
TICKET_SECONDS: Final = 120.0
"""Time for which the address that works once is valid [s]: a browser may take as long to start."""
POLL_SECONDS: Final = 0.1
"""Interval [s] at which the server looks for its end and for connections that took too long."""


@final
class PageServer(ThreadingHTTPServer):
    """A page at `url`, and `answer(body)` to each POST at `url` + "pose"; `close()` ends it."""

    daemon_threads = True
    request_queue_size = 2 * MAX_CONNECTIONS

    def __init__(self, port: int, page: bytes, answer: Callable[[bytes], bytes]) -> None:
        self.page = page
        self.answer = answer
        self.ended = False
        self._secret = secrets.token_urlsafe(24)
        self._ticket: tuple[str, float] | None = None
        self._opened: dict[socket.socket, float] = {}
        self._lock = threading.Lock()
        renew_after_fork(self)
        super().__init__((ADDRESS, port), _Handler)
        self.port: int = self.server_address[1]
        self.path = f"/{self._secret}/"
        self.url = f"http://{ADDRESS}:{self.port}{self.path}"
        self._thread = threading.Thread(target=self.serve_forever, args=(POLL_SECONDS,), daemon=True)
        self._thread.start()

    def one_time_url(self) -> str:
        """Return an address that leads to the page once, and soon: fit to stand on a command line."""
        ticket = secrets.token_urlsafe(24)
        with self._lock:
            self._ticket = ticket, time.monotonic() + TICKET_SECONDS
        return f"http://{ADDRESS}:{self.port}/once/{ticket}"

    def is_page(self, path: str, name: str = "") -> bool:
        """Return whether a path is the secret one, followed by a name."""
        return _equal(path, self.path + name)

    def redeem(self, path: str) -> bool:
        """Return whether a path is the one that works once, which it does not from now on."""
        with self._lock:
            if self._ticket is None or time.monotonic() > self._ticket[1]:
                return False
            if not _equal(path, f"/once/{self._ticket[0]}"):
                return False
            self._ticket = None
            return True

    def is_serving(self, seconds: float) -> bool:
        """Wait for the end of the server, for at most `seconds` [s], and return whether it goes on."""
        self._thread.join(seconds)
        return self._thread.is_alive()

    def close(self) -> None:
        """Stop serving; connections that are open get one last answer."""
        self.ended = True
        self.shutdown()
        self.server_close()
        self._thread.join()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread of its own, unless there are too many."""
        with self._lock:
            full = len(self._opened) >= MAX_CONNECTIONS
            if not full:
                self._opened[request] = time.monotonic()
        if full:
            self.shutdown_request(request)
        else:
            super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._opened.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """End connections that took too long: a client that sends a byte now and then holds a thread."""
        now = time.monotonic()
        with self._lock:
            late = [one for one, since in self._opened.items() if now - since > CONNECTION_SECONDS]
        for one in late:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report an error of the viewer in one line; a client that has left is not an error."""
        error = sys.exception()
        if not isinstance(error, OSError):
            sys.stderr.write(f"dalembert: viewer: {type(error).__name__}: {error}\n")


def _equal(given: str, wanted: str) -> bool:
    """Compare in a time that does not tell how much of the secret was right."""
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), wanted.encode())


@final
class _Handler(BaseHTTPRequestHandler):
    """One request: the page, an answer, or an error of the 4xx kind."""

    server: PageServer
    server_version = "dalembert"
    sys_version = ""
    timeout = CONNECTION_SECONDS
    default_request_version = "HTTP/1.0"  # of request lines without a version: answers have a status line

    def do_GET(self) -> None:
        if not self._is_from_here():
            return
        if self.server.redeem(self.path):
            self._answer(303, "text/plain", b"The viewer is here.", Location=self.server.path)
        elif self.server.is_page(self.path):
            self._answer(200, "text/html; charset=utf-8", self.server.page)
        else:
            self._refuse(404, "There is nothing here. Open the address that the viewer printed.")

    do_HEAD = do_GET

    def do_POST(self) -> None:
        if not self._is_from_here():
            return
        if not self.server.is_page(self.path, "pose"):
            self._refuse(403, "This page belongs to another viewer; load it again.")
            return
        size = self._body_size()
        if size is None:
            return
        body = self.rfile.read(size)
        if len(body) < size:
            self._refuse(400, f"The body has {len(body)} bytes; its Content-Length says {size}.")
            return
        try:
            self._answer(200, "application/octet-stream", self.server.answer(body))
        except DalembertError as error:
            self._refuse(400, str(error))

    def _body_size(self) -> int | None:
        """Return the length of the body; None after an answer that refuses it."""
        lengths = self.headers.get_all("Content-Length", [])
        if "Transfer-Encoding" in self.headers or not lengths:
            self._refuse(411, "The viewer needs the length of a question: Content-Length.")
        elif len(lengths) > 1 or not (lengths[0].isascii() and lengths[0].isdecimal()):
            self._refuse(400, "Content-Length must be one whole number of bytes.")
        elif len(lengths[0]) > MAX_LENGTH_DIGITS or int(lengths[0]) > MAX_BODY_BYTES:
            self._refuse(413, f"The question is longer than {MAX_BODY_BYTES} bytes.")
        else:
            return int(lengths[0])
        return None

    def _is_from_here(self) -> bool:
        """Return whether the browser asked for this machine by its own name, from this machine's page."""
        if self.server.ended:  # connections that were open then may live on for a while
            self._refuse(410, "The viewer was ended.")
            return False
        hosts, origins = self.headers.get_all("Host", []), self.headers.get_all("Origin", [])
        if len(hosts) > 1 or len(origins) > 1:
            self._refuse(400, "A request has one Host and at most one Origin.")
            return False
        own = {f"{name}:{self.server.port}" for name in NAMES}
        if hosts and hosts[0].lower() in own and all(_host(origin) in own for origin in origins):
            return True
        self._refuse(403, "The viewer answers this machine's browser alone.")
        return False

    def _refuse(self, status: int, text: str) -> None:
        self._answer(status, "text/plain; charset=utf-8", text.encode("utf-8", "replace"))

    def _answer(self, status: int, kind: str, content: bytes, **headers: str) -> None:
        self.send_response(status)
        headers = {
            "Content-Type": kind,
            "Content-Length": str(len(content)),
            "Cache-Control": "no-store",
            "Referrer-Policy": "no-referrer",
            "Cross-Origin-Resource-Policy": "same-origin",
            "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "DENY",
            **headers,
        }
        for name, text in headers.items():
            self.send_header(name, text)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse a request that was not understood."""
        self._refuse(code, message or explain or "The request was not understood.")

    def log_message(self, format: str, *args: Any) -> None:
        pass


def _host(origin: str) -> str:
    """Return host:port of an http origin; empty for any other text."""
    try:
        parts = urlsplit(origin)
    except ValueError:  # such as an address in brackets that is none
        return ""
    return parts.netloc.lower() if parts.scheme == "http" else ""
