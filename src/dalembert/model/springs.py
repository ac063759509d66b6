"""Springs and dampers between points of bodies: elements of a model beside its joints.

A spring pulls along the straight lines through its points, a path of the length l, with the tension

    T = k x + d dl/dt,      x = l - b where l > b,  l - a where l < a,  0 between                          (1)

[a, b] are the lengths between which it is slack: a = b for a usual spring, a = 0 for an elastic rope.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

from dalembert.errors import ModelError, items_of, short_repr
from dalembert.model import checks
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar, maximum, sqrt
from dalembert.spatial import Placement, Transform, Vec3

SPRING_VALUES: Final = ("stiffness", "damping", "rest_length")
"""The numbers of a spring that `with_values` and run-time parameters name."""

MIN_SQUARED_LENGTH: Final = 1e-24
"""The least squared distance [m^2] of two points that have a direction: that of 1e-12 m."""

Path = tuple[tuple[str, Vec3], ...]
"""Points [m] in the coordinates of bodies by name, or of the "world"."""


@dataclass(frozen=True, slots=True)
class Spring:
    """A spring and damper along a path by Eq. (1): stiffness k [N/m], damping d [N s/m], and the lengths
    [m] between which it is slack."""

    name: str
    points: Path
    stiffness: Scalar
    damping: Scalar
    rest_length: tuple[Scalar, Scalar] | None

    @property
    def is_never_slack(self) -> bool:
        """Whether there is one rest length only."""
        assert self.rest_length is not None
        a, b = self.rest_length
        return a is b or (isinstance(a, float) and isinstance(b, float) and a == b)

    def stretch(self, length: Scalar) -> Scalar:
        """Return x of Eq. (1)."""
        assert self.rest_length is not None
        a, b = self.rest_length
        if self.is_never_slack:
            return length - a
        return maximum(length - b, 0.0) - maximum(a - length, 0.0)


def checked_spring(name: str, points: Any, stiffness: Any, damping: Any, rest_length: Any) -> Spring:
    """Return a spring of finite numbers, with two points or more."""
    what = f'spring "{checks.valid_name(name, "the name of a spring")}"'
    path = tuple(_checked_point(point, what) for point in items_of(points))
    if len(path) < 2:
        raise ModelError(
            f"{what} has {len(path)} points; give two or more, each the name of a body, of a frame or "
            '"world" and a point there, as in ("hand", (0.0, 0.0, 0.1))'
        )
    for part, number in (("stiffness", stiffness), ("damping", damping)):
        if not checks.is_finite(number) or number < 0.0:
            raise ModelError(
                f"{what}: {part} is {short_repr(number)}; give a finite number that is not negative"
            )
    slack = None if rest_length is None else _checked_lengths(rest_length, what)
    return Spring(name, path, float(stiffness), float(damping), slack)


def _checked_point(given: Any, what: str) -> tuple[str, Vec3]:
    pair = items_of(given)
    if len(pair) != 2:
        raise ModelError(f"{what}: {short_repr(given)} is no point; give (name of a body, (x, y, z))")
    coordinates = items_of(pair[1])
    if len(coordinates) != 3 or not all(checks.is_finite(x) for x in coordinates):
        raise ModelError(f"{what}: {short_repr(pair[1])} is no point; give three finite numbers [m]")
    x, y, z = coordinates
    return checks.valid_name(pair[0], f"{what}: the name of a body"), Vec3(float(x), float(y), float(z))


def _checked_lengths(given: Any, what: str) -> tuple[float, float]:
    ends = (given, given) if checks.is_finite(given) else tuple(items_of(given))
    if len(ends) != 2 or not all(checks.is_finite(x) for x in ends) or not 0.0 <= ends[0] <= ends[1]:
        raise ModelError(
            f"{what}: rest_length is {short_repr(given)}; give a length [m] that is not negative, or the two "
            "lengths between which it is slack, the lesser one first"
        )
    return float(ends[0]), float(ends[1])


def placed_spring(spring: Spring, homes: Mapping[str, tuple[str, Placement | None]], tree: Tree) -> Spring:
    """Return the spring with points on bodies and a rest length, by default the neutral configuration's.

    `homes`: for each name of a body or frame the body, and where the frame is placed on it.
    """
    what, path = f'spring "{spring.name}"', []
    for name, point in spring.points:
        body, placement = checks.require_known(homes, name, what, "body or frame")
        path.append((body, point if placement is None else placement.transform_point(point)))
    placed = replace(spring, points=tuple(path))
    if placed.rest_length is None:
        poses = _neutral_poses(tree)
        _, lengths = lines_along([placed_at(poses.get(name), point) for name, point in path])
        length = float(sum(lengths))
        placed = replace(placed, rest_length=(length, length))
    return placed


def placed_at(pose: Placement | None, point: Vec3) -> Vec3:
    """Return a point of a body in the world; `pose` of the body, None for the world."""
    return point if pose is None else pose.transform_point(point)


def lines_along(points: Sequence[Vec3]) -> tuple[list[Vec3], list[Scalar]]:
    """Return the unit vectors from each point of a path to the next, and their distances [m]."""
    lines = [b - a for a, b in pairwise(points)]
    lengths: list[Scalar] = [sqrt(maximum(line.dot(line), MIN_SQUARED_LENGTH)) for line in lines]
    return [line * (1.0 / length) for line, length in zip(lines, lengths, strict=True)], lengths


def _neutral_poses(tree: Tree) -> dict[str, Transform]:
    """Return the poses of bodies by name in the neutral configuration, at time zero."""
    q = [x for body in tree.bodies if body.dependence is None for x in body.joint.neutral()]

    def step(body: Any, X: Transform) -> tuple[Transform, Transform]:
        pose = X @ body.jcalc(q, None, 0.0 if body.joint.time_dependent else None).X
        return pose, pose

    poses = tree.outward(step, Transform.identity())
    return {body.name: poses[body] for body in tree.bodies}


def renamed_path(points: Iterable[tuple[str, Vec3]], home: Any) -> list[tuple[str, Vec3]]:
    """Return the points on other bodies; `home` gives the new carrier of a body's frame, and where it is."""
    found = []
    for name, point in points:
        carrier, X = home(name)
        found.append((carrier, point if X is None else X.transform_point(point)))
    return found
