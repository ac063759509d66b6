"""The live viewer: the page of recordings with sliders, served to this machine's browser alone.

There is one slider for each coordinate of a joint and three angles for each quaternion. Joints that a
coupling moves have none; loops are closed after each move.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import math
import secrets
import socket
import sys
import threading
import time
import webbrowser
from collections.abc import Callable
from dataclasses import asdict, dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, final
from urllib.parse import urlsplit

import numpy as np

from dalembert.api.constraints import close_loops
from dalembert.errors import ArgumentError, DalembertError, FileError, own_errors, require_flag
from dalembert.host.process import renew_after_fork
from dalembert.model.model import Model
from dalembert.spatial.rotations import (
    euler_angles_of_rotation,
    quaternion_of_rotation,
    rotation_of_euler_angles,
    rotation_of_quaternion,
)
from dalembert.viewer.drawing import Array, to_base64
from dalembert.viewer.frames import frames_of
from dalembert.viewer.page import page_of, poses_of, scene_of

WAIT_SECONDS: Final = 0.5
"""Interval [s] of looking for Ctrl-C: on Windows a join without a time-out is not interrupted."""
UNLIMITED: Final = {"angle": (-math.pi, math.pi), "length": (-2.0, 2.0)}
"""Ranges of coordinates without limits, by what they measure [rad, m]."""
TURNS: Final = {"yaw": math.pi, "pitch": math.pi / 2.0, "roll": math.pi}
"""A quaternion as rotations about z, then the new y, then the new x, with their bounds [rad]."""


@final
class Viewer:
    """A page that is being served: `url`, until `close()`; also as a context, `with da.viewer.view(…)`.

    The address holds a secret: whoever knows it can see the page.
    """

    def __init__(self, motion: Any, *, port: int, title: str | None, fps: float, follow: str | None) -> None:
        frames = frames_of(motion, fps=fps)
        self._model = frames.model
        self._sliders = sliders_of(frames.model)
        scene = scene_of(frames, title=title, follow=follow)
        values = [values_of(self._sliders, q) for q in frames.q]
        scene["live"] = {
            "sliders": [
                {"value": value, **asdict(slider)} for slider, value in zip(self._sliders, values[0])
            ],
            "loops": bool(frames.model.loop_names),
            "values": to_base64(np.array(values), "<f4") if len(values) > 1 else None,
        }
        try:
            self._server = PageServer(port, page_of(scene).encode(), self.poses)
        except OSError as error:
            raise FileError(
                f"port {port} cannot be used: {error.strerror or error}; leave it out to get a free one"
            ) from error
        self.port = self._server.port
        self.url = self._server.url

    def poses(self, question: bytes) -> bytes:
        """Answer a page: float32 positions and quaternions of bodies for its sliders, and their values."""
        try:
            asked = json.loads(question)
            values, moved = np.array(asked["values"], dtype=np.float64), asked["moved"]
        except (ValueError, TypeError, LookupError, RecursionError, OverflowError) as error:
            raise ArgumentError('expected {"values": […], "moved": …}') from error
        if moved is not None and (type(moved) is not int or not 0 <= moved < len(self._sliders)):
            raise ArgumentError(f"there is no slider {moved}")
        q = configuration_of(self._model, self._sliders, values, moved=moved)
        poses = poses_of(self._model, q[np.newaxis], np.zeros(1)).ravel()
        with np.errstate(over="ignore"):  # what float32 does not hold is out of sight
            return np.concatenate([poses, values_of(self._sliders, q)]).astype("<f4").tobytes()

    def wait(self) -> None:
        """Serve the page until Ctrl-C, or until the viewer is closed by another thread."""
        try:
            while self._server.is_serving(WAIT_SECONDS):
                pass
        except KeyboardInterrupt:
            pass
        finally:
            self.close()

    def close(self) -> None:
        """Stop serving the page."""
        self._server.close()

    def open_browser(self) -> None:
        """Open the page in the user's browser. Its command line, which others can read, shows an address
        that works once."""
        webbrowser.open(self._server.one_time_url())

    def __enter__(self) -> Viewer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f'<Viewer of "{self._model.name}" at {self.url}>'


@own_errors
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

    `motion` as for `record`. The page is served on 127.0.0.1 alone, at a free port unless one is given, and
    at an address that holds a secret, so that other users of this machine do not see it.
    With `block=False` the call returns at once and `close()` of what it returns ends the viewer. A slider
    moves one coordinate within its limits; quaternions have three angles; loops stay closed.

    >>> with da.viewer.view(da.models.arm7(), open_browser=False, block=False) as viewer:
    ...     viewer.url.startswith("http://127.0.0.1:")
    True
    """
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port < 65536:
        raise ArgumentError(f"port is {port!r}; give a number from 0 (any that is free) to 65535")
    require_flag("view: open_browser", open_browser)
    require_flag("view: block", block)
    viewer = Viewer(motion, port=port, title=title, fps=fps, follow=follow)
    if open_browser:
        viewer.open_browser()
    if block:
        sys.stderr.write(f"dalembert: showing {viewer._model.name} at {viewer.url}; Ctrl-C ends it\n")
        viewer.wait()
    return viewer


