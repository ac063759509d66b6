"""Motions as files that any browser plays: one HTML file that holds the page, its program and its data.

The data of the page, the *scene*, is JSON with the large arrays in base64. The page asks nothing of the
network.
"""

from __future__ import annotations

import html
import json
import os
from importlib import resources
from pathlib import Path
from typing import Any, Final

import numpy as np

from dalembert.api.dynamics import kinetic_energy, potential_energy
from dalembert.api.kinematics import forward_kinematics
from dalembert.errors import ArgumentError, UnknownNameError, own_errors
from dalembert.host.atomic_files import write_file
from dalembert.model.model import Model
from dalembert.motion.clip import Frames
from dalembert.spatial import Mat3
from dalembert.spatial.rotations import quaternion_of_rotation
from dalembert.viewer.drawing import Array, drawing_of, to_base64, upward, vector
from dalembert.viewer.frames import frames_of

PROGRAM: Final = (
    *("numbers.js", "solids.js", "shaders.js", "renderer.js", "camera.js"),
    *("motion.js", "plots.js", "sliders.js", "stage.js", "main.js"),
)
"""The files of the program, in the order in which they stand in the page."""
MIN_FORCE_RATIO: Final = 1e-6
"""Contact forces below this fraction of the greatest are left out."""


@own_errors
def record(
    motion: Any,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    fps: float = 60.0,
    follow: str | None = None,
) -> Path:
    """Write a motion as one HTML file that plays in any browser, without Python and without a network.

    `motion`: a trajectory, a clip, a transition, a model at rest (standing on its ground, if it has one),
    (model, q) or (model, time, q), q `(nq,)` or `(frames, nq)`, 60 frames a second where no times are given;
    of a batch of trajectories the first, with up to 31 others as ghosts. `fps` bounds the pictures a second;
    the page blends them. `follow`: the body that the camera follows, or "com". Returns the path.

    >>> q = np.stack([0.5 * np.sin(np.linspace(0.0, 6.0, 100))] * 2, axis=1)
    >>> da.viewer.record((da.models.double_pendulum(), q), "swing.html").name
    'swing.html'
    """
    target = Path(path)
    if target.suffix.lower() not in (".html", ".htm"):
        raise ArgumentError(f"a recording is an HTML file; {str(target)!r} should end in .html")
    write_file(target, page_of(scene_of(frames_of(motion, fps=fps), title=title, follow=follow)))
    return target


