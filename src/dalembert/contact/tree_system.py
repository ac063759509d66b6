"""The linear system A x = b of a step, solved along the tree without A.

In world axes about one origin (`JointAxes`) a joint's axis s is the same for all bodies that it carries, and
inertias add up without transformations. A joint of n freedoms is a chain of n arcs, of which the last has the
body's inertia I (Featherstone 2008 Table 6.4); `resistance` is what damping and springs add, h d + h^2 k:

    A = sum over bodies of J^T I J + sum over arcs of (armature + resistance),      J = [s of its arcs]   (1)

To A a step adds Hessians of bodies, which add to I, and a matrix `terms` of joint variables. An arc is taken
out of the equations as in the articulated-body algorithm (`algorithms.articulated`), leaves first, where I
has the I^a of the arcs that the body carries:

    U = I s,   D = s . U + armature + resistance + term,   I^a = I - U D^-1 U^T                           (2)
    u = b - s . p,   p^a = p + U D^-1 u;      x = D^-1 (u - U . a),   a_here = a + s x                    (3)

(2) and (3) are one step of Gaussian elimination of the matrix on the left, with a known on the right:

    [ I    U ] [ a ]   [ . ]
    [ U^T  D ] [ x ] = [ u ]                                                                              (4)

Variables that `terms` or followers tie together are taken out at once, with D and U of several variables and
the composite inertia of their arcs for I; D keeps its structural zeros. The motion of a root with a free
joint, on which no terms act, is I^-1 f: its variables are the coordinates of that motion in the root's frame.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar, final

from dalembert.algorithms.clusters import tied_sets
from dalembert.algorithms.dense import Matrix, SymmetricFactor, factor
from dalembert.algorithms.kinematics import forward_kinematics
from dalembert.algorithms.open_tree import velocity_places
from dalembert.contact.prescribed import JointAtTime
from dalembert.model.body import Body
from dalembert.model.joints import Free
from dalembert.model.topology import WORLD
from dalembert.model.tree import PerBody, Tree
from dalembert.scalar import Scalar, is_one, is_zero
from dalembert.scalar.row_sets import at_first_row
from dalembert.spatial import ArticulatedInertia, Force, Motion, RigidInertia, Transform, Vec3

# Joint axes in one common frame: world axes about a point near the figure.
#
# In this frame an axis is the same for every body that it carries, forces of bodies add up the tree, and so
# do the Hessians of contact: sums without transformations (Featherstone 2008 section 6.6 calls it the basic
# form). The point is the origin of the first body, so that numbers stay small wherever in the world the
# figure is.


@final
@dataclass(frozen=True, slots=True)
class JointAxes:
    """The poses of the bodies and, along world axes about `origin`, the axes S of every joint, and sigma of
    those that depend on time, else None."""

    tree: Tree
    origin: Vec3
    poses: PerBody[Transform]
    S: PerBody[list[Motion]]
    drifts: PerBody[Motion | None]

    def columns(self, first: int, second: int) -> list[tuple[list[tuple[int, float]], Motion]]:
        """Return the motion of body `second` relative to `first` as sum of columns: (places in v with ratios,
        axis).

        Joints that carry both move neither relative to the other and are left out.
        """
        carrying_first, carrying_second = self._path(first), self._path(second)
        columns = []
        for body in carrying_second:
            if body not in carrying_first:
                columns += list(zip(velocity_places(body), self.S[body], strict=True))
        for body in carrying_first:
            if body not in carrying_second:
                columns += [(places, -s) for places, s in zip(velocity_places(body), self.S[body])]
        return columns

    def _path(self, index: int) -> list[Body]:
        path = []
        while index != WORLD:
            body = self.tree.bodies[index]
            path.append(body)
            index = body.parent
        return path


def joint_axes(tree: Tree, q: Sequence[Scalar]) -> JointAxes:
    """Return the axes of all joints at q."""
    poses = forward_kinematics(tree, q)
    origin = at_first_row(poses[0].p) if tree.bodies else Vec3.zero()

    def in_world(body: Body, s: Motion) -> Motion:
        R, arm = poses[body].R, poses[body].p - origin
        turned = Motion(R @ s.angular, R @ s.linear)
        return Motion(turned.angular, turned.linear + arm.cross(turned.angular))

    def axes(body: Body) -> list[Motion]:
        return [in_world(body, s) for s in body.jcalc(q, None, None).S]

    def drift(body: Body) -> Motion | None:
        joint = body.joint
        return in_world(body, joint.drift(body.own_q(q))) if isinstance(joint, JointAtTime) else None

    found = tree.outward(lambda body, _: ((), (axes(body), drift(body))), ())
    S, drifts = PerBody([s for s, _ in found]), PerBody([sigma for _, sigma in found])
    return JointAxes(tree, origin, poses, S, drifts)


# The system: its parts, its products, and its factors.

FREEDOMS = 6
"""The number of velocity components of a body."""

Inertia = RigidInertia | ArticulatedInertia


class Arc(NamedTuple):
    """A joint variable: the arc that carries it (-1: none does), its places in v with ratios, its axis."""

    parent: int
    places: list[tuple[int, float]]
    axis: Motion
    armature: Scalar
    resistance: Scalar

    def rate(self, v: Sequence[Scalar]) -> Scalar:
        """Return its speed at the independent velocities v."""
        total: Scalar = 0.0
        for place, ratio in self.places:
            own = _scaled(v[place], ratio)
            total = own if is_zero(total) else total + own
        return total

    def add(self, total: list[Scalar], x: Scalar) -> None:
        """Add an impulse on it to those on the independent variables, in place."""
        for place, ratio in self.places:
            total[place] = total[place] + _scaled(x, ratio)


def _scaled(x: Scalar, ratio: float) -> Scalar:
    return x if is_one(ratio) else x * ratio


class TreeMotion(NamedTuple):
    """Velocities v `(nv,)`, and the motion of what each arc carries; all arcs of a free root have that of the
    root."""

    v: list[Scalar]
    arcs: list[Motion]


@final
@dataclass(frozen=True, slots=True)
class TreeSystem:
    """The parts of A: arcs, parents first; the inertia that each arc moves before the next one; the last arc
    that moves each body (-1: none does); about 1 / A_jj of every variable; the poses of roots with free
    joints without terms of their own, relative to the origin, by their first arc.

    `known`: variables whose values are given (prescribed joints, the clock). They are no unknowns: their arcs
    stay in place, I^a = I in (2), and the solutions of the other variables have zeros there."""

    axes: JointAxes
    arcs: list[Arc]
    inertias: list[RigidInertia]
    carriers: list[int]
    weights: list[Scalar]
    free_roots: dict[int, Transform]
    known: frozenset[int] = frozenset()

    @staticmethod
    def of(
        axes: JointAxes,
        resistances: Sequence[Sequence[Scalar]],
        inverse_masses: Sequence[Scalar],
        known: frozenset[int] = frozenset(),
    ) -> TreeSystem:
        """Return the system at the poses of `axes`; `resistances` of the variables of each body's joint,
        `inverse_masses`: about 1 / M_jj."""
        weights = [0.0 if k in known else w for k, w in enumerate(inverse_masses)]
        found = TreeSystem(axes, [], [], [], weights, {}, known)
        for body, resistance in zip(axes.tree.bodies, resistances, strict=True):
            found._append(body, resistance)
        return found

    def _append(self, body: Body, resistance: Sequence[Scalar]) -> None:
        """Append the arcs and the inertia of a body."""
        axes, carrier = self.axes, self.carriers[body.parent] if body.parent != WORLD else -1
        pose = Transform(axes.poses[body].R, axes.poses[body].p - axes.origin)
        still = all(is_zero(x) for x in (*body.armature, *resistance))
        still = still and self.known.isdisjoint(range(body.v_slice.start, body.v_slice.stop))
        if isinstance(body.joint, Free) and carrier < 0 and still:
            self.free_roots[len(self.arcs)] = pose
        own = zip(velocity_places(body), axes.S[body], body.armature, resistance, strict=True)
        for places, s, armature, r in own:
            self.arcs.append(Arc(carrier, places, s, armature, r))
            self.inertias.append(RigidInertia.zero())
            carrier = len(self.arcs) - 1
            for place, ratio in places:
                weight = self.weights[place]
                self.weights[place] = weight / (1.0 + weight * (ratio * ratio) * r)
        drift = axes.drifts[body]
        if drift is not None:
            self.arcs.append(Arc(carrier, [(axes.tree.nv - 1, 1.0)], drift, 0.0, 0.0))
            self.inertias.append(RigidInertia.zero())
            carrier = len(self.arcs) - 1
        self.carriers.append(carrier)
        if carrier >= 0:
            self.inertias[carrier] = self.inertias[carrier] + pose.inverse_apply(body.inertia)

    def is_still(self, body: int) -> bool:
        """Return whether no joint moves a body, or the world."""
        return body == WORLD or self.carriers[body] < 0

    def is_driven(self, body: int) -> bool:
        """Return whether no unknown moves a body: it stands still, or known variables alone move it."""
        k = -1 if body == WORLD else self.carriers[body]
        while k >= 0:
            if any(place not in self.known for place, _ in self.arcs[k].places):
                return False
            k = self.arcs[k].parent
        return True

    def motion(self, v: Sequence[Scalar]) -> TreeMotion:
        """Return the motion at the velocities v."""
        found: list[Motion] = []
        for arc in self.arcs:
            own = arc.axis * arc.rate(v)
            found.append(own if arc.parent < 0 else found[arc.parent] + own)
        return TreeMotion(list(v), found)

    def velocity(self, motion: TreeMotion, body: int) -> Motion:
        """Return the velocity of a body about the origin."""
        return Motion.zero() if self.is_still(body) else motion.arcs[self.carriers[body]]

    def on_arcs(self, wrenches: Mapping[int, Force]) -> dict[int, Force]:
        """Return the sums of wrenches on bodies that move by the arcs that carry these."""
        found: dict[int, Force] = {}
        for body, wrench in wrenches.items():
            k = self.carriers[body]
            found[k] = found[k] + wrench if k in found else wrench
        return found

    def impulses(self, wrenches: Mapping[int, Force]) -> list[Scalar]:
        """Return J^T f `(nv,)` of impulses about the origin on bodies that move."""
        own = [Force.zero()] * len(self.arcs)
        for body, wrench in wrenches.items():
            k = self.carriers[body]
            own[k] = own[k] + wrench
        return self._project(_carried(self.arcs, own))

    def _project(self, carried: Sequence[Force]) -> list[Scalar]:
        total: list[Scalar] = [0.0] * self.axes.tree.nv
        for arc, force in zip(self.arcs, carried, strict=True):
            arc.add(total, arc.axis.dot(force))
        return total

    def carried_momenta(self, motion: TreeMotion) -> list[Force]:
        """Return the momentum of all that each arc carries, about the origin."""
        return _carried(self.arcs, [I * x for I, x in zip(self.inertias, motion.arcs, strict=True)])

    def carried_inertias(self) -> list[RigidInertia]:
        """Return the inertia of all that each arc carries."""
        return _carried(self.arcs, self.inertias)

    def momenta(self, motion: TreeMotion) -> list[Scalar]:
        """Return M v `(nv,)`: (1) without resistances."""
        total = self._project(self.carried_momenta(motion))
        for arc in self.arcs:
            if not is_zero(arc.armature):
                arc.add(total, arc.armature * arc.rate(motion.v))
        return total

    def times(self, motion: TreeMotion) -> list[Scalar]:
        """Return A v `(nv,)`."""
        total = self.momenta(motion)
        for arc in self.arcs:
            if not is_zero(arc.resistance):
                arc.add(total, arc.resistance * arc.rate(motion.v))
        return total

    def factor(self, hessians: Mapping[int, ArticulatedInertia], terms: Matrix) -> TreeFactor:
        """Factor A with Hessians of bodies that move, and `terms`, of which the lower triangle is read."""
        inertias: list[Inertia] = list(self.inertias)
        added: dict[int, list[ArticulatedInertia]] = {}
        for body, hessian in hessians.items():
            added.setdefault(self.carriers[body], []).append(hessian)
        tied = {k for i, row in enumerate(terms) for j in range(i + 1) if not is_zero(row[j]) for k in (i, j)}
        free = {k: X for k, X in self.free_roots.items() if tied.isdisjoint(self._root_places(k))}
        parts: list[ArcPart | FreePart] = []
        for members in reversed(self._tied(terms, [set(range(k, k + FREEDOMS)) for k in free])):
            first = members[0]
            for k in members:  # here, where they are used: all at first, they would be spilled
                for hessian in added.get(k, ()):
                    inertias[k] = inertias[k] + hessian
            if first in free and len(members) == FREEDOMS:  # more where a gear ties the figure to another
                parts.append(FreePart.of(members, self.arcs, free[first], inertias[members[-1]]))
            else:
                parts.append(ArcPart.of(members, self._unknown_arcs(), inertias, terms))
        return TreeFactor(len(self.arcs), parts, self.known)

    def _unknown_arcs(self) -> list[Arc]:
        """Return the arcs with the places of unknowns alone."""
        if not self.known:
            return self.arcs
        return [arc._replace(places=[p for p in arc.places if p[0] not in self.known]) for arc in self.arcs]

    def _root_places(self, first: int) -> list[int]:
        """Return the variables of a free root by its first arc."""
        return [place for arc in self.arcs[first : first + FREEDOMS] for place, _ in arc.places]

    def _tied(self, terms: Matrix, groups: list[set[int]]) -> list[list[int]]:
        """Return the sets of arcs to take out together, each after that which carries it: those of `groups`,
        those of one variable, and those that terms tie."""
        users: list[set[int]] = [set() for _ in terms]
        arcs = self._unknown_arcs()
        for k, arc in enumerate(arcs):
            for place, _ in arc.places:
                users[place].add(k)
        groups = groups + [set().union(*(users[place] for place, _ in arc.places)) for arc in arcs]
        for i, row in enumerate(terms):
            groups.append(users[i].union(*(users[j] for j in range(i) if not is_zero(row[j]))))
        return tied_sets([arc.parent for arc in self.arcs], [group for group in groups if len(group) > 1])


Sum = TypeVar("Sum", Force, RigidInertia)


def _carried(arcs: Sequence[Arc], own: Sequence[Sum]) -> list[Sum]:
    """Return the sum over all that each arc carries."""
    total = list(own)
    for k in reversed(range(len(arcs))):
        if arcs[k].parent >= 0:
            total[arcs[k].parent] = total[arcs[k].parent] + total[k]
    return total


@final
@dataclass(frozen=True, slots=True)
class ArcPart:
    """Arcs taken out together, parents first, each by its number; their independent variables, and the arc
    `base` that carries them; rows of the factor of (4), the base's first unless that is the world."""

    base: int
    arcs: list[tuple[int, Arc]]
    places: list[int]
    rows: list[dict[int, Scalar]]
    reciprocals: list[Scalar]

    @staticmethod
    def of(members: Sequence[int], arcs: Sequence[Arc], inertias: list[Inertia], terms: Matrix) -> ArcPart:
        """Take arcs out of the equations by (2); add the I^a that is left to the inertia of their base."""
        base = min(arcs[k].parent for k in members)
        places = sorted({place for k in members for place, _ in arcs[k].places})
        border = 0 if base < 0 else FREEDOMS
        where = {place: number for number, place in enumerate(places, start=border)}
        lower: list[dict[int, Scalar]] = [{} for _ in range(border + len(places))]
        for k in reversed(members):
            arc, inertia = arcs[k], inertias[k]
            if arc.parent != base:
                inertias[arc.parent] = inertias[arc.parent] + inertia
            elif base >= 0:
                for i, row in enumerate(inertia.matrix()):
                    for j in range(i + 1):
                        _add(lower, i, j, row[j])
            U = inertia * arc.axis
            for place, ratio in arc.places:
                for number, x in enumerate(U.to_list()[:border]):
                    _add(lower, where[place], number, _scaled(x, ratio))
            _add_products(lower, where, arc, arc, arc.axis.dot(U) + arc.armature + arc.resistance)
            above = arc.parent
            while above != base:
                _add_products(lower, where, arc, arcs[above], arcs[above].axis.dot(U))
                above = arcs[above].parent
        for place in places:
            for other in places[: where[place] - border + 1]:
                _add(lower, where[place], where[other], terms[place][other])
        rows, reciprocals = _factor(lower, border)
        if base >= 0:
            left = ArticulatedInertia.from_upper(lambda i, j: lower[j].get(i, 0.0))
            inertias[base] = left + inertias[base]
        return ArcPart(base, [(k, arcs[k]) for k in members], places, rows, reciprocals)

    def gather(self, x: list[Scalar], forces: list[Force]) -> None:
        """Put D^-1 u into x, and add p^a to the force on the base."""
        total, border = Force.zero(), len(self.rows) - len(self.places)
        for k, arc in reversed(self.arcs):
            arc.add(x, -arc.axis.dot(forces[k]))
            if arc.parent == self.base:
                total = total + forces[k]
            else:
                forces[arc.parent] = forces[arc.parent] + forces[k]
        column = [-y for y in total.to_list()[:border]] + [x[place] for place in self.places]
        for k in reversed(range(border, len(column))):
            for i, a in self.rows[k].items():
                column[i] = column[i] - a * column[k]
        if self.base >= 0:
            forces[self.base] = forces[self.base] - Force.of(column[:FREEDOMS])
        for k, place in enumerate(self.places, start=border):
            x[place] = column[k] * self.reciprocals[k]

    def move(self, x: list[Scalar], motions: list[Motion]) -> None:
        """Put the solution into x, and find the motions that it gives."""
        column = motions[self.base].to_list() if self.base >= 0 else []
        for k, place in enumerate(self.places, start=len(column)):
            column.append(x[place])
            for i, a in self.rows[k].items():
                column[k] = column[k] - a * column[i]
            x[place] = column[k]
        for k, arc in self.arcs:
            own = arc.axis * arc.rate(x)
            motions[k] = own if arc.parent < 0 else motions[arc.parent] + own