@final
@dataclass(frozen=True)
class Slider:
    """One slider: of which joint, its name and unit there, and its range; `turn` 0 to 2 for an angle of the
    quaternion that starts at `place` in q, -1 for the coordinate there.
    """

    joint: str
    name: str
    unit: str
    low: float
    high: float
    place: int
    turn: int = -1


def sliders_of(model: Model) -> list[Slider]:
    """Return the sliders of a model, in the order of its joints; joints that a coupling moves have none."""
    found = []
    for body in model.bodies:
        if body.dependence is not None:
            continue
        joint, limits, start = body.joint_name, body.limits, body.q_slice.start
        coordinates = body.joint.coordinates
        quaternions = {part.start: part for part in body.joint.unit_quaternions}
        inside = {k for part in quaternions.values() for k in range(part.start, part.stop)}
        for k, what in enumerate(coordinates):
            if k in quaternions:
                found += [
                    Slider(joint, name, "rad", -bound, bound, start + k, turn)
                    for turn, (name, bound) in enumerate(TURNS.items())
                ]
            elif k not in inside:
                bounds = [x if isinstance(x, (int, float)) else x[k] for x in (limits.lower, limits.upper)]
                low, high = (
                    float(bound) if math.isfinite(bound) else other
                    for bound, other in zip(bounds, UNLIMITED.get(what, (-1.0, 1.0)))
                )
                high = high if low < high else low + 1e-6
                unit = "m" if what == "length" else "rad"
                found.append(Slider(joint, _name(coordinates, k), unit, low, high, start + k))
    return found


def _name(coordinates: tuple[str, ...], k: int) -> str:
    """Return x, y, z for a joint with three lengths; else angle or length, numbered if there are several."""
    what = coordinates[k]
    alike = [i for i, other in enumerate(coordinates) if other == what]
    if what == "length" and len(alike) == 3:
        return "xyz"[alike.index(k)]
    return what if len(alike) == 1 else f"{what} {alike.index(k) + 1}"


def values_of(sliders: list[Slider], q: Array) -> list[float]:
    """Return the positions of the sliders for a configuration (nq,)."""
    angles: dict[int, list[Any]] = {}
    found = []
    for slider in sliders:
        if slider.turn < 0:
            found.append(float(q[slider.place]))
            continue
        if slider.place not in angles:
            R = rotation_of_quaternion(q[slider.place : slider.place + 4].tolist())
            angles[slider.place] = euler_angles_of_rotation("zyx", R)
        found.append(float(angles[slider.place][slider.turn]))
    return found


def configuration_of(model: Model, sliders: list[Slider], values: Any, *, moved: int | None = None) -> Array:
    """Return the configuration (nq,) for values of the sliders.

    Loops are closed as near as can be, with the joint of the slider `moved` held where it closes then.
    """
    numbers = np.array(values, dtype=np.float64)
    if numbers.shape != (len(sliders),) or not np.isfinite(numbers).all():
        raise ArgumentError(f"expected {len(sliders)} finite numbers for the sliders")
    q = model.neutral()
    for slider, value in zip(sliders, numbers):
        if slider.turn < 0:
            q[slider.place] = value
    for k, slider in enumerate(sliders):
        if slider.turn == 0:
            R = rotation_of_euler_angles("zyx", numbers[k : k + 3].tolist())
            q[slider.place : slider.place + 4] = quaternion_of_rotation(R)
    if not model.loop_names:
        return q
    if moved is not None:
        try:
            return np.asarray(close_loops(model, q, hold=[sliders[moved].joint], tolerance=1e-6))
        except DalembertError:  # out of reach: the joint gives way
            pass
    return np.asarray(close_loops(model, q, tolerance=1e-6))


# The server of one page and its answers, over HTTP, to this machine's browser alone.
#
# Three things keep other people out. The server listens on the loopback interface only. Every address begins
# with a secret, since all users of this machine reach the loopback interface. And a request must name this
# machine in its Host and Origin headers, so that a page from elsewhere that points a name of its own at
# 127.0.0.1 (DNS rebinding) is refused. A browser is started with an address that works once, because command
# lines are visible to all users; it is redirected to the secret one.
#
# A connection carries one request and lives for a bounded time; their number is bounded too. Nothing that a
# client sends makes the server write a traceback or stop serving.

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
