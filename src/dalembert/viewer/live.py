"""The live viewer: the page of recordings with sliders, served to this machine's browser alone."""

from __future__ import annotations

import json
import secrets
import sys
import threading
import webbrowser
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, final
from urllib.parse import urlsplit

import numpy as np

from dalembert.errors import ArgumentError, DalembertError, FileError
from dalembert.viewer.frames import frames_of
from dalembert.viewer.page import page_of
from dalembert.viewer.scene import poses_of, scene_of
from dalembert.viewer.shape_data import encoded
from dalembert.viewer.sliders import configuration_of, has_loops, sliders_of, values_of

__all__ = ["Viewer", "view"]

ADDRESS: Final = "127.0.0.1"
"""This machine, and nobody else's."""
NAMES: Final = ("127.0.0.1", "localhost")
"""Under which a browser on this machine asks; another name means that a page from elsewhere does."""
MAX_QUESTION: Final = 1 << 20
"""Bytes of a question; more are refused."""


@final
class Viewer:
    """A page that is being served: `url`, until `close()`; also as a context, `with da.viewer.view(…)`."""

    def __init__(self, motion: Any, *, port: int, title: str | None, fps: float, follow: str | None) -> None:
        frames = frames_of(motion, fps=fps)
        self._model = frames.model
        self._sliders = sliders_of(frames.model)
        self._ended = False
        self._token = secrets.token_urlsafe(16)
        scene = scene_of(frames, title=title if title is not None else frames.model.name, follow=follow)
        values = [values_of(self._sliders, q) for q in frames.q]
        scene["live"] = {
            "token": self._token,
            "sliders": [
                {"value": value, **asdict(slider)} for slider, value in zip(self._sliders, values[0])
            ],
            "loops": has_loops(frames.model),
            "values": encoded(np.array(values), "<f4") if len(values) > 1 else None,
        }
        self._page = page_of(scene).encode()
        try:
            self._server = ThreadingHTTPServer((ADDRESS, port), _handler(self))
        except OSError as error:
            raise FileError(
                f"port {port} cannot be used: {error.strerror or error}; leave it out to get a free one"
            ) from error
        self._server.daemon_threads = True
        self.port: int = self._server.server_address[1]
        self.url = f"http://{ADDRESS}:{self.port}/"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), daemon=True)
        self._thread.start()

    def poses(self, question: bytes) -> bytes:
        """The answer to a page: float32 positions and quaternions of the bodies for values of its sliders,
        and those values again, which loops may have changed.
        """
        try:
            asked = json.loads(question)
            values, moved = np.array(asked["values"], dtype=np.float64), asked["moved"]
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise ArgumentError('expected {"values": […], "moved": …}') from error
        if moved is not None and moved not in range(len(self._sliders)):
            raise ArgumentError(f"there is no slider {moved}")
        q = configuration_of(self._model, self._sliders, values, moved=moved)
        poses = poses_of(self._model, q[np.newaxis], np.zeros(1)).ravel()
        return np.concatenate([poses, values_of(self._sliders, q)]).astype("<f4").tobytes()

    def wait(self) -> None:
        """Until Ctrl-C, which ends the viewer."""
        try:
            while self._thread.is_alive():
                self._thread.join(0.5)
        except KeyboardInterrupt:
            pass
        finally:
            self.close()

    def close(self) -> None:
        """Stop serving the page."""
        self._ended = True
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Viewer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f'<Viewer of "{self._model.name}" at {self.url}>'


def view(
    motion: Any,
    *,
    port: int = 0,
    open_browser: bool = True,
    block: bool = True,
    title: str | None = None,
    fps: float = 60.0,
    follow: str | None = None,
) -> Viewer:
    """Show a model or a motion in the browser, with sliders for its joints; Ctrl-C ends it.

    `motion` as for `record`. The page is served on 127.0.0.1 alone, at a free port unless one is given.
    With `block=False` the call returns at once and `close()` of what it returns ends the viewer. A slider
    moves one coordinate within its limits; quaternions have three angles; loops stay closed.

    >>> with da.viewer.view(da.models.arm7(), open_browser=False, block=False) as viewer:
    ...     viewer.url.startswith("http://127.0.0.1:")
    True
    """
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port < 65536:
        raise ArgumentError(f"port is {port!r}; give a number from 0 (any that is free) to 65535")
    viewer = Viewer(motion, port=port, title=title, fps=fps, follow=follow)
    if open_browser:
        webbrowser.open(viewer.url)
    if block:
        sys.stderr.write(f"dalembert: showing {viewer._model.name} at {viewer.url}; Ctrl-C ends it\n")
        viewer.wait()
    return viewer


def _handler(viewer: Viewer) -> type[BaseHTTPRequestHandler]:
    @final
    class Handler(BaseHTTPRequestHandler):
        server_version = "dalembert"
        sys_version = ""
        timeout = 30

        def do_GET(self) -> None:
            if not self._from_here():
                return
            if urlsplit(self.path).path == "/":
                self._answer(200, "text/html; charset=utf-8", viewer._page)
            else:
                self._answer(404, "text/plain", b"There is nothing here; the viewer is at /")

        def do_POST(self) -> None:
            if not self._from_here():
                return
            length = self.headers.get("Content-Length", "")
            size = int(length) if length.isdecimal() else MAX_QUESTION + 1
            given = self.headers.get("X-Dalembert", "")
            if self.path != "/pose" or not secrets.compare_digest(given.encode(), viewer._token.encode()):
                self._answer(403, "text/plain", b"This page belongs to another viewer; load it again.")
            elif size > MAX_QUESTION:
                self._answer(413, "text/plain", b"The question is too long.")
            else:
                try:
                    self._answer(200, "application/octet-stream", viewer.poses(self.rfile.read(size)))
                except DalembertError as error:
                    self._answer(400, "text/plain; charset=utf-8", str(error).encode())

        def _from_here(self) -> bool:
            """Whether the browser asked for this machine by its own name; pages from elsewhere, which point
            a name of theirs at this machine, are refused.
            """
            if viewer._ended:  # connections that were open then may live on for a while
                self._answer(410, "text/plain", b"The viewer was ended.")
                return False
            host = self.headers.get("Host", "").rsplit(":", 1)[0]
            origin = self.headers.get("Origin")
            if host in NAMES and (origin is None or urlsplit(origin).hostname in NAMES):
                return True
            self._answer(403, "text/plain", b"The viewer answers this machine's browser alone.")
            return False

        def _answer(self, status: int, kind: str, content: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Cache-Control", "no-store")
            self.send_header("X-Content-Type-Options", "nosniff")
            self.send_header("X-Frame-Options", "DENY")
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler
