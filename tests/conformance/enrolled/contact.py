"""Contact: nearest points of shapes of every kind on two bodies of a tree; compliant laws and steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.conformance.enrolling import Enrolled, flat

import dalembert as da
from dalembert import algorithms as al
from dalembert.call.arguments import ArrayArgument
from dalembert.compiler.lowering import Recipe
from dalembert.contact.compliant import (
    CompliantLaw,
    Hertz,
    LinearSurface,
    PatchState,
    SeriesSpring,
    TwoSurfaces,
    compliant_forces,
    patches_after,
)
from dalembert.contact.narrow_phase import closest_points, nearest_point
from dalembert.contact.narrow_phase.candidates import Candidate
from dalembert.contact.options import Compliant
from dalembert.contact.step import contact_step
from dalembert.model.model import Model
from dalembert.model.shapes import ConvexMesh, Ellipsoid, HeightField
from dalembert.model.tree import PerBody
from dalembert.spatial import Mat3, Transform, Vec3

GROUND = Transform(Mat3(0.8, 0.36, 0.48, -0.6, 0.48, 0.64, 0.0, -0.8, 0.6), Vec3(0.1, -0.2, -1.5))
APART = Transform(Mat3(0.36, 0.48, -0.8, -0.8, 0.6, 0.0, 0.48, 0.64, 0.6), Vec3(0.7, 1.3, -0.9))
SPHERE, CAPSULE, BOX = da.shapes.Sphere(0.3), da.shapes.Capsule(0.2, 0.9), da.shapes.Box((0.5, 0.8, 1.1))
CYLINDER, ELLIPSOID = da.shapes.Cylinder(0.25, 0.8), Ellipsoid((0.2, 0.5, 0.35))
CORNERS = [(0.3, 0.1, 0.0), (-0.2, 0.25, 0.1), (-0.1, -0.3, -0.05), (0.05, 0.02, 0.4), (0.2, -0.2, -0.3)]
MESH = ConvexMesh(CORNERS)
ROUND = ConvexMesh([(0.3 * x, 0.3 * y, 0.3 * z) for x, y, z in (
    (1, 0, 0.1), (-1, 0.1, 0), (0.1, 1, 0), (0, -1, 0.2), (0, 0.1, 1), (0.2, 0, -1),
    *((a, b + 0.01, c - 0.02) for a in (0.7, -0.6) for b in (0.65, -0.7) for c in (0.6, -0.64)),
    *((1.1 * a, 0.2, c) for a in (0.8, -0.7) for c in (0.55, -0.6)),
)])  # fmt: skip
HILLS = HeightField([[0.1, 0.4, -0.2], [0.3, 0.0, 0.2], [-0.1, 0.3, 0.5]], (40.0, 40.0))


def placed(tree: Any, q: Any) -> tuple[Transform, Transform]:
    poses = al.forward_kinematics(tree, q)
    return poses[0], poses[len(poses) - 1] @ APART


def on_ground(ground: Any, *shapes: Any) -> Callable[[Any, Any], Any]:
    def points(tree: Any, q: Any) -> Any:
        return [closest_points(ground, GROUND, shape, X) for shape in shapes for X in placed(tree, q)]

    return points


def between(*pairs: tuple[Any, Any]) -> Callable[[Any, Any], Any]:
    def points(tree: Any, q: Any) -> Any:
        X_a, X_b = placed(tree, q)
        return [closest_points(a, X_a, b, X_b) for a, b in pairs]

    return points


def gaps(*pairs: tuple[Any, Any]) -> Callable[[Any, Any], Any]:
    """Of iterated pairs: where on a surface a nearest point is, is less exact than how far it is."""

    def found(tree: Any, q: Any) -> Any:
        X_a, X_b = placed(tree, q)
        return [nearest_point(a, X_a, b, X_b).gap for a, b in pairs]

    return found


def pressed(tree: Any, q: Any) -> list[Candidate]:
    """Points of balls a little in a ground that follows them, and of one against the other."""
    first, last = placed(tree, q)
    found = []
    for place, X in ((0, first), (len(tree.bodies) - 1, last)):
        point = closest_points(da.shapes.Plane(), GROUND, SPHERE, X)[0]
        found.append(Candidate(-1, place, 0.6, 0.0, point._replace(gap=0.05 * point.gap - 0.01)))
    point = closest_points(SPHERE, first, SPHERE, last)[0]
    return [*found, Candidate(0, len(tree.bodies) - 1, 0.4, 0.0, point._replace(gap=0.02 * point.gap - 0.02))]


def yielding(surface: Any) -> Callable[[Any, Any, Any], Any]:
    def forces(tree: Any, q: Any, v: Any) -> Any:
        law = CompliantLaw(surface, 2.0e3, 40.0)
        points = pressed(tree, q)
        pairs = zip(al.forward_kinematics(tree, q), al.body_velocities(tree, q, v), strict=True)
        moving = PerBody([pose.inverse_apply(motion) for pose, motion in pairs])
        states = [
            PatchState([-0.01 * (k + 1)] * surface.order, Vec3(0.001, 0.002 * k, 0.0)) for k in range(3)
        ]
        after = patches_after(points, moving, states, law, 0.004)
        return [compliant_forces(points, moving, states, law), [(state.z, state.x) for state in after]]

    return forces


def compliant_step(tree: Any, q: Any, v: Any) -> Any:
    memory = [[0.001, 0.0, 0.002 * k, 0.01, 0.001] for k in range(3)]
    law = Compliant()
    return contact_step(tree, q, v, [0.1] * tree.nv, 0.01, pressed(tree, q), memory=memory, settings=law)


def _moving(name: str, function: Callable[[Any, Any, Any], Any], *models: str) -> Enrolled:
    def recipe(model: Model) -> Recipe:
        shapes = (("q", (model.nq,)), ("v", (model.nv,)))
        arguments = tuple(ArrayArgument(key, shape) for key, shape in shapes)
        return Recipe(name, lambda tree, q, v: flat(function(tree, q, v)), model, arguments)

    return Enrolled(f"contact.{name}", frozenset({name}), recipe, models=models)


def _entry(name: str, function: Callable[[Any, Any], Any], *models: str) -> Enrolled:
    def recipe(model: Model) -> Recipe:
        return Recipe(
            name, lambda tree, q: flat(function(tree, q)), model, (ArrayArgument("q", (model.nq,)),)
        )

    return Enrolled(f"contact.{name}", frozenset({"closest_points"}), recipe, models=models)


ENROLLED = (
    _entry("planes-rounded", on_ground(da.shapes.Plane(), SPHERE, CAPSULE)),
    _entry("planes", on_ground(da.shapes.Plane(), BOX, CYLINDER, ELLIPSOID, MESH, ROUND), "arm", "branched"),
    _entry("height-fields", on_ground(HILLS, SPHERE, CAPSULE, BOX, MESH), "arm", "branched"),
    _entry("rounded", between((SPHERE, SPHERE), (SPHERE, CAPSULE)), "arm", "branched"),
    _entry("capsules", between((CAPSULE, CAPSULE), (CAPSULE, BOX), (BOX, SPHERE)), "arm", "branched"),
    _entry("boxes", between((BOX, BOX)), "arm", "branched"),
    _entry("meshes", gaps((CAPSULE, ROUND)), "arm"),
    _entry("convex", gaps((CYLINDER, MESH)), "arm"),
    _moving("compliant_forces-linear", yielding(LinearSurface(3e3, 50.0)), "arm", "branched"),
    _moving("compliant_forces-hertz", yielding(Hertz(5e4, 0.4)), "arm"),
    _moving("compliant_forces-series", yielding(SeriesSpring(3e3, 50.0, 2e4)), "arm"),
    _moving(
        "compliant_forces-two",
        yielding(TwoSurfaces(LinearSurface(3e3, 50.0), LinearSurface(1e4, 90.0))),
        "arm",
    ),
    _moving("step_compliant", compliant_step, "arm", "branched"),
)

STRUCTURE: dict[str, str] = {}
