"""Planar linkages with closed loops, in the x-z plane."""

from __future__ import annotations

import math

from dalembert.errors import ModelError, own_errors
from dalembert.model.builder import ModelBuilder
from dalembert.model.joints import Prismatic, Revolute, SphereInCylinder
from dalembert.model.model import Model
from dalembert.model.shapes import Box, Capsule
from dalembert.models.arguments import require_numbers, require_whole_numbers
from dalembert.spatial import Mat3, RigidInertia, Transform, Vec3

__all__ = ["five_bar", "four_bar", "ladder", "slider_crank"]

LIFT = (0.0, -1.0, 0.0)
"""Axis -y: a rotation about it lifts a bar that lies along x."""
NO_COLLISION_MASK = 0
"""Collision mask of parts that overlap, such as bars at their pins; other shapes may touch them."""


def _along_x(x: float) -> Transform:
    return Transform(Mat3.identity(), Vec3(x, 0.0, 0.0))


def _rotated_frame(angle: float, x: float = 0.0) -> Transform:
    """Return a frame at (x, 0, 0), rotated upwards by an angle [rad]."""
    c, s = math.cos(angle), math.sin(angle)
    return Transform(Mat3(c, 0.0, -s, 0.0, 1.0, 0.0, s, 0.0, c), Vec3(x, 0.0, 0.0))


def _quarter(sine: float, x: float = 0.0, *, at: float = 0.0) -> Transform:
    """Return a frame at (x, 0, at) lifted by a quarter turn (sine 1) or lowered by one (-1), without
    rounding.
    """
    return Transform(Mat3(0.0, 0.0, -sine, 0.0, 1.0, 0.0, sine, 0.0, 0.0), Vec3(x, 0.0, at))


def _bar(length: float, mass: float) -> tuple[RigidInertia, Capsule]:
    moment = mass * length**2 / 12.0
    capsule = Capsule.between((0.0, 0.0, 0.0), (length, 0.0, 0.0), 0.02, collides_with=NO_COLLISION_MASK)
    return RigidInertia(mass, (length / 2.0, 0.0, 0.0), (0.0, moment, moment)), capsule


@own_errors
def four_bar(
    *,
    ground: float = 1.0,
    crank: float = 0.3,
    coupler: float = 0.9,
    rocker: float = 0.7,
    density: float = 2.0,
) -> Model:
    """Return a four-bar linkage: crank and coupler in the tree, the rocker on the ground, closed at the
    coupler's far end.

    It is assembled at q = 0 with the crank along x; lengths in m, density in kg/m. One degree of freedom;
    the crank has the motor.
    """
    require_numbers("four_bar", ground=ground, crank=crank, coupler=coupler, rocker=rocker, density=density)
    gap = ground - crank
    if not abs(coupler - rocker) < gap < coupler + rocker:
        raise ModelError(
            f"four_bar: coupler {coupler} and rocker {rocker} cannot meet across {gap} m, crank along x"
        )
    # The triangle of coupler, rocker and what the crank leaves of the ground, by the law of cosines.
    at_crank = math.acos((gap**2 + coupler**2 - rocker**2) / (2.0 * gap * coupler))
    at_ground = math.pi - math.acos((gap**2 + rocker**2 - coupler**2) / (2.0 * gap * rocker))
    builder = ModelBuilder(name="four_bar")
    placed = (
        ("crank", "world", "crank_pivot", crank, _along_x(0.0)),
        ("coupler", "crank", "crank_pin", coupler, _rotated_frame(at_crank, crank)),
        ("rocker", "world", "rocker_pivot", rocker, _rotated_frame(at_ground, ground)),
    )
    for name, parent, joint, length, placement in placed:
        inertia, capsule = _bar(length, density * length)
        builder.add_body(
            name, parent, Revolute(LIFT), joint, placement=placement, inertia=inertia, shapes=(capsule,)
        )
    builder.add_loop("rocker_pin", "coupler", "rocker", Revolute(LIFT), _along_x(coupler), _along_x(rocker))
    builder.set_actuated(["crank_pivot"])
    return builder.build()


