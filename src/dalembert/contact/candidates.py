"""Contact candidates: places where bodies may touch, as geometry hands them to the contact laws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, final

from dalembert.scalar import Scalar
from dalembert.spatial import Vec3

if TYPE_CHECKING:
    from dalembert.contact.chosen_points import RuntimeBodies

__all__ = ["ABSENT_POINT_GAP", "Candidate", "ContactPoint"]

ABSENT_POINT_GAP = 1e3
"""The gap [m] of a point that does not exist in a configuration: far beyond any contact."""


class ContactPoint(NamedTuple):
    """The place where two surfaces are nearest, in world coordinates.

    `normal` is of unit length and points from the first surface to the second; `gap` [m] is negative where
    they overlap; `position` is midway between them.
    """

    position: Vec3
    normal: Vec3
    gap: Scalar


@final
@dataclass(frozen=True, slots=True)
class Candidate:
    """A contact point between two bodies (-1: the world) with the coefficients of the pair.

    `friction`: Coulomb's mu; `restitution`: e of Featherstone 2008 Eq. 11.64; `runtime_bodies`: the two
    bodies where they are known only at run time.
    """

    first: int
    second: int
    friction: Scalar
    restitution: Scalar
    point: ContactPoint
    runtime_bodies: RuntimeBodies | None = None
