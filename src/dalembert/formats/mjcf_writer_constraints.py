"""Loop joints and couplings of ours as MJCF equality constraints, exclusions and pairs as contact elements,
actuated joints as motors.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dalembert.errors import FileError
from dalembert.formats.mjcf_writer_lines import Lines, number, numbers
from dalembert.formats.report import reject_functions
from dalembert.model import Model
from dalembert.model.body import Loop
from dalembert.model.joints import Fixed, Revolute, Spherical
from dalembert.spatial import Mat3, Transform

__all__ = ["closure_sites", "write_actuators", "write_constraints", "write_contact"]

HINGE_LENGTH: Final = 0.1
"""Distance of the two points that stand for the axis of a loop's hinge [m]."""

Equality = tuple[str, dict[str, str]]
"""A tag with its attributes."""


def closure_sites(loop: Loop) -> Iterator[tuple[int, tuple[str, Transform]]]:
    """Yield the bodies with the sites that MJCF holds together to close a loop."""
    for k, at in enumerate(_closure_points(loop), start=1):
        yield loop.predecessor, (f"{loop.name}:{k}a", loop.placement_predecessor.as_transform() @ at)
        yield loop.successor, (f"{loop.name}:{k}b", loop.placement_successor.as_transform() @ at)


def _closure_points(loop: Loop) -> list[Transform]:
    """Return the places on a loop joint that MJCF holds together; a hinge is two points of its axis."""
    if isinstance(loop.joint, (Spherical, Fixed)):
        return [Transform.identity()]
    if isinstance(loop.joint, Revolute):
        return [Transform(Mat3.identity(), loop.joint.axis * distance) for distance in (0.0, HINGE_LENGTH)]
    raise FileError(
        f'loop joint "{loop.name}" is of kind {loop.joint.kind}; MJCF closes loops with spherical, revolute '
        "and fixed joints only"
    )


def write_constraints(model: Model, lines: Lines, losses: list[str]) -> None:
    """Write loops as `connect` and `weld`, couplings of two joints as `joint`, of more as fixed tendons."""
    reject_functions(model, "MJCF")
    equalities = [item for loop in model.loops for item in _loop(loop, losses)]
    tendons = [coupling for coupling in model.couplings if len(coupling.coefficients) > 2]
    if tendons:
        lines.open("tendon")
        for coupling in tendons:
            lines.open("fixed", name=coupling.name)
            for joint, k in coupling.coefficients:
                lines.leaf("joint", joint=joint, coef=number(k))
            lines.close("fixed")
        lines.close("tendon")
    for coupling in model.couplings:
        terms = dict(coupling.coefficients)
        if coupling in tendons:
            ends, polynomial = {"tendon1": coupling.name}, [-coupling.offset, 0.0, 0.0, 0.0, 0.0]
            tag = "tendon"
        else:
            k = terms.pop(coupling.dependent)
            other, k_other = next(iter(terms.items()))
            ends = {"joint1": coupling.dependent, "joint2": other}
            polynomial = [-coupling.offset / k, -k_other / k, 0.0, 0.0, 0.0]
            tag = "joint"
        equalities.append((tag, {"name": coupling.name, **ends, "polycoef": numbers(polynomial)}))
    if equalities:
        lines.open("equality")
        for tag, attributes in equalities:
            lines.leaf(tag, **attributes)
        lines.close("equality")


def _loop(loop: Loop, losses: list[str]) -> Iterator[Equality]:
    points = _closure_points(loop)
    if len(points) > 1:
        losses.append(f'loop joint "{loop.name}" is written as two connected points of its axis')
    for k in range(1, len(points) + 1):
        tag = "weld" if isinstance(loop.joint, Fixed) else "connect"
        name = loop.name if k == 1 else f"{loop.name}:{k}"
        yield tag, {"name": name, "site1": f"{loop.name}:{k}a", "site2": f"{loop.name}:{k}b"}


def write_contact(model: Model, lines: Lines, bodies: set[str], geoms: set[str], losses: list[str]) -> None:
    """Write exclusions and explicit pairs whose bodies and geoms were written.

    A body that was stacked on another has no shape to touch anything with.
    """
    exclusions = [pair for pair in model.contact_exclusions if {*pair} <= bodies]
    pairs = [pair for pair in model.contact_pairs if {pair.first, pair.second} <= geoms]
    for pair in model.contact_pairs:
        if pair not in pairs:
            losses.append(f'contact pair of "{pair.first}" and "{pair.second}" is left out with a shape')
        elif pair.restitution:
            losses.append(f'contact pair of "{pair.first}" and "{pair.second}": restitution is left out')
    if not pairs and not exclusions:
        return
    lines.open("contact")
    for pair in pairs:
        attributes = {"geom1": pair.first, "geom2": pair.second}
        if pair.friction is not None:
            slide, torsion, roll = pair.friction
            attributes["friction"] = numbers([slide, slide, torsion, roll, roll])
            attributes["condim"] = "3" if any(pair.friction) else "1"
        lines.leaf("pair", **attributes)
    for first, second in exclusions:
        lines.leaf("exclude", body1=first, body2=second)
    lines.close("contact")


def write_actuators(model: Model, lines: Lines, losses: list[str]) -> None:
    """Write motors on the actuated joints; a file without motors leaves every joint actuated."""
    actuated = set(model.actuated)
    moving = [body for body in model.bodies if body.nv]
    if actuated >= {body.joint_name for body in moving}:
        return
    single = [body.joint_name for body in moving if body.joint_name in actuated and body.nv == 1]
    if single:
        lines.open("actuator")
        for joint in single:
            lines.leaf("motor", name=joint, joint=joint)
        lines.close("actuator")
    others = [body.joint_name for body in moving if body.joint_name in actuated and body.nv > 1]
    if others or not single:
        losses.append("which joints are actuated is not written for: " + (", ".join(others) or "none"))
