"""The terms of contact points in a step: what all points together give to the equations of the bodies.

A body with the spatial velocity V moves a point at r with u = v + omega x r; the impulse f of a point acts on
it as the wrench (r x f, f), and the Hessian G as the inertia of Eq. (1) of `Point.inertia`. So the points see
the bodies through their velocities only, and the bodies see sums of wrenches and inertias. Points that only
one moving body has (`grounded`) add their Hessians to that body's inertia; those between two (`dynamic`)
couple bodies in any pattern, and are left to conjugate gradients (`newton.solve_newton_system`). A body whose
motion is given counts as the ground here, as no unknown moves it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

from dalembert.contact.contacts import Contacts
from dalembert.contact.costs import Point
from dalembert.contact.friction import EllipticHessian, PointHessian, PointVector
from dalembert.contact.tree_system import TreeMotion, TreeSystem
from dalembert.scalar import Family, Row, Rows, Scalar
from dalembert.spatial import ArticulatedInertia, Force, Motion


@final
@dataclass(frozen=True, slots=True)
class PointSet:
    """The near points with their laws; `grounded` and `dynamic` ones, None where there can be none."""

    contacts: Contacts
    system: TreeSystem
    laws: Family[Point]
    grounded: Rows | None
    dynamic: Rows | None

    @staticmethod
    def of(contacts: Contacts, system: TreeSystem, law: Callable[[Row], Point]) -> PointSet:
        """Return the points, each with the law that `law` gives for its row."""
        laws = contacts.near.each(law)
        moving = [not system.is_driven(body) for body in range(len(system.carriers))]
        both = {(a >= 0 and moving[a]) and (b >= 0 and moving[b]) for a, b in contacts.body_pairs}
        if len(both) < 2:
            near = contacts.near
            return PointSet(
                contacts, system, laws, None if True in both else near, near if True in both else None
            )
        moves = contacts.bodies.numbers([*map(float, moving), 0.0])
        is_dynamic = lambda row: moves[contacts.first[row]] * moves[contacts.second[row]] > 0.5
        grounded = contacts.near.where(
            lambda row: moves[contacts.first[row]] * moves[contacts.second[row]] < 0.5
        )
        return PointSet(contacts, system, laws, grounded, contacts.near.where(is_dynamic))

    def motions(self, motion: TreeMotion) -> Family[Motion]:
        """Return the velocities of bodies about the common origin as rows."""
        return stack_motions(self.contacts, self.system, motion)

    def velocity(self, row: Row, motions: Family[Motion]) -> PointVector:
        """Return u of a point: the velocity of its second body relative to its first."""
        relative = motions[self.contacts.second[row]] - motions[self.contacts.first[row]]
        return self.laws[row].velocity(relative)

    def velocities(self, motion: TreeMotion) -> Family[PointVector]:
        """Return u of every point."""
        motions = self.motions(motion)
        return self.contacts.near.each(lambda row: self.velocity(row, motions))

    def wrenches(self, impulse: Callable[[Row], PointVector], rows: Rows | None = None) -> dict[int, Force]:
        """Return the sums of impulses on the second bodies, and of their opposites on the first, about the
        common origin by bodies: of all points, or of some `rows`."""
        contacts = self.contacts

        def acting(row: Row) -> list[tuple[Row, Force]]:
            wrench = self.laws[row].wrench(impulse(row))
            own = [(contacts.second[row], wrench)]
            return own if not self._firsts_move else [*own, (contacts.first[row], -wrench)]

        sums = (contacts.near if rows is None else rows).scatter(acting, contacts.bodies, Force.zero())
        return {body: sums.at(body) for body in self._touching()}

    def generalized(self, impulse: Callable[[Row], PointVector]) -> list[Scalar]:
        """Return J^T of impulses."""
        return self.system.impulses(self.wrenches(impulse))

    def inertias(
        self, hessian: Callable[[Row], PointHessian | EllipticHessian]
    ) -> dict[int, ArticulatedInertia]:
        """Return the sum of the Hessians of the grounded points of each body."""
        contacts = self.contacts
        if self.grounded is None:
            return {}

        def add_hessian(row: Row) -> list[tuple[Row, ArticulatedInertia]]:
            own = self.laws[row].inertia(hessian(row))
            both = [(contacts.second[row], own), (contacts.first[row], own)]
            return both if self._grounded_firsts else both[:1]

        sums = self.grounded.scatter(add_hessian, contacts.bodies, ArticulatedInertia.zero())
        driven = self.system.is_driven
        return {body: sums.at(body) for body in self._touching() if not driven(body)}

    def _touching(self) -> list[int]:
        """Return the moving bodies that have points."""
        bodies = {body for pair in self.contacts.body_pairs for body in pair}
        return sorted(body for body in bodies if not self.system.is_still(body))

    @property
    def _grounded_firsts(self) -> bool:
        """True if the first body of a grounded point may be the moving one."""
        driven = self.system.is_driven
        return any(driven(second) and not driven(first) for first, second in self.contacts.body_pairs)

    @property
    def _firsts_move(self) -> bool:
        """True if the first body of a point may move."""
        return any(not self.system.is_still(first) for first, _ in self.contacts.body_pairs)


def stack_motions(contacts: Contacts, system: TreeSystem, motion: TreeMotion) -> Family[Motion]:
    """Return the velocities of bodies and the world about the common origin as rows."""
    moving = [system.velocity(motion, body) for body in range(len(system.carriers))]
    return contacts.bodies.stack([*moving, Motion.zero()])
