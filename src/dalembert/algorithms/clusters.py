"""Clusters: the bodies that couplings tie and that must be eliminated together.

A coupling makes one joint follow others, so that their freedoms cannot be taken out of the equations of
motion one at a time. Joints that share an independent variable form a group. All bodies of a group hang on
a common *base* body (or the world): the group's bodies and those on the ways to them from the base are a
cluster (constraint embedding, Jain 2011). Clusters that share a body are one. The clusters, each hanging on
a body of another cluster or on the world, are again a tree, in which an uncoupled body is a cluster of its
own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, final

from dalembert.algorithms.articulated import JointElimination, Moved, eliminate_joint
from dalembert.algorithms.dense import Matrix, SymmetricFactor, factor, total
from dalembert.algorithms.open_tree import velocity_places
from dalembert.algorithms.sparse import ancestors
from dalembert.errors import ModelError
from dalembert.model.body import Body
from dalembert.model.joints.subspaces import combination
from dalembert.model.topology import WORLD
from dalembert.model.tree import PerBody, Tree
from dalembert.scalar import Scalar, Scalars, Time
from dalembert.spatial import ArticulatedInertia, Force, Motion, Placement, RigidInertia, Vec3


class Cluster(NamedTuple):
    """Bodies, parents first, that move together on the body of index `base` (-1 is the world).

    `variables`: the places in v of their independent velocities.
    """

    base: int
    bodies: tuple[Body, ...]
    variables: tuple[int, ...]


def clusters_of(tree: Tree) -> list[Cluster]:
    """Return the clusters of a tree in regular numbering, each after the one that carries it."""
    return [_cluster(tree, members) for members in tied_sets(tree.parents, _groups(tree))]


def tied_sets(parents: Sequence[int], groups: Sequence[set[int]]) -> list[list[int]]:
    """Return disjoint sets of the nodes of a tree: the groups, each with all between it and its base, joined
    where they share a node, and every other node by itself; each after the one that carries it."""
    sets: list[set[int]] = []
    for group in groups:
        merged = _fill_to_base(parents, group)
        for other in [held for held in sets if held & merged]:
            sets.remove(other)
            merged |= other
        sets.append(merged)
    tied = set().union(*sets)
    sets += [{node} for node in range(len(parents)) if node not in tied]
    return [sorted(members) for members in sorted(sets, key=min)]


def _groups(tree: Tree) -> list[set[int]]:
    """Return the groups of bodies whose joints depend on common variables."""
    independent = [body for body in tree.bodies if body.dependence is None]
    by_place = {place: {body.index} for body in independent for place in range(tree.nv)[body.v_slice]}
    for body in tree.bodies:
        if body.dependence is not None:
            joined = {body.index}.union(*(by_place[place] for _, place, _ in body.dependence.terms))
            places = [place for place, held in by_place.items() if held & joined]
            for place in places:
                joined = joined | by_place[place]
            for place in places:
                by_place[place] = joined
    found = {id(held): held for held in by_place.values() if len(held) > 1}
    return list(found.values())


def _fill_to_base(parents: Sequence[int], group: set[int]) -> set[int]:
    """Return the group with the bodies between it and its base, the last body that carries all of it."""
    ways = [{WORLD, *ancestors(parents, i)} for i in group]
    base = max(set.intersection(*ways))
    return group.union(*({i for i in way if i > base} for way in ways))


def _cluster(tree: Tree, members: list[int]) -> Cluster:
    bodies = tuple(tree.bodies[i] for i in members)
    base = min(body.parent for body in bodies)
    places = {place for body in bodies for row in velocity_places(body) for place, _ in row}
    return Cluster(base, bodies, tuple(sorted(places)))


# Elimination of one cluster of coupled bodies from the equations of motion, and back-substitution.
#
# A cluster of bodies on one base moves with independent velocities y: its joints have q' = G y'. Some entries
# of y'' may be prescribed; the rest, with the columns G_f, are unknown. With S_i the joint's subspace, I_i^A
# and p_i^A of body i with all that hangs on it *outside* the cluster,
#
#     c'_i = c_i + S_i G_p y''_p                                     the prescribed part belongs to c     (1)
#     C_i  = X C_lambda + c'_i,   f_i = p_i^A + I_i^A C_i + sum X^T f_j        base and y''_f at rest     (2)
#     I_i^c = I_i^A + sum X^T I_j^c X,   F_i = I_i^c S_i                       composite, as in Table 6.2 (3)
#     D = G_f^T H G_f,  H_ij = S_j^T X^T F_i + armature;   U = sum X^T F_i G_f      (in base coordinates) (4)
#     u = tau - G_f^T (S^T f + armature G_p y''_p)                                                        (5)
#     I^a = I_base^c - U D^-1 U^T,   p^a = f_base + U D^-1 u                                              (6)
#     y''_f = D^-1 (u - U^T a_base),   a_i = X a_lambda + c'_i + S_i G_f y''_f                            (7)
#     tau_p = G_p^T (S^T f + armature q''),   f_i = I_i^A a_i + p_i^A + sum X^T f_j                       (8)
#
# Sums without a range run over the cluster's own bodies. A single body with a free joint is the case that
# `articulated.eliminate_joint` treats at less cost; a single body with a prescribed joint has I^a = I^A
# (Eqs 9.9, 9.10). D is a sum over all bodies that y moves: those without mass do no harm.

Inertia = RigidInertia | ArticulatedInertia

Places = Sequence[tuple[int, float]]
"""The places in v of one joint variable, each with a ratio."""


class Handle(NamedTuple):
    """f = I a + p of a body with its load, in its own coordinates."""

    I: Inertia
    p: Force


class Member(NamedTuple):
    """A body of a cluster: its mate that carries it (None: the base does), its joint, c' (1) and its handle.

    `G`: for each joint variable the places in v and ratios of its free part; `fixed`: its prescribed part.
    """

    body: Body
    mate: int | None
    X: Placement
    S: tuple[Motion, ...]
    c: Motion
    handle: Handle
    G: list[Places]
    G_p: list[Places]
    fixed: list[Scalar]


def cluster_members(
    tree: Tree,
    cluster: Cluster,
    moved: PerBody[Moved],
    handles: Sequence[Handle],
    a: Scalars,
    prescribed: frozenset[int],
) -> list[Member]:
    order = {body.index: k for k, body in enumerate(cluster.bodies)}
    members = []
    for body in cluster.bodies:
        (X, S, _, _), c, _ = moved[body]
        rows = velocity_places(body)
        free: list[Places] = [[term for term in row if term[0] not in prescribed] for row in rows]
        given: list[Places] = [[term for term in row if term[0] in prescribed] for row in rows]
        fixed = [_ratios_times(row, a) for row in given]
        if any(given):
            c = c + combination(S, fixed)  # (1)
        members.append(Member(body, order.get(body.parent), X, S, c, handles[body.index], free, given, fixed))
    return members


def _ratios_times(row: Places, x: Scalars) -> Scalar:
    """Return one row of G times x."""
    return total(x[place] if ratio == 1.0 else ratio * x[place] for place, ratio in row)


class Accelerations:
    """The results of the last pass: a of every body, dv/dt, and the forces at prescribed variables."""

    def __init__(self, tree: Tree, gravity: Vec3, a: Scalars, prescribed: frozenset[int]) -> None:
        self.bodies: dict[int, Motion] = {-1: Motion(Vec3.zero(), -gravity)}
        self.a: list[Scalar] = [a[k] if k in prescribed else 0.0 for k in range(tree.nv)]
        self.tau: list[Scalar] = [0.0] * tree.nv


def eliminate_cluster(
    members: list[Member], cluster: Cluster, tau: Scalars, prescribed: frozenset[int]
) -> Elimination:
    free = [place for place in cluster.variables if place not in prescribed]
    if len(members) > 1 or len(free) < len(cluster.variables):
        return _several(members, free, tau)
    member = members[0]  # one body with a free joint: Table 7.1
    own_tau = member.body.own_v(tau)
    joint = eliminate_joint(ArticulatedInertia.zero() + member.handle.I, member.S, member.body.armature)
    return _Single(member, joint, own_tau, joint.joint_force(own_tau, member.handle.p))


def _several(members: list[Member], free: Sequence[int], tau: Scalars) -> Elimination:
    """Eliminate a cluster: (2) to (5)."""
    C: list[Motion] = []
    f = []
    for m in members:
        C.append(m.c if m.mate is None else m.X.apply(C[m.mate]) + m.c)
        f.append(m.handle.p + m.handle.I * C[-1])
    I_c: list[Any] = [m.handle.I for m in members]
    f_base, I_base = Force.zero(), RigidInertia.zero()
    for k in reversed(range(len(members))):
        m = members[k]
        force, inertia = m.X.inverse_apply(f[k]), m.X.inverse_apply(I_c[k])
        if m.mate is None:
            f_base, I_base = f_base + force, inertia + I_base
        else:
            f[m.mate], I_c[m.mate] = f[m.mate] + force, inertia + I_c[m.mate]  # (2), (3)
    D, U = _project_inertia(members, I_c, free)
    u = [tau[place] for place in free]
    where = {place: k for k, place in enumerate(free)}
    for m, f_i in zip(members, f, strict=True):
        for s, row, armature, x in zip(m.S, m.G, m.body.armature, m.fixed, strict=True):
            need = s.dot(f_i) + armature * x
            for place, ratio in row:
                u[where[place]] = u[where[place]] - ratio * need  # (5)
    return _Several(members, list(free), factor(D), U, u, I_base, f_base)


def _project_inertia(
    members: list[Member], I_c: Sequence[Any], free: Sequence[int]
) -> tuple[Matrix, list[Force]]:
    """Compute D and U of (4): the composite forces F, taken to each mate below and last to the base."""
    where = {place: k for k, place in enumerate(free)}
    D: Matrix = [[0.0] * len(free) for _ in free]
    U = [Force.zero() for _ in free]

    def add(h: Scalar, row: Places, column: Places, *, symmetric: bool) -> None:
        """Add G_i^T h G_j, and its transpose where i and j differ; only the lower triangle is read."""
        for place, ratio in row:
            for other, scale in column:
                r, c = where[place], where[other]
                term = h if ratio == scale == 1.0 else h * (ratio * scale)
                if symmetric and r == c:
                    term = 2.0 * term
                if symmetric or r >= c:
                    D[max(r, c)][min(r, c)] = D[max(r, c)][min(r, c)] + term

    for i, m in enumerate(members):
        for s, row, armature, number in zip(m.S, m.G, m.body.armature, range(len(m.S)), strict=True):
            if not row:
                continue
            F = I_c[i] * s
            for t, other in zip(m.S[: number + 1], m.G[: number + 1], strict=True):
                h = t.dot(F) + armature if t is s else t.dot(F)
                add(h, row, other, symmetric=t is not s)
            k = i
            while (mate := members[k].mate) is not None:
                F = members[k].X.inverse_apply(F)
                k = mate
                for t, other in zip(members[k].S, members[k].G, strict=True):
                    add(t.dot(F), row, other, symmetric=True)
            F = members[k].X.inverse_apply(F)
            for place, ratio in row:
                U[where[place]] = U[where[place]] + (F if ratio == 1.0 else F * ratio)
    return D, U


@final
@dataclass(frozen=True, slots=True)
class _Single:
    """A single body with a free joint, eliminated."""

    member: Member
    joint: JointElimination
    tau: list[Scalar]
    u: list[Scalar]

    def seen_by_base(self) -> tuple[Inertia, Force]:
        X = self.member.X
        p_a = self.joint.bias_force(self.member.handle.p, self.member.c, self.tau, self.u)
        return X.inverse_apply(self.joint.I_a), X.inverse_apply(p_a)

    def accelerate(self, cluster: Cluster, found: Accelerations) -> None:
        m = self.member
        a_prime = m.X.apply(found.bodies[cluster.base]) + m.c
        vdot, a = self.joint.accelerations(self.u, a_prime)
        found.bodies[m.body.index] = a
        found.a[m.body.v_slice] = vdot


@final
@dataclass(frozen=True, slots=True)
class _Several:
    """A cluster, or a body with a prescribed joint, eliminated."""

    members: list[Member]
    free: list[int]
    D: SymmetricFactor
    U: list[Force]
    u: list[Scalar]
    I_base: Inertia
    f_base: Force

    def seen_by_base(self) -> tuple[Inertia, Force]:
        """Compute inertia and bias force at the base: (6)."""
        if not self.free:
            return self.I_base, self.f_base
        columns = [force.to_list() for force in self.U]
        K = [self.D.solve([column[r] for column in columns]) for r in range(6)]
        A = self.I_base.matrix()

        def entry(i: int, j: int) -> Scalar:
            x = A[i][j]
            for k, column in enumerate(columns):
                x = x - K[i][k] * column[j]
            return x

        p = self.f_base.to_list()
        for r in range(6):
            for k, u_k in enumerate(self.u):
                p[r] = p[r] + K[r][k] * u_k
        return ArticulatedInertia.from_upper(entry), Force.of(p)

    def accelerate(self, cluster: Cluster, found: Accelerations) -> None:
        """Compute (7), and (8) if variables are prescribed."""
        a_base = found.bodies[cluster.base]
        right = [u_k - a_base.dot(U_k) for u_k, U_k in zip(self.u, self.U, strict=True)]
        for place, x in zip(self.free, self.D.solve(right), strict=True):
            found.a[place] = x
        for m in self.members:
            parent = a_base if m.mate is None else found.bodies[self.members[m.mate].body.index]
            a = m.X.apply(parent) + m.c
            if any(m.G):
                a = a + combination(m.S, [_ratios_times(row, found.a) for row in m.G])
            found.bodies[m.body.index] = a
        if len(self.free) < len(cluster.variables):
            self._prescribed_forces(found)

    def _prescribed_forces(self, found: Accelerations) -> None:
        """Compute the forces at prescribed variables: (8)."""
        f = [m.handle.p + m.handle.I * found.bodies[m.body.index] for m in self.members]
        for k in reversed(range(len(self.members))):
            m = self.members[k]
            for s, row, given, armature, x in zip(m.S, m.G, m.G_p, m.body.armature, m.fixed, strict=True):
                if given:
                    need = s.dot(f[k]) + armature * (x + _ratios_times(row, found.a))
                    for place, ratio in given:
                        found.tau[place] = found.tau[place] + ratio * need
            if m.mate is not None:
                f[m.mate] = f[m.mate] + m.X.inverse_apply(f[k])


Elimination = _Single | _Several


# Articulated bodies where joints move together or as prescribed, in O(n).
#
# The passes of Featherstone 2008 Tables 7.1 and 9.3 over the tree of clusters (`clusters`): inward, each one
# is taken out of the equations of motion (`cluster_elimination`); outward, its accelerations are found.


class ClusterMotion(NamedTuple):
    """dv/dt `(nv,)` of the tree, and the forces `(nv,)` at the prescribed variables (zeros elsewhere)."""

    a: list[Scalar]
    tau: list[Scalar]


def articulated_accelerations(
    tree: Tree,
    moved: PerBody[Moved],
    tau: Scalars,
    *,
    function: str,
    a: Scalars = (),
    prescribed: frozenset[int] = frozenset(),
    gravity: Vec3 | None = None,
) -> ClusterMotion:
    """Solve for dv/dt where tau acts, and for the forces at the `prescribed` places of v, where a is given.

    `moved`: the outward pass of `velocity_products`. `function` is named in errors. `gravity`
    replaces the tree's.
    """
    _, eliminated = _eliminate(clusters_of(tree), tree, moved, tau, function, a, prescribed)
    accelerations = Accelerations(tree, tree.gravity if gravity is None else gravity, a, prescribed)
    for cluster, elimination in reversed(eliminated):
        elimination.accelerate(cluster, accelerations)
    return ClusterMotion(accelerations.a, accelerations.tau)


def _eliminate(
    clusters: Sequence[Cluster],
    tree: Tree,
    moved: PerBody[Moved],
    tau: Scalars,
    function: str,
    a: Scalars,
    prescribed: frozenset[int],
) -> tuple[list[Handle], list[tuple[Cluster, Elimination]]]:
    """Run the inward pass: return the handles of all bodies and the clusters eliminated, leaves first."""
    handles = [Handle(body.inertia, moved[body][2]) for body in tree.bodies]
    eliminated = []
    for cluster in reversed(clusters):
        members = cluster_members(tree, cluster, moved, handles, a, prescribed)
        try:
            elimination = eliminate_cluster(members, cluster, tau, prescribed)
        except ZeroDivisionError:
            names = ", ".join(f'"{body.joint_name}"' for body in cluster.bodies)
            one = len(cluster.bodies) == 1
            subject = f"joint {names} has" if one else f"the joints {names} have together"
            raise ModelError(
                f"{function}: {subject} a freedom along which nothing with inertia moves; give what moves "
                "mass and moments of inertia, or a joint an armature"
            ) from None
        if cluster.base >= 0:
            I_a, p_a = elimination.seen_by_base()
            I, p = handles[cluster.base]
            handles[cluster.base] = Handle(I_a + I, p + p_a)
        eliminated.append((cluster, elimination))
    return handles, eliminated


def cluster_inertias(tree: Tree, q: Scalars, *, time: Time = None) -> PerBody[Inertia]:
    """Return I_i^A of every body with its load outside its own cluster, in its own coordinates.

    Of a body whose joint is coupled to none this is the articulated inertia of all it carries. Joints on the
    world, through which no body feels a load, may move no inertia.
    """
    carried = [cluster for cluster in clusters_of(tree) if cluster.base >= 0]
    moved = tree.outward(lambda body, _: ((), (body.jcalc(q, None, time), Motion.zero(), Force.zero())), ())
    handles, _ = _eliminate(carried, tree, moved, [0.0] * tree.nv, "articulated_inertias", (), frozenset())
    return PerBody([handle.I for handle in handles])
