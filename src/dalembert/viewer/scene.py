"""A motion as the data of a page: JSON with the large arrays in base64."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dalembert.api import forward_kinematics, kinetic_energy, potential_energy
from dalembert.errors import UnknownNameError
from dalembert.model.model import Model
from dalembert.viewer.frames import Frames
from dalembert.viewer.shape_data import drawing_of, to_base64

__all__ = ["poses_of", "scene_of"]

Array: TypeAlias = npt.NDArray[np.float64]

LEAST_FORCE = 1e-6
"""Contact forces below this fraction of the greatest are left out."""


def scene_of(frames: Frames, *, title: str, follow: str | None) -> dict[str, Any]:
    """Return all that the page needs to show the motion."""
    model = frames.model
    drawing = drawing_of(model)
    poses = poses_of(model, frames.q, frames.time)
    if follow is not None and follow != "com" and follow not in model.bodies.names:
        raise UnknownNameError.of("body to follow", follow, ["com", *model.bodies.names])
    return {
        "title": title,
        "up": _up(model),
        "weight": _weight(frames),
        "bodies": [
            {
                "name": body.name,
                "mass": float(body.inertia.mass),
                "com": [float(x) for x in body.inertia.com] if float(body.inertia.mass) > 0.0 else [0.0] * 3,
            }
            for body in model.bodies
        ],
        "shapes": drawing.shapes,
        "meshes": drawing.meshes,
        "terrain": any(shape.kind == "height_field" for shape in model.world_shapes),
        "axes": _axes(model),
        "time": to_base64(frames.time, "<f8"),
        "poses": to_base64(poses, "<f4"),
        "ghosts": []
        if frames.ghosts is None
        else [to_base64(poses_of(model, q, frames.time), "<f4") for q in frames.ghosts],
        "contacts": _contacts(frames),
        "plots": _plots(frames),
        "follow": follow,
        "end": frames.end,
        "notes": drawing.notes,
        "live": None,
    }


def poses_of(model: Model, q: Array, time: Array) -> Array:
    """Return positions [m] and quaternions (w, x, y, z) of the bodies in the world: (n, bodies, 7)."""
    times = time if model.time_dependent else None
    poses = forward_kinematics(model, q, time=times)
    found: Array = np.concatenate([poses.translation, _quaternions(poses.rotation)], axis=-1)
    return found


def _quaternions(R: Array) -> Array:
    """Return unit quaternions (…, 4) of rotations (…, 3, 3), by the largest of their four squares."""
    trace = R[..., 0, 0] + R[..., 1, 1] + R[..., 2, 2]
    squares = np.stack([trace, R[..., 0, 0], R[..., 1, 1], R[..., 2, 2]], axis=-1)
    largest = np.argmax(squares, axis=-1)
    off = {
        (i, j): (R[..., j, i] - R[..., i, j], R[..., j, i] + R[..., i, j])
        for i, j in ((1, 2), (2, 0), (0, 1))
    }
    (x, yz), (y, zx), (z, xy) = off[1, 2], off[2, 0], off[0, 1]
    one = np.ones_like(trace)
    d = [R[..., k, k] for k in range(3)]
    choices = np.stack(
        [
            np.stack([one + trace, x, y, z], axis=-1),
            np.stack([x, one + d[0] - d[1] - d[2], xy, zx], axis=-1),
            np.stack([y, xy, one - d[0] + d[1] - d[2], yz], axis=-1),
            np.stack([z, zx, yz, one - d[0] - d[1] + d[2]], axis=-1),
        ],
        axis=-2,
    )
    chosen = np.take_along_axis(choices, largest[..., np.newaxis, np.newaxis], axis=-2)[..., 0, :]
    found: Array = chosen / np.linalg.norm(chosen, axis=-1, keepdims=True)
    return found


def _up(model: Model) -> list[float]:
    """Return the upward direction, against gravity; z without gravity."""
    g = [float(x) for x in model.gravity]
    length = math.sqrt(sum(x * x for x in g))
    return [-x / length for x in g] if length > 0.0 else [0.0, 0.0, 1.0]


def _weight(frames: Frames) -> float:
    """Return the force that others are compared to [N]: the weight of the whole model, or without gravity the
    greatest force.
    """
    model = frames.model
    mass = sum(float(body.inertia.mass) for body in model.bodies)
    weight = mass * math.sqrt(sum(float(x) * float(x) for x in model.gravity))
    if weight > 0.0 or frames.contacts is None:
        return weight
    return float(np.linalg.norm(frames.contacts.force, axis=2).max(initial=0.0))


def _axes(model: Model) -> list[dict[str, Any]]:
    """Return axes of joints with one freedom, in body coordinates, and frames of those with more."""
    found = []
    for body in model.bodies:
        if body.nv == 1 and not body.joint.time_dependent:
            (column,) = body.joint.subspace(body.joint.neutral())
            s = [float(x) for x in column.to_list()]
            turns = any(abs(x) > 0.0 for x in s[:3])
            axis = s[:3] if turns else s[3:]
            length = math.sqrt(sum(x * x for x in axis))
            found.append({"body": body.index, "axis": [x / length for x in axis], "turns": turns})
        elif body.nv:
            found.append({"body": body.index, "axis": None, "turns": True})
    return found


def _contacts(frames: Frames) -> dict[str, str] | None:
    """Return the forces of each picture that are not zero: how many, and (position, force) of each."""
    if frames.contacts is None:
        return None
    force, position = frames.contacts
    size = np.linalg.norm(force, axis=2)
    there = size > LEAST_FORCE * max(float(size.max(initial=0.0)), 1e-9)
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
        plots.append(_plot("Joint forces", "N m, N", dict(zip(_velocity_names(model), frames.tau.T))))
    if frames.contacts is not None and frames.contacts.force.shape[1]:
        plots.append(_plot("Contact force", "N", _contact_series(frames)))
    return plots


def _contact_series(frames: Frames) -> dict[str, Array]:
    assert frames.contacts is not None
    up = np.array(_up(frames.model))
    upward = frames.contacts.force @ up
    return {
        "upward": upward.sum(axis=1),
        "sum of all": np.linalg.norm(frames.contacts.force, axis=2).sum(axis=1),
    }


def _plot(title: str, unit: str, series: dict[str, Array]) -> dict[str, Any]:
    return {
        "title": title,
        "unit": unit,
        "names": list(series),
        "values": to_base64(np.stack(list(series.values())), "<f4"),
    }


def _velocity_names(model: Model) -> list[str]:
    """Return a name for each velocity variable: the joint's, numbered where it has several."""
    names = []
    for body in model.bodies:
        count = body.v_slice.stop - body.v_slice.start
        names += [body.joint_name] if count == 1 else [f"{body.joint_name} {k + 1}" for k in range(count)]
    return names
