"""A model as MuJoCo has compiled it, with names for everything in it and places for what is copied."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, final

from dalembert.errors import FileError
from dalembert.formats.mjcf_files import Source
from dalembert.formats.report import Report
from dalembert.model.shapes import Shape
from dalembert.spatial import Mat3, Transform, Vec3
from dalembert.spatial.rotations import quaternion_normalized, rotation_of_quaternion

__all__ = ["BALL", "FREE", "HINGE", "SLIDE", "Compiled", "Home", "Place", "pose", "shift", "unique_name"]

FREE, BALL, SLIDE, HINGE = range(4)


def pose(position: Iterable[float], quaternion: Iterable[float]) -> Transform:
    """Return the placement of a position [m] and a quaternion (w, x, y, z)."""
    return Transform(
        rotation_of_quaternion(quaternion_normalized([float(x) for x in quaternion])),
        Vec3(*(float(x) for x in position)),
    )


def shift(vector: Vec3) -> Transform:
    """Return a translation."""
    return Transform(Mat3.identity(), vector)


class Place(NamedTuple):
    """The first places of a joint of ours in MuJoCo's qpos and qvel."""

    qpos: int
    qvel: int


class Home(NamedTuple):
    """The body of ours that carries a body of MuJoCo, and where MuJoCo's frame of it stands there."""

    body: str
    at: Transform


@final
class Compiled:
    """A model that MuJoCo has compiled, with a unique name for everything in it."""

    def __init__(self, mujoco: Any, m: Any, source: Source, report: Report) -> None:
        self.mujoco = mujoco
        self.m = m
        self.source = source
        self.report = report
        self.bodies = self._names("BODY", m.nbody, "body")
        self.joints = self._names("JOINT", m.njnt, "joint")
        self.places: dict[str, Place] = {}
        self.shapes: dict[str, list[Shape]] = {}

    def name(self, kind: str, index: int) -> str:
        """Return MuJoCo's name of an item, or its kind and number."""
        found = self.mujoco.mj_id2name(self.m, getattr(self.mujoco.mjtObj, f"mjOBJ_{kind}"), int(index))
        return found or f"{kind.lower()}_{int(index)}"

    def is_disabled(self, flag: str) -> bool:
        """Return whether an option flag of the file switches off a part of the physics."""
        return bool(self.m.opt.disableflags & int(getattr(self.mujoco.mjtDisableBit, f"mjDSBL_{flag}")))

    def error(self, tags: str | tuple[str, ...], name: str, message: str) -> FileError:
        return self.source.error(tags, name, message)

    def _names(self, kind: str, n: int, stem: str) -> list[str]:
        obj = getattr(self.mujoco.mjtObj, f"mjOBJ_{kind}")
        given = [self.mujoco.mj_id2name(self.m, obj, i) or "" for i in range(n)]
        used = {name for name in given if name}
        return [name or unique_name(f"{stem}_{i}", used) for i, name in enumerate(given)]


def unique_name(name: str, used: set[str]) -> str:
    """Return the name, with a number if it is taken, and mark it as used."""
    free = next(
        item for item in (name, *(f"{name}_{n}" for n in range(2, len(used) + 3))) if item not in used
    )
    used.add(free)
    return free
