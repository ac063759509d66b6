"""Coefficients of contact by name: those of the shapes of a body, of a link or of the world, or of one shape.

    <name>.contact_friction  .torsional_friction  .rolling_friction  .restitution

A name means every colliding shape that has it as its own, its link's or its body's; "world" is a body here.
Torsional and rolling friction have names where a shape of the model has them (`condim` 4 and 6).
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from dalembert.errors import ModelError
from dalembert.model.shapes.shape import USUAL_FRICTION, Shape
from dalembert.model.topology import WORLD_NAME
from dalembert.scalar import Scalar

if TYPE_CHECKING:
    from dalembert.model.model import Model

FRICTIONS: Final = ("contact_friction", "torsional_friction", "rolling_friction")
"""The coefficients in `Shape.friction`, in its order."""

CONDIMS_OF_FRICTIONS: Final = (3, 4, 6)
"""The least `condim` of a contact in which each of them acts."""


def shape_value_names(model: Model) -> Iterator[str]:
    """Yield the name of every coefficient that the colliding shapes of a name have in common."""
    owners = dict.fromkeys(
        name for carrier, shape in _colliding_shapes(model) for name in _names(carrier, shape)
    )
    parts = _parts(model)
    for owner in owners:
        shapes = shapes_of(model, owner)
        for part in parts:
            if len({_coefficient(shape, part) for shape in shapes}) == 1:
                yield f"{owner}.{part}"


def is_shape_value(model: Model, owner: str, part: str) -> bool:
    """Return whether shapes of that name have such a coefficient."""
    return part in _parts(model) and bool(shapes_of(model, owner))


def shapes_of(model: Model, owner: str) -> list[Shape]:
    """Return the colliding shapes that a name means."""
    return [shape for carrier, shape in _colliding_shapes(model) if owner in _names(carrier, shape)]


def shape_value(model: Model, owner: str, part: str) -> Any:
    """Return a coefficient that all shapes of a name have in common."""
    shapes = shapes_of(model, owner)
    found = _coefficient(shapes[0], part)
    if any(_coefficient(shape, part) != found for shape in shapes[1:]):
        raise ModelError(
            f'shapes of "{owner}" differ in {part}; name one of them, such as '
            f'"{_name_of(shapes, owner)}.{part}"'
        )
    return found


def replace_shape_values(
    carrier: str, shapes: Iterable[Shape], new: Mapping[tuple[str, str], Scalar], *, checked: bool
) -> tuple[Shape, ...]:
    """Return the shapes of a body with other coefficients, by name and part; unless `checked`, any
    scalars."""
    found = []
    for shape in shapes:
        names = _names(carrier, shape) if shape.collision else ()
        for (owner, part), value in new.items():
            if owner in names:
                shape = _with_coefficient(shape, part, value, checked)
        found.append(shape)
    return tuple(found)


def _with_coefficient(shape: Shape, part: str, value: Scalar, checked: bool) -> Shape:
    own: Any = value
    if part in FRICTIONS:
        field, numbers = "friction", list(USUAL_FRICTION if shape.friction is None else shape.friction)
        numbers[FRICTIONS.index(part)] = value
        own = tuple(numbers)
    else:
        field = part
    if checked:
        same = getattr(shape, field) is None and own == USUAL_FRICTION
        return shape if same else dataclasses.replace(shape, **{field: own})
    found = copy.copy(shape)
    object.__setattr__(found, field, own)
    return found


def _coefficient(shape: Shape, part: str) -> Scalar:
    """Return a coefficient of a shape; without friction of its own, that of two such shapes."""
    if part == "restitution":
        return shape.restitution
    return (USUAL_FRICTION if shape.friction is None else shape.friction)[FRICTIONS.index(part)]


def _parts(model: Model) -> list[str]:
    """Return the coefficients that act in any contact of a model."""
    condim = max((shape.condim for _, shape in _colliding_shapes(model)), default=0)
    acting = [name for name, least in zip(FRICTIONS, CONDIMS_OF_FRICTIONS, strict=True) if condim >= least]
    return [*acting, *["restitution"] * (condim > 0)]


def _colliding_shapes(model: Model) -> Iterator[tuple[str, Shape]]:
    """Yield the colliding shapes with the names of their bodies."""
    yield from ((WORLD_NAME, shape) for shape in model.world_shapes if shape.collision)
    yield from ((body.name, shape) for body in model.bodies for shape in body.shapes if shape.collision)


def _names(carrier: str, shape: Shape) -> tuple[str, ...]:
    return tuple(name for name in (carrier, shape.link, shape.name) if name)


def _name_of(shapes: Iterable[Shape], owner: str) -> str:
    """Return the name of a shape or of its link that is not the one of all."""
    own = (name for shape in shapes for name in (shape.name, shape.link) if name and name != owner)
    return next(own, "the name of a shape")