def page_of(scene: dict[str, Any]) -> str:
    """Return the page that shows a scene.

    Names come from files of others: in JSON every `<`, `>` and `&` is escaped, so that no text can end the
    element that holds it; the page writes names as text only. Its policy forbids it to load anything.
    """
    data = json.dumps(scene, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        data = data.replace(character, f"\\u{ord(character):04x}")
    program = "\n".join(_static(name) for name in PROGRAM)
    parts = {
        "TITLE": html.escape(scene["title"]),
        "POLICY": "connect-src 'self'" if scene["live"] else "connect-src 'none'",
        "STYLE": _static("page.css"),
        "PROGRAM": f'(function () {{\n"use strict";\n{program}\n}})();',
        "SCENE": data,
    }
    pieces = _static("page.html").split("@@")
    return "".join(parts[piece] if number % 2 else piece for number, piece in enumerate(pieces))


def _static(name: str) -> str:
    return (resources.files("dalembert.viewer") / "static" / name).read_text(encoding="utf-8")


def scene_of(frames: Frames, *, title: str | None, follow: str | None) -> dict[str, Any]:
    """Return all that the page needs to show the motion, under the model's name unless a title is given."""
    model = frames.model
    drawing = drawing_of(model)
    if follow is not None and follow != "com" and follow not in model.bodies.names:
        raise UnknownNameError.of("body to follow", follow, ["com", *model.bodies.names])
    # The force that others are compared to [N]: the weight, or without gravity the greatest force.
    weight = float(model.total_mass) * float(np.linalg.norm(vector(model.gravity)))
    if weight == 0.0 and frames.contacts is not None:
        weight = float(np.linalg.norm(frames.contacts.force, axis=2).max(initial=0.0))
    return {
        "title": model.name if title is None else title,
        "up": upward(model).tolist(),
        "weight": weight,
        "bodies": [
            {
                "name": body.name,
                "mass": float(body.inertia.mass),
                "com": vector(body.inertia.com).tolist() if float(body.inertia.mass) > 0.0 else [0.0] * 3,
            }
            for body in model.bodies
        ],
        "shapes": drawing.shapes,
        "meshes": drawing.meshes,
        "terrain": any(shape.kind == "height_field" for shape in model.world_shapes),
        "axes": _axes(model),
        "time": to_base64(frames.time, "<f8"),
        "poses": to_base64(poses_of(model, frames.q, frames.time), "<f4"),
        "ghosts": [
            to_base64(poses_of(model, q, frames.time), "<f4")
            for q in (frames.ghosts if frames.ghosts is not None else ())
        ],
        "contacts": _contacts(frames),
        "plots": _plots(frames),
        "follow": follow,
        "end": frames.end,
        "notes": drawing.notes,
        "live": None,
    }


def poses_of(model: Model, q: Array, time: Array) -> Array:
    """Return positions [m] and quaternions (w, x, y, z) of the bodies in the world: (n, bodies, 7)."""
    poses = forward_kinematics(model, q, time=time if model.time_dependent else None)
    return np.concatenate([poses.translation, _quaternions(poses.rotation)], axis=-1)


def _quaternions(R: Array) -> Array:
    """Return unit quaternions (…, 4) of rotations (…, 3, 3)."""
    elements = np.moveaxis(R.reshape(*R.shape[:-2], 9), -1, 0)
    return np.stack(quaternion_of_rotation(Mat3(*elements)), axis=-1)


def _axes(model: Model) -> list[dict[str, Any]]:
    """Return axes of joints with one freedom, in body coordinates, and frames of those with more."""
    found = []
    for body in model.bodies:
        if body.nv == 1 and not body.joint.time_dependent:
            (column,) = body.joint.subspace(body.joint.neutral())
            angular, linear = np.split(vector(column.to_list()), 2)
            turns = bool(angular.any())
            axis = angular if turns else linear
            found.append({"body": body.index, "axis": (axis / np.linalg.norm(axis)).tolist(), "turns": turns})
        elif body.nv:
            found.append({"body": body.index, "axis": None, "turns": True})
    return found


def _contacts(frames: Frames) -> dict[str, str] | None:
    """Return the forces of each picture that are not zero: how many, and (position, force) of each."""
    if frames.contacts is None:
        return None
    force, position = frames.contacts
    size = np.linalg.norm(force, axis=2)
    there = size > MIN_FORCE_RATIO * max(float(size.max(initial=0.0)), 1e-9)
    rows = np.concatenate([position, force], axis=2)[there]
    return {"counts": to_base64(there.sum(axis=1), "<u2"), "points": to_base64(rows, "<f4")}


def _plots(frames: Frames) -> list[dict[str, Any]]:
    """Return energy, torques and contact force over time, as far as they are known."""
    if len(frames) < 2:
        return []
    model, plots = frames.model, []
    time = frames.time if model.time_dependent else None
    if frames.v is not None:
        T = kinetic_energy(model, frames.q, frames.v, time=time)
        V = potential_energy(model, frames.q, time=time)
        V = V - V.min()
        plots.append(_plot("Energy", "J", {"kinetic": T, "potential": V, "sum": T + V}))
    if frames.tau is not None and frames.tau.any():
        names = []
        for body in model.bodies:
            numbered = [f"{body.joint_name} {k + 1}" for k in range(body.v_slice.stop - body.v_slice.start)]
            names += [body.joint_name] if len(numbered) == 1 else numbered
        plots.append(_plot("Joint forces", "N m, N", dict(zip(names, frames.tau.T))))
    if frames.contacts is not None and frames.contacts.force.shape[1]:
        force = frames.contacts.force
        sums = {
            "upward": (force @ upward(model)).sum(axis=1),
            "sum of all": np.linalg.norm(force, axis=2).sum(axis=1),
        }
        plots.append(_plot("Contact force", "N", sums))
    return plots


def _plot(title: str, unit: str, series: dict[str, Array]) -> dict[str, Any]:
    values = to_base64(np.stack(list(series.values())), "<f4")
    return {"title": title, "unit": unit, "names": list(series), "values": values}
