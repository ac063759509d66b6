"""Derivatives of inverse dynamics on the tangent space, in O(n d).

With composites summed over subtrees, I^c, 2 B^c and f^c, and the changes psi, chi, phi of `common_frame`,
joint i and its ancestors j have

    dtau_i/dq_j = S_i . (I_i^c chi_j + 2 B_i^c psi_j)     dtau_i/dv_j = S_i . (I_i^c phi_j + 2 B_i^c S_j)  (1)
    dtau_j/dq_i = S_j . (I_i^c chi_i + 2 B_i^c psi_i + S_i x* f_i^c)
    dtau_j/dv_i = S_j . (I_i^c phi_i + 2 B_i^c S_i)       dtau_j/da_i = S_j . I_i^c S_i                    (2)

and i = j as (1), with dS_l/dq_k . f_i^c besides where S moves. All other entries are zero.

Bodies are visited depth first, and a body's entries are computed when it is left: then only the columns of
its ancestors need be at hand, which the first-level cache holds (design/derivatives.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, final

from dalembert.algorithms.articulated import joint_inertia
from dalembert.algorithms.dense import Matrix, plus, zeros
from dalembert.algorithms.derivatives.common_frame import (
    BodyState,
    VelocityProducts,
    acceleration,
    body_state,
    changes_of_acceleration,
)
from dalembert.algorithms.external_forces import ExternalForces, body_forces
from dalembert.algorithms.open_tree import require_open_tree
from dalembert.algorithms.sparsity import velocity_places
from dalembert.model.body import Body
from dalembert.model.tree import PerBody, Tree
from dalembert.scalar import Scalar, is_one
from dalembert.spatial import Force, Motion, RigidInertia, Vec3

__all__ = [
    "Composites",
    "Derivatives",
    "JointForces",
    "PairwiseChanges",
    "depth_first",
    "inverse_dynamics_derivatives",
    "spanning_tree_derivatives",
]


class Derivatives(NamedTuple):
    """Three matrices `(nv, nv)`: by q on the tangent space, by v, and by a or tau."""

    by_q: Matrix
    by_v: Matrix
    by_last: Matrix


def inverse_dynamics_derivatives(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    a: Sequence[Scalar],
    *,
    external_forces: ExternalForces = None,
    external_frame: str = "body",
    time: Scalar | None = None,
) -> Derivatives:
    """Return (dtau/dq, dtau/dv, dtau/da) of tau = ID(q, v, a); dtau/da = M, armature included.

    External forces are constant in the coordinates in which they are given.
    """
    require_open_tree(tree, "inverse_dynamics_derivatives")
    return spanning_tree_derivatives(
        tree, q, v, a, external_forces=external_forces, external_frame=external_frame, time=time
    )


def spanning_tree_derivatives(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    a: Sequence[Scalar],
    *,
    external_forces: ExternalForces = None,
    external_frame: str = "body",
    time: Scalar | None = None,
) -> Derivatives:
    """Return `inverse_dynamics_derivatives` of the tree alone, without its loops and other constraints."""
    f_x = body_forces(tree, q, external_forces, external_frame, time)
    whole = Composites(tree)
    forces = JointForces(whole, a)
    pairs = PairwiseChanges(forces, a, f_x if external_frame == "world" else None)
    for body, entering in depth_first(tree):
        if entering:
            whole.enter(body, body_state(tree, body, whole.states.get(body.parent), q, v, f_x, time))
            forces.enter(body)
            pairs.enter(body)
        else:
            whole.leave(body)
            forces.leave(body)
            pairs.leave(body)
    return Derivatives(pairs.by_q, pairs.by_v, whole.M)


def depth_first(tree: Tree) -> Iterator[tuple[Body, bool]]:
    """Yield (body, True) on the way out and (body, False) when all that it carries has been visited."""
    children: dict[int, list[Body]] = {}
    for body in tree.bodies:
        children.setdefault(body.parent, []).append(body)
    pending = [(body, True) for body in reversed(children.get(-1, []))]
    while pending:
        body, entering = pending.pop()
        yield body, entering
        if entering:
            pending.append((body, False))
            pending += [(child, True) for child in reversed(children.get(body.index, []))]


@final
@dataclass(slots=True, eq=False)
class Composites:
    """I^c and 2 B^c of every body, and M: the terms that depend on q and v alone."""

    tree: Tree
    states: dict[int, BodyState] = field(default_factory=dict)
    inertia: dict[int, RigidInertia] = field(default_factory=dict)
    products: dict[int, VelocityProducts] = field(default_factory=dict)
    M: Matrix = field(default_factory=list)

    def __post_init__(self) -> None:
        self.M = zeros(self.tree.nv, self.tree.nv)

    def enter(self, body: Body, state: BodyState) -> None:
        self.states[body.index] = state
        self.inertia[body.index], self.products[body.index] = state.inertia, state.products

    def leave(self, body: Body) -> None:
        I, S = self.inertia[body.index], self.states[body.index].S
        if body.parent >= 0:
            self.inertia[body.parent] += I
            self.products[body.parent] += self.products[body.index]
        F = [I * s for s in S]
        _put(self.M, body, body, joint_inertia(S, F, body.armature))
        for j in self.ancestors(body):
            up = self.states[j.index].S
            _put(self.M, body, j, [[s.dot(f) for s in up] for f in F])
            _put(self.M, j, body, [[s.dot(f) for f in F] for s in up])

    def ancestors(self, body: Body) -> Iterator[Body]:
        """Yield lambda(i), lambda(lambda(i)), … up to the world's child,
        without bodies that have no freedoms."""
        while body.parent >= 0:
            body = self.tree.bodies[body.parent]
            if body.nv:
                yield body


@final
@dataclass(slots=True, eq=False)
class JointForces:
    """a_lambda(i), a_i, and f_i^c, the force that each joint transmits, at dv/dt = a; None for zero."""

    whole: Composites
    a: Sequence[Scalar] | None
    before: dict[int, Motion] = field(default_factory=dict)
    after: dict[int, Motion] = field(default_factory=dict)
    force: dict[int, Force] = field(default_factory=dict)

    def enter(self, body: Body) -> None:
        i, state = body.index, self.whole.states[body.index]
        self.before[i] = state.world if body.parent < 0 else self.after[body.parent]
        self.after[i] = acceleration(state, self.before[i], self.a)
        self.force[i] = state.inertia * self.after[i] + state.force

    def leave(self, body: Body) -> None:
        if body.parent >= 0:
            self.force[body.parent] += self.force[body.index]

    def joint_forces(self) -> list[Scalar]:
        """Return tau without armature: S . f^c of every joint."""
        tree, states = self.whole.tree, self.whole.states
        return tree.collect([[s.dot(self.force[b.index]) for s in states[b.index].S] for b in tree.bodies])


@final
@dataclass(slots=True, eq=False)
class PairwiseChanges:
    """dtau/dq and dtau/dv at dv/dt = a, of every joint and its ancestors.

    `held`: external forces that keep their direction in space, in body coordinates. They turn by -S x* f as
    seen from the displaced subtree.
    """

    forces: JointForces
    a: Sequence[Scalar]
    held: PerBody[Force] | None = None
    chi: dict[int, list[Motion]] = field(default_factory=dict)
    held_force: dict[int, Force] = field(default_factory=dict)
    by_q: Matrix = field(default_factory=list)
    by_v: Matrix = field(default_factory=list)

    def __post_init__(self) -> None:
        n = self.forces.whole.tree.nv
        self.by_q, self.by_v = zeros(n, n), zeros(n, n)

    def enter(self, body: Body) -> None:
        state = self.forces.whole.states[body.index]
        self.chi[body.index] = changes_of_acceleration(state, self.forces.before[body.index], self.a)
        self.held_force[body.index] = (
            Force.zero() if self.held is None else state.pose.inverse_apply(self.held[body])
        )

    def leave(self, body: Body) -> None:
        i, whole = body.index, self.forces.whole
        state, I, B, f, held = (
            whole.states[i], whole.inertia[i], whole.products[i], self.forces.force[i], self.held_force[i]
        )  # fmt: skip
        if body.parent >= 0:
            self.held_force[body.parent] += held
        S = state.S
        inner = [I * x + B * y for x, y in zip(self.chi[i], state.psi, strict=True)]
        by_position = [x + s.cross(f + held) for x, s in zip(inner, S, strict=True)]
        by_speed = [I * x + B * s for x, s in zip(state.phi, S, strict=True)]
        I_rows, B_rows = [I * s for s in S], [B.row(s) for s in S]
        held_rows = [-s.cross(held) for s in S]
        moved = [[state.pose.inverse_apply(s) for s in columns] for columns in state.rates.S]
        own = [
            [s.dot(inner[k]) + moved[k][l].dot(f) + held_rows[l].dot(S[k]) for k in range(len(S))]
            for l, s in enumerate(S)
        ]
        _put(self.by_q, body, body, own)
        _put(self.by_v, body, body, [[s.dot(x) for x in by_speed] for s in S])
        for j in whole.ancestors(body):
            up = whole.states[j.index]
            _put(self.by_q, j, body, [[s.dot(x) for x in by_position] for s in up.S])  # (2)
            _put(self.by_v, j, body, [[s.dot(x) for x in by_speed] for s in up.S])
            turned = [[x.dot(s) for s in up.S] for x in held_rows]
            _put(self.by_q, body, j, plus(_rows(I_rows, B_rows, self.chi[j.index], up.psi), turned))  # (1)
            _put(self.by_v, body, j, _rows(I_rows, B_rows, up.phi, up.S))


def _rows(
    I_rows: Sequence[Force], B_rows: Sequence[Vec3], x: Sequence[Motion], y: Sequence[Motion]
) -> Matrix:
    """Return S . (I x + 2 B y) for each row of S and each direction."""
    return [
        [f.dot(x_k) + b.dot(y_k.angular) for x_k, y_k in zip(x, y, strict=True)]
        for f, b in zip(I_rows, B_rows, strict=True)
    ]


def _put(M: Matrix, i: Body, j: Body, block: Matrix) -> None:
    """Add a block of joint i's rows and joint j's columns as G^T block G."""
    for places_r, row in zip(velocity_places(i), block, strict=True):
        for places_c, x in zip(velocity_places(j), row, strict=True):
            for r, ratio_r in places_r:
                for c, ratio_c in places_c:
                    ratio = ratio_r * ratio_c
                    M[r][c] = M[r][c] + (x if is_one(ratio) else x * ratio)
