"""The terms of contact points in a step: what all points together give to the equations of the bodies.

A body with the spatial velocity V moves a point at r with u = v + omega x r; the impulse f of a point acts on
it as the wrench (r x f, f), and the Hessian G as the inertia of Eq. (1) of `Point.inertia`. So the points see
the bodies through their velocities only, and the bodies see sums of wrenches and inertias. Points that only
one moving body has (`grounded`) add their Hessians to that body's inertia; those between two (`dynamic`)
couple bodies in any pattern; their Hessians add up to one inertia K for each pair of bodies that touch, and
are left to conjugate gradients (`newton.solve_newton_system`). A body whose motion is given counts as the
ground here, as no unknown moves it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar, final

from dalembert.algorithms.dense import dot
from dalembert.contact.contacts import Contacts, of_body, stack_bodies, standing_for
from dalembert.contact.costs import Point
from dalembert.contact.friction import EllipticHessian, PointHessian, PointVector
from dalembert.contact.tree_system import TreeMotion, TreeSystem
from dalembert.scalar import Family, Row, Rows, Scalar, select, sqrt
from dalembert.spatial import ArticulatedInertia, Force, Motion

Value = TypeVar("Value")

MIN_RELATIVE_PIVOT = 1e-12
"""The ratio of a pivot to its diagonal element below which K resists no motion along it: a single point
resists no rotation."""


class PairRoot(NamedTuple):
    """R of K = R R^T, 6 x 6 and triangular, by rows."""

    rows: tuple[tuple[Scalar, ...], ...]

    @staticmethod
    def of(K: ArticulatedInertia) -> PairRoot:
        """Return the Cholesky factor of a matrix that need not be regular."""
        R: list[list[Scalar]] = [[] for _ in range(6)]
        reciprocals: list[Scalar] = []
        for i, row in enumerate(K.matrix()):
            for j in range(i):
                R[i].append((row[j] - dot(R[i], R[j][:j])) * reciprocals[j])
            pivot = row[i] - dot(R[i], R[i])
            resists = pivot > MIN_RELATIVE_PIVOT * row[i]
            root = sqrt(select(resists, pivot, 1.0))
            reciprocals.append(select(resists, 1.0 / root, 0.0))
            R[i].append(select(resists, root, 0.0))
        return PairRoot(tuple(map(tuple, R)))

    def impulse(self, y: Sequence[Scalar]) -> Force:
        """Return R y."""
        return Force.of([dot(row, y[: len(row)]) for row in self.rows])

    def resisted(self, velocity: Motion) -> list[Scalar]:
        """Return R^T u."""
        u = velocity.to_list()
        return [dot([row[k] for row in self.rows[k:]], u[k:]) for k in range(6)]


class MovingPairs(NamedTuple):
    """The pairs of moving bodies that dynamic points couple in any sample, and the two bodies of each."""

    near: Rows
    first: Family[Row]
    second: Family[Row]

    @staticmethod
    def of(contacts: Contacts, dynamic: Rows) -> MovingPairs:
        """Return the pairs of these points."""
        every = contacts.body_pairs
        touched = dynamic.scatter(lambda row: [(every.of_point[row], 1.0)], every.rows, 0.0)
        return MovingPairs(every.rows.where(lambda row: touched[row] > 0.5), every.first, every.second)

    def relative(self, row: Row, motions: Family[Motion]) -> Motion:
        """Return the velocity of the second body relative to the first."""
        return motions[self.second[row]] - motions[self.first[row]]


@final
@dataclass(frozen=True, slots=True)
class PointSet:
    """The near points with their laws; `grounded` and `dynamic` ones, and the `pairs` of bodies that dynamic
    ones couple, None where there can be none; `names`: the first and the second body of the pairs that there
    may be, by the bodies of the tree that stand for them."""

    contacts: Contacts
    system: TreeSystem
    laws: Family[Point]
    grounded: Rows | None
    dynamic: Rows | None
    pairs: MovingPairs | None
    names: tuple[tuple[int, int], ...] = ()

    @staticmethod
    def of(contacts: Contacts, system: TreeSystem, law: Callable[[Row], Point]) -> PointSet:
        """Return the points, each with the law that `law` gives for its row."""
        laws = contacts.near.each(law)
        tree = system.axes.tree
        moving = [not system.is_driven(body) for body in range(len(system.carriers))]
        names = tuple(
            dict.fromkeys(
                (standing_for(tree, a), standing_for(tree, b)) for a, b in contacts.body_pairs.names
            )
        )
        both = {(a >= 0 and moving[a]) and (b >= 0 and moving[b]) for a, b in names}
        near = contacts.near
        if True not in both:
            return PointSet(contacts, system, laws, near, None, None, names)
        if False not in both:
            return PointSet(contacts, system, laws, None, near, MovingPairs.of(contacts, near), names)
        moves = stack_bodies(tree, contacts.bodies, [*map(float, moving)], 0.0)
        is_dynamic = lambda row: moves[contacts.first[row]] * moves[contacts.second[row]] > 0.5
        grounded = near.where(lambda row: moves[contacts.first[row]] * moves[contacts.second[row]] < 0.5)
        dynamic = near.where(is_dynamic)
        return PointSet(contacts, system, laws, grounded, dynamic, MovingPairs.of(contacts, dynamic), names)

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

    def wrenches(self, impulse: Callable[[Row], PointVector]) -> dict[int, Force]:
        """Return the sums of impulses on the second bodies, and of their opposites on the first, about the
        common origin by bodies."""
        return self._wrenches(lambda row: ([impulse(row)], ()), 1)[0][0]

    def generalized(self, impulse: Callable[[Row], PointVector]) -> list[Scalar]:
        """Return J^T of impulses."""
        return self.system.impulses(self.wrenches(impulse))

    def generalized_each(
        self, step: Callable[[Row], tuple[Sequence[PointVector], Value]], count: int
    ) -> tuple[list[list[Scalar]], Family[Value]]:
        """Return J^T of each of `count` sets of impulses, and a value for each point, in one pass over the
        points."""
        wrenches, values = self._wrenches(step, count)
        return [self.system.impulses(own) for own in wrenches], values

    def _wrenches(
        self, step: Callable[[Row], tuple[Sequence[PointVector], Value]], count: int
    ) -> tuple[list[dict[int, Force]], Family[Value]]:
        """Return the sums of `wrenches` of each of `count` sets of impulses, and a value for each point."""
        contacts = self.contacts

        def acting(row: Row) -> tuple[list[tuple[Row, list[Force]]], Value]:
            impulses, value = step(row)
            wrenches = [self.laws[row].wrench(impulse) for impulse in impulses]
            own = [(contacts.second[row], wrenches)]
            if self._firsts_move:
                own.append((contacts.first[row], [-wrench for wrench in wrenches]))
            return own, value

        sums, values = contacts.near.scatter_each(acting, contacts.bodies, [Force.zero()] * count)
        on_bodies = {body: self._of_body(sums, body) for body in self._touching()}
        return [{body: own[k] for body, own in on_bodies.items()} for k in range(count)], values

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
        return {body: self._of_body(sums, body) for body in self._touching() if not driven(body)}

    def pair_roots(self, hessian: Callable[[Row], PointHessian | EllipticHessian]) -> Family[PairRoot]:
        """Return R of each pair of bodies: K = R R^T is the sum of the Hessians of its dynamic points."""
        assert self.dynamic is not None
        assert self.pairs is not None
        pair = self.contacts.body_pairs.of_point

        def add_hessian(row: Row) -> list[tuple[Row, ArticulatedInertia]]:
            return [(pair[row], self.laws[row].inertia(hessian(row)))]

        K = self.dynamic.scatter(add_hessian, self.pairs.near, ArticulatedInertia.zero())
        return self.pairs.near.each(lambda row: PairRoot.of(K[row]))

    def pair_wrenches(self, impulse: Callable[[Row], Force]) -> dict[int, Force]:
        """Return the sums of impulses of pairs on the second bodies, and of their opposites on the first."""
        assert self.pairs is not None
        first, second, bodies = self.pairs.first, self.pairs.second, self.contacts.bodies
        acting = lambda row: [(second[row], impulse(row)), (first[row], -impulse(row))]
        sums = self.pairs.near.scatter(acting, bodies, Force.zero())
        driven = self.system.is_driven
        both = {body for names in self.names if not any(map(driven, names)) for body in names}
        return {body: self._of_body(sums, body) for body in sorted(both)}

    def _of_body(self, sums: Family[Value], body: int) -> Value:
        return of_body(self.system.axes.tree, self.contacts.bodies, sums, body)

    def _touching(self) -> list[int]:
        """Return the moving bodies that have points."""
        bodies = {body for names in self.names for body in names}
        return sorted(body for body in bodies if not self.system.is_still(body))

    @property
    def _grounded_firsts(self) -> bool:
        """True if the first body of a grounded point may be the moving one."""
        driven = self.system.is_driven
        return any(driven(second) and not driven(first) for first, second in self.names)

    @property
    def _firsts_move(self) -> bool:
        """True if the first body of a point may move."""
        return any(not self.system.is_still(first) for first, _ in self.names)


def stack_motions(contacts: Contacts, system: TreeSystem, motion: TreeMotion) -> Family[Motion]:
    """Return the velocities of bodies and the world about the common origin as rows."""
    moving = [system.velocity(motion, body) for body in range(len(system.carriers))]
    return stack_bodies(system.axes.tree, contacts.bodies, moving, Motion.zero())
