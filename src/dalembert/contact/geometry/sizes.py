"""Shapes known by their form alone: their sizes are scalars, which may differ from sample to sample.

One piece of code then computes the nearest points of any pair of two forms.
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
    """Return the form of a shape, or None if its kind has no form here."""
    if isinstance(shape, Sphere | Capsule):
        return RoundedForm
    return BoxForm if isinstance(shape, Box) else EllipsoidForm if isinstance(shape, Ellipsoid) else None


def sizes_of(shape: Shape) -> Sequence[float]:
    """Return the sizes that define a shape of its form."""
    if isinstance(shape, Sphere):
        return shape.radius, 0.0
    if isinstance(shape, Capsule):
        return shape.radius, shape.length
    if isinstance(shape, Box):
        return tuple(shape.size)
    assert isinstance(shape, Ellipsoid)
    return tuple(shape.radii)