@final
@dataclass(frozen=True, slots=True)
class FreePart:
    """A root with a free joint: its arcs, its variables, its pose, the factors of its articulated inertia."""

    arcs: Sequence[int]
    places: list[int]
    pose: Transform
    inertia: SymmetricFactor

    @staticmethod
    def of(members: Sequence[int], arcs: Sequence[Arc], pose: Transform, inertia: Inertia) -> FreePart:
        """Factor the articulated inertia of the root."""
        places = [place for k in members for place, _ in arcs[k].places]
        return FreePart(members, places, pose, factor(inertia.matrix()))

    def gather(self, x: list[Scalar], forces: list[Force]) -> None:
        """Leave the impulses on the joint in x: the world needs no force."""
        own = self.pose.inverse_apply(Force.of([x[place] for place in self.places]))
        forces[self.arcs[-1]] = own - forces[self.arcs[-1]]
        motion = Motion.of(self.inertia.solve(forces[self.arcs[-1]].to_list()))
        for place, y in zip(self.places, motion.to_list(), strict=True):
            x[place] = y

    def move(self, x: list[Scalar], motions: list[Motion]) -> None:
        """Put the coordinates of the motion of the root in its own frame into x."""
        motion = Motion.of([x[place] for place in self.places])
        for k in self.arcs:
            motions[k] = motion
        for place, y in zip(self.places, self.pose.apply(motion).to_list(), strict=True):
            x[place] = y


