"""Derivatives of inverse dynamics on the tangent space, in O(n d).

With composites summed over subtrees, I^c, 2 B^c and f^c, and the changes psi, chi, phi of `common_frame`,
joint i and its ancestors j have

    dtau_i/dq_j = S_i . (I_i^c chi_j + 2 B_i^c psi_j)     dtau_i/dv_j = S_i . (I_i^c phi_j + 2 B_i^c S_j)  (1)
    dtau_j/dq_i = S_j . (I_i^c chi_i + 2 B_i^c psi_i + S_i x* f_i^c)
    dtau_j/dv_i = S_j . (I_i^c phi_i + 2 B_i^c S_i)       dtau_j/da_i = S_j . I_i^c S_i                    (2)

and i = j as (1), with dS_l/dq_k . f_i^c besides where S moves. All other entries are zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dalembert.algorithms.articulated import joint_inertia
from dalembert.algorithms.dense import Matrix, plus, zeros
from dalembert.algorithms.derivatives.common_frame import (
    BodyState,
    VelocityProducts,
    accelerations,
    body_states,
    changes_of_acceleration,
)
from dalembert.algorithms.external_forces import ExternalForces, body_forces
from dalembert.algorithms.open_tree import require_open_tree
from dalembert.algorithms.sparsity import velocity_places
from dalembert.model.body import Body
from dalembert.model.tree import PerBody, Tree
from dalembert.scalar import Scalar, is_one
from dalembert.spatial import Force, Mat3, Motion, RigidInertia, Vec3

__all__ = [
    "Composite",
    "Derivatives",
    "composites",
    "inverse_dynamics_derivatives",
    "joint_forces",
    "mass_matrix_of",
    "position_velocity_derivatives",
    "spanning_tree_derivatives",
]


class Derivatives(NamedTuple):
    """Three matrices `(nv, nv)`: by q on the tangent space, by v, and by a or tau."""

    by_q: Matrix
    by_v: Matrix
    by_last: Matrix


class Composite(NamedTuple):
    """What a body carries, itself included: I^c, 2 B^c."""

    inertia: RigidInertia
    products: VelocityProducts


Carried = tuple[RigidInertia, VelocityProducts]


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
    """(dtau/dq, dtau/dv, dtau/da) of tau = ID(q, v, a); dtau/da = M, armature included.

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
    """`inverse_dynamics_derivatives` of the tree alone, without its loops and other constraints."""
    f_x = body_forces(tree, q, external_forces, external_frame, time)
    states, worlds = body_states(tree, q, v, f_x, time)
    whole = composites(tree, states)
    M = mass_matrix_of(tree, states, whole)
    by_q, by_v = position_velocity_derivatives(
        tree, states, worlds, whole, a, f_x if external_frame == "world" else None
    )
    return Derivatives(by_q, by_v, M)


def composites(tree: Tree, states: PerBody[BodyState]) -> PerBody[Composite]:
    """I^c and 2 B^c of every body; they depend on q and v alone."""

    def step(body: Body, carried: Carried) -> tuple[Carried, Composite]:
        I, B = states[body].inertia + carried[0], states[body].products + carried[1]
        return (I, B), Composite(I, B)

    zero = (RigidInertia.zero(), VelocityProducts(Mat3.zero(), Vec3.zero()))
    return tree.inward(step, zero)[0]


def joint_forces(
    tree: Tree,
    states: PerBody[BodyState],
    worlds: PerBody[Motion],
    a: Sequence[Scalar] | None,
) -> tuple[PerBody[Force], PerBody[Motion]]:
    """f_i^c, the force that each joint transmits, and a_lambda(i)."""
    moved = accelerations(tree, states, worlds, a)

    def step(body: Body, carried: Force) -> tuple[Force, Force]:
        f = states[body].inertia * moved[body][1] + states[body].force + carried
        return f, f

    return tree.inward(step, Force.zero())[0], PerBody([before for before, _ in moved])


def mass_matrix_of(tree: Tree, states: PerBody[BodyState], whole: PerBody[Composite]) -> Matrix:
    """M from the composites: the last of (2), and armature."""
    M = zeros(tree.nv, tree.nv)
    for i in tree.bodies:
        F = [whole[i].inertia * s for s in states[i].S]
        _put(M, i, i, joint_inertia(states[i].S, F, i.armature))
        for j in _ancestors(tree, i):
            _put(M, i, j, [[s.dot(f) for s in states[j].S] for f in F])
            _put(M, j, i, [[s.dot(f) for f in F] for s in states[j].S])
    return M


