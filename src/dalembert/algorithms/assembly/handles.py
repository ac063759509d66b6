"""Articulated bodies with several handles, connected by several joints (Featherstone 2008 §7.5).

    a_i = sum_j Phi_ij f_j + b_i        over the handles i, j of an articulated body               (7.57)

Handle i is a body of it, vectors of handle i are in that body's coordinates. Joint k pushes its successor s
with f_k and its predecessor p with -f_k, each in its own coordinates:

    f_k = f_a + T lambda,     T^T (a_s - a_p) + E lambda = gamma                              (7.60, 7.61)

f_a is the active force, gamma = T^T c, and E is zero but for armature (see `joint_forces`). With the effects
of the active forces put into b, as the book does, and the columns of all joints side by side,

    K_i = Phi_is T - Phi_ip T,   Y = T^T (K_s - K_p) + E,   y = T^T (b_s - b_p) - gamma            (1)
    lambda = -Y^-1 (y + sum_j K_j^T f_j)                                                        (7.62)
    Phi_ij^A = Phi_ij - K_i Y^-1 K_j^T,   b_i^A = b_i - K_i Y^-1 y                              (7.63)

For two parts with one joint these are the book's Phi_1^A = Phi_1 - Phi_12 W Phi_21, Phi_14^A = Phi_12 W
Phi_34, b_4^A = b_4 + Phi_43 W beta and so on, since a handle of one part does not feel forces on the other.
Handle sets, joints within one part and several joints at once need no other formula. A handle may outlive
the joint: other joints can be connected to the same body. Y = L diag(d) L^T; V_j = L^-1 K_j^T is kept:

    Phi_ij^A = Phi_ij - V_i^T d^-1 V_j,   lambda = -L^-T d^-1 (L^-1 y + sum_j V_j f_j)             (2)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

from dalembert.algorithms.dense import Matrix, Vector, dot, times, transpose
from dalembert.algorithms.small_solve import factor, factor_semidefinite
from dalembert.scalar import Scalar, is_zero
from dalembert.spatial import Force, Motion

__all__ = [
    "ArticulatedBody",
    "ConnectedJoints",
    "HandleJoint",
    "collect_parts",
    "connect",
    "disconnect",
    "single_body",
]


@final
@dataclass(frozen=True, slots=True)
class ArticulatedBody:
    """a_i = sum_j Phi_ij f_j + b_i: `b` by handle; `Phi` by pairs of handles i <= j, absent where zero."""

    Phi: Mapping[tuple[int, int], Matrix]
    b: Mapping[int, Motion]

    @property
    def handles(self) -> tuple[int, ...]:
        """The handles, in order."""
        return tuple(sorted(self.b))

    def response(self, i: int, j: int, force: Force) -> Vector | None:
        """Return Phi_ij f, the acceleration of handle i by a force on handle j; None for zero."""
        block = self.Phi.get((min(i, j), max(i, j)))
        if block is None:
            return None
        return times(block if i <= j else transpose(block), force.to_list())

    def acceleration(self, i: int, forces: Mapping[int, Force]) -> Motion:
        """Return a_i, under forces on the handles (Eq. 7.57)."""
        total = self.b[i].to_list()
        for j, force in forces.items():
            total = _sum(total, self.response(i, j, force))
        return Motion.of(total)


class HandleJoint(NamedTuple):
    """A joint between two handles: T, and the active force, once in the coordinates of each.

    `gamma` = T^T c and `E`, a diagonal, have one number for each column of T. `scale`, where joints may
    repeat constraints, is what the diagonal of Y would be if both bodies were free: a bound on the numbers
    whose difference a vanishing diagonal is.
    """

    predecessor: int
    successor: int
    T_predecessor: tuple[Force, ...]
    T_successor: tuple[Force, ...]
    active_predecessor: Force
    active_successor: Force
    gamma: list[Scalar]
    E: list[Scalar]
    scale: list[Scalar] | None = None

    def across(self, motions: Mapping[int, Motion]) -> Vector:
        """Return T^T (a_s - a_p) for motions of the handles."""
        a_s, a_p = motions[self.successor], motions[self.predecessor]
        return [a_s.dot(s) - a_p.dot(p) for s, p in zip(self.T_successor, self.T_predecessor, strict=True)]


class ConnectedJoints(NamedTuple):
    """Joints that have been connected, with the factors that give their forces (2)."""

    joints: tuple[HandleJoint, ...]
    L: Matrix
    reciprocals: Vector
    V: dict[int, list[Vector]]
    z: Vector


def single_body(handle: int, Phi: Matrix | None, b: Motion) -> ArticulatedBody:
    """Return one body as its own handle; Phi is None for a body that no force can accelerate,
    such as the world."""
    return ArticulatedBody({} if Phi is None else {(handle, handle): Phi}, {handle: b})


def collect_parts(parts: Iterable[ArticulatedBody]) -> ArticulatedBody:
    """Return several articulated bodies as one: their equations side by side (Eq. 3.10)."""
    Phi: dict[tuple[int, int], Matrix] = {}
    b: dict[int, Motion] = {}
    for part in parts:
        Phi |= part.Phi
        b |= part.b
    return ArticulatedBody(Phi, b)


def connect(
    body: ArticulatedBody, joints: Sequence[HandleJoint], handles: Sequence[int]
) -> tuple[ArticulatedBody, ConnectedJoints]:
    """Return the articulated body with the joints connected, seen at the given handles (Eqs 7.62, 7.63)."""
    b = {i: _with_active_forces(body, joints, i) for i in body.handles}
    K = {i: _columns(body, joints, i) for i in body.handles}
    columns = range(sum(len(joint.gamma) for joint in joints))
    moved = [{i: Motion.of(K[i][column]) for i in K} for column in columns]
    Y_columns = [[x for joint in joints for x in joint.across(moved[column])] for column in columns]
    E = [x for joint in joints for x in joint.E]
    Y = [[Y_columns[j][i] + (E[i] if i == j else 0.0) for j in range(i + 1)] for i in columns]
    y = [x - g for joint in joints for x, g in zip(joint.across(b), joint.gamma, strict=True)]
    if any(joint.scale is not None for joint in joints):
        L, reciprocals = _factors(Y, [x for joint in joints for x in joint.scale or ()])
    else:
        L, reciprocals = _factors(Y, None)
    V = {i: _forward(L, K[i]) for i in handles}
    z = [row[0] for row in _forward(L, [[x] for x in y])]
    Phi: dict[tuple[int, int], Matrix] = {}
    for i in handles:
        for j in handles:
            if i <= j:
                Phi[i, j] = _reduced_response(body.Phi.get((i, j)), V[i], V[j], reciprocals, i == j)
    weighted = [r * x for r, x in zip(reciprocals, z, strict=True)]
    b_A = {
        i: Motion.of([x - dot(column, weighted) for x, column in zip(b[i].to_list(), _six_columns(V[i]))])
        for i in handles
    }
    return ArticulatedBody(Phi, b_A), ConnectedJoints(tuple(joints), L, reciprocals, V, z)


def disconnect(
    connected: ConnectedJoints, forces: Mapping[int, Force]
) -> tuple[dict[int, Force], list[Vector]]:
    """Return the forces on all handles of the parts from those on the handles of the whole,
    and lambda of each joint (7.62).

    A handle that the whole has lost feels the joints alone, one that it has kept both.
    """
    total = list(connected.z)
    for i, rows in connected.V.items():
        total = [t + dot(row, forces[i].to_list()) for t, row in zip(total, rows, strict=True)]
    x = [-(r * t) for r, t in zip(connected.reciprocals, total, strict=True)]
    for i in reversed(range(len(x))):
        for j in range(i + 1, len(x)):
            x[i] = x[i] - connected.L[j][i] * x[j]
    found = dict(forces)
    multipliers: list[Vector] = []
    for joint in connected.joints:
        own, x = x[: len(joint.gamma)], x[len(joint.gamma) :]
        push, pull = joint.active_successor, joint.active_predecessor
        for factor_, s, p in zip(own, joint.T_successor, joint.T_predecessor, strict=True):
            push, pull = push + s * factor_, pull + p * factor_
        found[joint.successor] = found.get(joint.successor, Force.zero()) + push
        found[joint.predecessor] = found.get(joint.predecessor, Force.zero()) - pull
        multipliers.append(own)
    return found, multipliers


def _with_active_forces(body: ArticulatedBody, joints: Sequence[HandleJoint], i: int) -> Motion:
    """Return b_i with the active forces of the joints as external ones."""
    total = body.b[i].to_list()
    for joint in joints:
        total = _sum(total, body.response(i, joint.successor, joint.active_successor))
        total = _sum(total, body.response(i, joint.predecessor, -joint.active_predecessor))
    return Motion.of(total)


def _columns(body: ArticulatedBody, joints: Sequence[HandleJoint], i: int) -> list[Vector]:
    """Return the columns of K_i (1)."""
    columns = []
    for joint in joints:
        for s, p in zip(joint.T_successor, joint.T_predecessor, strict=True):
            column = _sum([0.0] * 6, body.response(i, joint.successor, s))
            columns.append(_sum(column, body.response(i, joint.predecessor, -p)))
    return columns


def _factors(Y: Matrix, scale: Vector | None) -> tuple[Matrix, Vector]:
    found = factor(Y) if scale is None else factor_semidefinite(Y, scale=scale)
    return found.L, found.reciprocals


def _forward(L: Matrix, rows: Sequence[Sequence[Scalar]]) -> list[Vector]:
    """Return L^-1 B, row by row, for a unit lower-triangular L."""
    found: list[Vector] = []
    for i, row in enumerate(rows):
        own = list(row)
        for j in range(i):
            if not is_zero(L[i][j]):
                own = [x - L[i][j] * y for x, y in zip(own, found[j], strict=True)]
        found.append(own)
    return found


def _reduced_response(
    block: Matrix | None, V_i: list[Vector], V_j: list[Vector], reciprocals: Vector, symmetric: bool
) -> Matrix:
    """Return Phi_ij - V_i^T d^-1 V_j (2), of which a symmetric block is computed once."""
    left = _six_columns(V_i)
    right = _six_columns([[r * x for x in row] for r, row in zip(reciprocals, V_j, strict=True)])

    def entry(r: int, c: int) -> Scalar:
        change = dot(left[r], right[c])
        return -change if block is None else block[r][c] - change

    if not symmetric:
        return [[entry(r, c) for c in range(6)] for r in range(6)]
    upper = [[entry(r, c) if c >= r else 0.0 for c in range(6)] for r in range(6)]
    return [[upper[min(r, c)][max(r, c)] for c in range(6)] for r in range(6)]


def _six_columns(V: list[Vector]) -> list[Vector]:
    """Return the six columns of V, which has a row for each force variable, or no rows."""
    return [[row[c] for row in V] for c in range(6)]


def _sum(total: Vector, change: Vector | None) -> Vector:
    return total if change is None else [x + y for x, y in zip(total, change, strict=True)]
