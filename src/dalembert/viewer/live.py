"""The live viewer: the page of recordings with sliders, served to this machine's browser alone."""

from __future__ import annotations

import json
import sys
import webbrowser
from dataclasses import asdict
from typing import Any, Final, final

import numpy as np

from dalembert.errors import ArgumentError, FileError, own_errors, require_flag
from dalembert.viewer.frames import frames_of
from dalembert.viewer.page import page_of
from dalembert.viewer.scene import poses_of, scene_of
from dalembert.viewer.server import PageServer
from dalembert.viewer.shape_data import to_base64
from dalembert.viewer.sliders import configuration_of, has_loops, sliders_of, values_of

__all__ = ["Viewer", "view"]

WAIT_SECONDS: Final = 0.5
"""Interval [s] at which a waiting viewer looks for Ctrl-C: a join without a time-out is not interrupted on
Windows."""


@final
class Viewer:
    """A page that is being served: `url`, until `close()`; also as a context, `with da.viewer.view(…)`.

    The address holds a secret: whoever knows it can see the page.
    """

    def __init__(self, motion: Any, *, port: int, title: str | None, fps: float, follow: str | None) -> None:
        frames = frames_of(motion, fps=fps)
        self._model = frames.model
        self._sliders = sliders_of(frames.model)
        scene = scene_of(frames, title=title if title is not None else frames.model.name, follow=follow)
        values = [values_of(self._sliders, q) for q in frames.q]
        scene["live"] = {
            "sliders": [
                {"value": value, **asdict(slider)} for slider, value in zip(self._sliders, values[0])
            ],
            "loops": has_loops(frames.model),
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
        """Return the answer to a page: float32 positions and quaternions of the bodies for values of its
        sliders, and those values again, which loops may have changed.
        """
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