def _add(lower: list[dict[int, Scalar]], i: int, j: int, x: Scalar) -> None:
    """Add to an element of a lower triangle that holds no structural zeros."""
    if not is_zero(x):
        lower[i][j] = lower[i][j] + x if j in lower[i] else x


def _add_products(
    lower: list[dict[int, Scalar]], where: Mapping[int, int], a: Arc, b: Arc, x: Scalar
) -> None:
    """Add x of two arcs to the elements of their independent variables, and its transpose if they differ."""
    for place, ratio in a.places:
        for other, scale in b.places:
            i, j = where[place], where[other]
            if a is not b or i >= j:
                # Two arcs of one variable (a coupling) meet twice on the diagonal.
                term = _scaled(x, ratio * scale)
                _add(lower, max(i, j), min(i, j), term + term if a is not b and i == j else term)


def _factor(lower: list[dict[int, Scalar]], border: int) -> tuple[list[dict[int, Scalar]], list[Scalar]]:
    """Take the rows of a symmetric matrix below its border out of it, from the last one up, in place; return
    those of L in H = L^T D L, and 1 / D."""
    rows: list[dict[int, Scalar]] = [{} for _ in lower]
    reciprocals: list[Scalar] = [0.0] * len(lower)
    for k in reversed(range(border, len(lower))):
        reciprocals[k] = 1.0 / lower[k][k]
        above = sorted((i for i in lower[k] if i < k), reverse=True)
        for i in above:
            a = rows[k][i] = lower[k][i] * reciprocals[k]
            for j in above:
                if j <= i:
                    _add(lower, i, j, -(a * lower[k][j]))
    return rows, reciprocals


@final
@dataclass(frozen=True, slots=True)
class TreeFactor:
    """The factors of a tree's system: parts of its arcs, in the order in which they are taken out."""

    arcs: int
    parts: Sequence[ArcPart | FreePart]
    known: frozenset[int] = frozenset()

    def solve(self, b: Sequence[Scalar], wrenches: Mapping[int, Force] | None = None) -> TreeMotion:
        """Return x of A x = b + J^T f and the motions that it gives, by (3): forces inward, motions outward;
        `wrenches`: f about the origin, by the arcs that they act on."""
        x = [0.0 if k in self.known else y for k, y in enumerate(b)]
        forces = [Force.zero()] * self.arcs
        for k, wrench in (wrenches or {}).items():
            forces[k] = -wrench
        for part in self.parts:
            part.gather(x, forces)
        motions = [Motion.zero()] * self.arcs
        for part in reversed(self.parts):
            part.move(x, motions)
        return TreeMotion(x, motions)