def position_velocity_derivatives(
    tree: Tree,
    states: PerBody[BodyState],
    worlds: PerBody[Motion],
    whole: PerBody[Composite],
    a: Sequence[Scalar],
    held: PerBody[Force] | None = None,
) -> tuple[Matrix, Matrix]:
    """dtau/dq and dtau/dv at dv/dt = a.

    `held`: external forces that keep their direction in space, in body coordinates. They turn by -S x* f as
    seen from the displaced subtree.
    """
    f_c, a_parents = joint_forces(tree, states, worlds, a)
    held_c = _gathered(tree, states, held)
    chi = PerBody([changes_of_acceleration(state, a_parents[state.body], a) for state in states])
    by_q, by_v = zeros(tree.nv, tree.nv), zeros(tree.nv, tree.nv)
    for i in tree.bodies:
        state, (I, B), f, f_held = states[i], whole[i], f_c[i], held_c[i]
        S = state.S
        inner = [I * x + B * y for x, y in zip(chi[i], state.psi, strict=True)]
        by_position = [x + s.cross(f + f_held) for x, s in zip(inner, S, strict=True)]
        by_speed = [I * x + B * s for x, s in zip(state.phi, S, strict=True)]
        I_rows = [I * s for s in S]
        B_rows = [B.row(s) for s in S]
        held_rows = [-s.cross(f_held) for s in S]
        moved = [[state.pose.inverse_apply(s) for s in columns] for columns in state.rates.S]
        own = [
            [s.dot(inner[k]) + moved[k][l].dot(f) + held_rows[l].dot(S[k]) for k in range(len(S))]
            for l, s in enumerate(S)
        ]
        _put(by_q, i, i, own)
        _put(by_v, i, i, [[s.dot(x) for x in by_speed] for s in S])
        for j in _ancestors(tree, i):
            up, chi_j = states[j], chi[j]
            _put(by_q, j, i, [[s.dot(x) for x in by_position] for s in up.S])  # (2)
            _put(by_v, j, i, [[s.dot(x) for x in by_speed] for s in up.S])
            turned = [[x.dot(s) for s in up.S] for x in held_rows]
            _put(by_q, i, j, plus(_rows(I_rows, B_rows, chi_j, up.psi), turned))  # (1)
            _put(by_v, i, j, _rows(I_rows, B_rows, up.phi, up.S))
    return by_q, by_v


def _gathered(tree: Tree, states: PerBody[BodyState], forces: PerBody[Force] | None) -> PerBody[Force]:
    """The forces on each body and all that it carries, in common coordinates."""

    def step(body: Body, carried: Force) -> tuple[Force, Force]:
        f = carried if forces is None else carried + states[body].pose.inverse_apply(forces[body])
        return f, f

    return tree.inward(step, Force.zero())[0]


def _rows(
    I_rows: Sequence[Force], B_rows: Sequence[Vec3], x: Sequence[Motion], y: Sequence[Motion]
) -> Matrix:
    """S . (I x + 2 B y) for each row of S and each direction."""
    return [
        [f.dot(x_k) + b.dot(y_k.angular) for x_k, y_k in zip(x, y, strict=True)]
        for f, b in zip(I_rows, B_rows, strict=True)
    ]


def _ancestors(tree: Tree, body: Body) -> Iterator[Body]:
    """lambda(i), lambda(lambda(i)), ... up to the world's child, of those that have freedoms."""
    while body.parent >= 0:
        body = tree.bodies[body.parent]
        if body.nv:
            yield body


def _put(M: Matrix, i: Body, j: Body, block: Matrix) -> None:
    """Add a block of joint i's rows and joint j's columns as G^T block G."""
    for places_r, row in zip(velocity_places(i), block, strict=True):
        for places_c, x in zip(velocity_places(j), row, strict=True):
            for r, ratio_r in places_r:
                for c, ratio_c in places_c:
                    ratio = ratio_r * ratio_c
                    M[r][c] = M[r][c] + (x if is_one(ratio) else x * ratio)
