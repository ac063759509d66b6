"""The live viewer: the page of recordings with sliders, served to this machine's browser alone.

There is one slider for each coordinate of a joint and three angles for each quaternion. Joints that a
coupling moves have none; loops are closed after each move.
"""

from __future__ import annotations

import json
import math
import sys
import webbrowser
from dataclasses import asdict, dataclass
from typing import Any, Final, final

import numpy as np

from dalembert.api.constraints import close_loops
from dalembert.errors import ArgumentError, DalembertError, FileError, own_errors, require_flag
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
from dalembert.viewer.server import PageServer

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