@own_errors
def slider_crank(
    *, crank: float = 0.25, rod: float = 0.8, slider_mass: float = 1.0, density: float = 2.0
) -> Model:
    """Return the crank-slider linkage of Featherstone 2008 Figure 4.1: crank, rod and slider, closed at the
    slider's pin.

    It is assembled at q = 0 with crank and rod stretched along x, a dead centre where the slider's speed is
    zero; lengths in m, density in kg/m.
    """
    require_numbers("slider_crank", crank=crank, rod=rod, slider_mass=slider_mass, density=density)
    builder = ModelBuilder(name="slider_crank")
    inertia, capsule = _bar(crank, density * crank)
    builder.add_body("crank", "world", Revolute(LIFT), "crank_pivot", inertia=inertia, shapes=(capsule,))
    inertia, capsule = _bar(rod, density * rod)
    builder.add_body(
        "rod",
        "crank",
        Revolute(LIFT),
        "crank_pin",
        placement=_along_x(crank),
        inertia=inertia,
        shapes=(capsule,),
    )
    block = Box((0.12, 0.08, 0.08), collides_with=NO_COLLISION_MASK)
    builder.add_body(
        "slider",
        "world",
        Prismatic((1.0, 0.0, 0.0)),
        "guide",
        placement=_along_x(crank + rod),
        inertia=block.inertia(mass=slider_mass),
        shapes=(block,),
    )
    builder.add_loop("slider_pin", "rod", "slider", Revolute(LIFT), _along_x(rod))
    builder.set_actuated(["crank_pivot"])
    return builder.build()


@own_errors
def five_bar(
    *, ground: float = 0.4, proximal: float = 0.5, distal: float = 0.7, density: float = 2.0
) -> Model:
    """Return a symmetric five-bar linkage, a planar parallel robot: two arms of two bars, closed at their
    tips.

    Two degrees of freedom; the two pivots on the ground have the motors. It is assembled at q = 0 with the
    proximal bars upright on the ground, `ground` apart; the frame "tool" is at the pin that joins the arms.
    Lengths in m, density in kg/m.

    >>> model = da.models.five_bar()
    >>> print(model.nv, model.actuated, np.abs(da.constraint_error(model, model.neutral())).max() < 1e-15)
    4 ('left_pivot', 'right_pivot') True
    """
    require_numbers("five_bar", ground=ground, proximal=proximal, distal=distal, density=density)
    if not ground < 2.0 * distal:
        raise ModelError(
            f"five_bar: distal bars of {distal} m cannot meet across {ground} m; make them longer"
        )
    inward = math.acos(0.5 * ground / distal)
    builder = ModelBuilder(name="five_bar")
    for side, at, angle in (("left", -0.5 * ground, inward), ("right", 0.5 * ground, math.pi - inward)):
        inertia, capsule = _bar(proximal, density * proximal)
        builder.add_body(
            f"{side}_proximal",
            "world",
            Revolute(LIFT),
            f"{side}_pivot",
            placement=_quarter(1.0, at),
            inertia=inertia,
            shapes=(capsule,),
        )
        inertia, capsule = _bar(distal, density * distal)
        builder.add_body(
            f"{side}_distal",
            f"{side}_proximal",
            Revolute(LIFT),
            f"{side}_elbow",
            placement=_rotated_frame(angle - 0.5 * math.pi, proximal),
            inertia=inertia,
            shapes=(capsule,),
        )
    builder.add_loop(
        "tool_pin", "left_distal", "right_distal", Revolute(LIFT), _along_x(distal), _along_x(distal)
    )
    builder.add_frame("tool", "left_distal", _along_x(distal))
    builder.set_actuated(["left_pivot", "right_pivot"])
    return builder.build()


@own_errors
def ladder(rungs: int = 3, *, width: float = 0.4, spacing: float = 0.3, density: float = 2.0) -> Model:
    """Return a rope ladder that hangs in the x-z plane: two rails of hinged segments, and a rung between each
    pair.

    Every rung closes a loop with the next segment of the right rail by a joint of two constraints
    (`SphereInCylinder`), so that the system is properly constrained and has one degree of freedom a rung. Its
    connectivity is that of Featherstone 2008 Figure 8.4, with a body for each rung: the sparse method takes
    time in proportion to the rungs. Lengths in m, density in kg/m.

    >>> model = da.models.ladder(5)
    >>> print(len(model.bodies), len(model.loops), da.mobility(model).mobility)
    15 5 5
    """
    require_whole_numbers("ladder", rungs=rungs)
    require_numbers("ladder", width=width, spacing=spacing, density=density)
    if rungs < 1:
        raise ModelError(f"ladder: {rungs} rungs asked for; a ladder has one or more")
    builder = ModelBuilder(name="ladder")
    for i in range(rungs):
        for side, x in (("left", 0.0), ("right", width)):
            inertia, capsule = _bar(spacing, density * spacing)
            builder.add_body(
                f"{side}{i}",
                "world" if i == 0 else f"{side}{i - 1}",
                Revolute(LIFT),
                placement=_quarter(-1.0, x) if i == 0 else _along_x(spacing),
                inertia=inertia,
                shapes=(capsule,),
            )
        inertia, capsule = _bar(width, density * width)
        builder.add_body(
            f"rung{i}",
            f"left{i}",
            Revolute(LIFT),
            placement=_quarter(1.0, spacing),
            inertia=inertia,
            shapes=(capsule,),
        )
        builder.add_loop(
            f"knot{i}", f"right{i}", f"rung{i}", SphereInCylinder(LIFT), _along_x(spacing), _along_x(width)
        )
    return builder.build()
