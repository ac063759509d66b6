"""A check that a link's mass lies where the link is: if not, inertias may be in other units (g mm^2)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from dalembert.formats.report import Report
from dalembert.formats.urdf_elements import UrdfJoint, UrdfLink
from dalembert.model.shapes import Box, Capsule, Cylinder, Mesh, Shape, Sphere
from dalembert.spatial import Vec3

__all__ = ["MAX_GYRATION_TO_SIZE_RATIO", "report_sizes"]

MAX_GYRATION_TO_SIZE_RATIO: Final = 10.0
"""Links whose radius of gyration exceeds their size by this factor are reported."""

MIN_LINK_SIZE: Final = 1e-6
"""Sizes [m] below this are rounding errors of coincident joints, and say nothing about the link."""


def report_sizes(links: Mapping[str, UrdfLink], joints: Sequence[UrdfJoint], report: Report) -> None:
    """Report links whose radius of gyration about the centre of mass is over ten times their size.

    The size is the distance from the link's origin to its farthest shape or joint, or to its centre of mass.
    Links with meshes are passed over: meshes are not read here.
    """
    farthest: dict[str, float] = {}
    for joint in joints:
        farthest[joint.parent] = max(farthest.get(joint.parent, 0.0), _length(joint.placement.p))
    for name, link in links.items():
        mass = link.inertia.mass
        if mass == 0.0 or any(isinstance(shape, Mesh) for shape in link.shapes):
            continue
        size = max([farthest.get(name, 0.0), *(_reach(shape) for shape in link.shapes)])
        I = link.inertia.inertia_at_com
        # The greatest principal moment lies between the greatest diagonal element and the trace.
        radius = math.sqrt(max(I.xx, I.yy, I.zz, 0.0) / mass)
        if size > MIN_LINK_SIZE and radius > MAX_GYRATION_TO_SIZE_RATIO * max(
            size, _length(link.inertia.com)
        ):
            report.warn(
                f"{link.element.place}: the radius of gyration is {radius:.3g} m, but the link's shapes and "
                f"joints lie within {size:.3g} m; check the units of its inertia"
            )


def _reach(shape: Shape) -> float:
    return _length(shape.placement.as_transform().p) + _half_diagonal(shape)


def _half_diagonal(shape: Shape) -> float:
    if isinstance(shape, Box):
        return 0.5 * math.hypot(*shape.size)
    if isinstance(shape, Sphere):
        return shape.radius
    if isinstance(shape, Cylinder):
        return math.hypot(shape.radius, 0.5 * shape.length)
    if isinstance(shape, Capsule):
        return shape.radius + 0.5 * shape.length
    return 0.0


def _length(p: Vec3) -> float:
    return math.hypot(*p)
