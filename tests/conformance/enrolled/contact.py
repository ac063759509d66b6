"""Contact geometry: the nearest points of shapes of every kind, on the first and the last body of a tree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.conformance.enrolling import Enrolled, flat

import dalembert as da
from dalembert import algorithms as al
from dalembert.arguments import ArrayArgument
from dalembert.contact.geometry import closest_points, nearest_point
from dalembert.lowering import Recipe
from dalembert.model.model import Model
from dalembert.model.shapes import ConvexMesh, Ellipsoid, HeightField
from dalembert.spatial import Mat3, Transform, Vec3

GROUND = Transform(Mat3(0.8, 0.36, 0.48, -0.6, 0.48, 0.64, 0.0, -0.8, 0.6), Vec3(0.1, -0.2, -1.5))
APART = Transform(Mat3(0.36, 0.48, -0.8, -0.8, 0.6, 0.0, 0.48, 0.64, 0.6), Vec3(0.7, 1.3, -0.9))
SPHERE, CAPSULE, BOX = da.Sphere(0.3), da.Capsule(0.2, 0.9), da.Box((0.5, 0.8, 1.1))
CYLINDER, ELLIPSOID = da.Cylinder(0.25, 0.8), Ellipsoid((0.2, 0.5, 0.35))
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


def _entry(name: str, function: Callable[[Any, Any], Any], *models: str) -> Enrolled:
    def recipe(model: Model) -> Recipe:
        return Recipe(
            name, lambda tree, q: flat(function(tree, q)), model, (ArrayArgument("q", (model.nq,)),)
        )

    return Enrolled(f"contact.{name}", frozenset({"closest_points"}), recipe, models=models)


ENROLLED = (
    _entry("planes-rounded", on_ground(da.Plane(), SPHERE, CAPSULE)),
    _entry("planes", on_ground(da.Plane(), BOX, CYLINDER, ELLIPSOID, MESH, ROUND), "arm", "branched"),
    _entry("height-fields", on_ground(HILLS, SPHERE, CAPSULE, BOX, MESH), "arm", "branched"),
    _entry("rounded", between((SPHERE, SPHERE), (SPHERE, CAPSULE)), "arm", "branched"),
    _entry("capsules", between((CAPSULE, CAPSULE), (CAPSULE, BOX), (BOX, SPHERE)), "arm", "branched"),
    _entry("boxes", between((BOX, BOX)), "arm", "branched"),
    _entry("meshes", gaps((CAPSULE, ROUND)), "arm"),
    _entry("convex", gaps((CYLINDER, MESH)), "arm"),
)

STRUCTURE: dict[str, str] = {}
