"""Shapes known by their form alone: their sizes are scalars, which may differ from row to row or from sample
to sample.

One piece of code then computes the nearest points of any pair of two forms. A form has the attributes of the
shapes that it stands for, so that the functions of these take it too.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

from dalembert.contact.narrow_phase.direction_cells import DirectionCells, FaceCells
from dalembert.model.shapes import Box, Capsule, Ellipsoid, Shape, Sphere
from dalembert.scalar import Scalar
from dalembert.spatial import Vec3


class SphereForm(NamedTuple):
    radius: Scalar


class RoundedForm(NamedTuple):
    """A capsule; of length zero it is a sphere."""

    radius: Scalar
    length: Scalar


class BoxForm(NamedTuple):
    x: Scalar
    y: Scalar
    z: Scalar

    @property
    def size(self) -> tuple[Scalar, Scalar, Scalar]:
        return self.x, self.y, self.z


class EllipsoidForm(NamedTuple):
    x: Scalar
    y: Scalar
    z: Scalar

    @property
    def radii(self) -> tuple[Scalar, Scalar, Scalar]:
        return self.x, self.y, self.z


class CylinderForm(NamedTuple):
    radius: Scalar
    length: Scalar


class CornersForm(NamedTuple):
    """A convex mesh that touches the ground with all of its few vertices."""

    vertices: tuple[Vec3, ...]


class MeshForm(NamedTuple):
    """A convex mesh: its vertices and planes by cells of directions, and its number there; centre and half
    edges of a box around it."""

    cells: DirectionCells
    faces: FaceCells
    number: Scalar
    centre: Vec3
    half: Vec3


Form: TypeAlias = SphereForm | RoundedForm | BoxForm | EllipsoidForm | CylinderForm | CornersForm | MeshForm

FORMS: Final[tuple[type[Form], ...]] = (RoundedForm, BoxForm, EllipsoidForm)
"""The forms of shapes that are selected by number at run time."""

FORMED: Final = (Sphere, Capsule, Box, Ellipsoid)
"""The kinds of shapes that have one of these `FORMS`."""


def form_of(shape: Shape) -> RoundedForm | BoxForm | EllipsoidForm:
    """Return the form of one of the `FORMED` shapes."""
    if isinstance(shape, Sphere | Capsule):
        return RoundedForm(shape.radius, shape.length if isinstance(shape, Capsule) else 0.0)
    if isinstance(shape, Box):
        return BoxForm(*shape.size)
    assert isinstance(shape, Ellipsoid)
    return EllipsoidForm(*shape.radii)
