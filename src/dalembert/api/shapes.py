"""Shapes of bodies and of the world."""

from dalembert.model.shapes import (
    Box,
    Capsule,
    ConvexMesh,
    Cylinder,
    Ellipsoid,
    HeightField,
    Mesh,
    Plane,
    Shape,
    Solid,
    Sphere,
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
]
