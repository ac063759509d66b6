"""Shapes known by their form alone: their sizes are scalars, which may differ from sample to sample.

So that one piece of code can compute where any pair of two forms is nearest, whichever pair it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

from dalembert.model.shapes import Box, Capsule, Ellipsoid, Shape, Sphere
from dalembert.scalar import Scalar

__all__ = ["FORMS", "BoxForm", "EllipsoidForm", "Form", "RoundedForm", "form_of", "sizes_of"]


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


Form: TypeAlias = RoundedForm | BoxForm | EllipsoidForm

FORMS: Final[tuple[type[Form], ...]] = (RoundedForm, BoxForm, EllipsoidForm)


def form_of(shape: Shape) -> type[Form] | None:
    """The form of a shape, None where it has none of its own here."""
    if isinstance(shape, Sphere | Capsule):
        return RoundedForm
    return BoxForm if isinstance(shape, Box) else EllipsoidForm if isinstance(shape, Ellipsoid) else None


def sizes_of(shape: Shape) -> Sequence[float]:
    """The numbers that make a shape of its form."""
    if isinstance(shape, Sphere):
        return shape.radius, 0.0
    if isinstance(shape, Capsule):
        return shape.radius, shape.length
    if isinstance(shape, Box):
        return tuple(shape.size)
    assert isinstance(shape, Ellipsoid)
    return tuple(shape.radii)
