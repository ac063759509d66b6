"""Shapes of bodies and of the world as data: for inertia, for contact, for pictures.

Sizes are in metres. A solid's `inertia` is that of a homogeneous body, in body coordinates.
"""

from dalembert.model.shapes.convex_hull import ConvexMesh
from dalembert.model.shapes.shape import (
    Box,
    Capsule,
    Cylinder,
    Ellipsoid,
    HeightField,
    Mesh,
    Plane,
    Shape,
    Solid,
    Sphere,
    total_inertia,
)

__all__ = [
    "Box",
    "Capsule",
    "ConvexMesh",
    "Cylinder",
    "Ellipsoid",
    "HeightField",
    "Mesh",
    "Plane",
    "Shape",
    "Solid",
    "Sphere",
    "shape_kinds",
    "total_inertia",
]


def shape_kinds() -> dict[str, type[Shape]]:
    """Return every kind of shape by the name under which it is saved."""
    kinds = (Box, Sphere, Capsule, Cylinder, Ellipsoid, ConvexMesh, Plane, HeightField, Mesh)
    return {kind.kind: kind for kind in kinds}
