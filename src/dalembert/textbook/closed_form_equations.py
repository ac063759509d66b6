"""The equation of motion in closed form, with every coefficient explicit (Featherstone 2008 Eq. 5.6):

    tau_i = sum_j H_ij a_j + sum_j sum_k C_ijk v_j v_k + g_i                (the book misprints a_i for a_j)

With s_j the direction of velocity variable j in the world, v_b = sum s_j v_j over the joints that carry
body b. The rate of s_j is v x s_j with the velocity v of its own body, and s_j-ring, its rate as that body
sees it, where S depends on the joint's position:

    s_j' = sum_k B_jk v_k,     B_jk = s_k x s_j + d(s_j-ring)/dv_k       k carries j or is in its joint  (1)
    a_b  = sum_j s_j a_j + sum_jk B_jk v_j v_k                           (Eq. 5.5)                       (2)

and virtual work on f_b = I_b (a_b - a_g) + v_b x* I_b v_b gives, summed over the bodies that i, j and k all
carry,

    H_ij  = sum_b s_i . I_b s_j                                                                          (3)
    C_ijk = sum_b s_i . (I_b B_jk + s_k x* I_b s_j)                                                      (4)
    g_i   = - sum_b s_i . I_b a_g                                                                        (5)

Nothing is carried from body to body: four nested sums, O(n^4), the cost that recursion saved. Joints of
every type are admitted that do not depend on time; v need not be dq/dt, and C_ijk then need not be
symmetric in j, k.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple, Unpack

from dalembert.algorithms.applied_forces import Loads, body_forces
from dalembert.algorithms.coriolis import require_scleronomic
from dalembert.algorithms.dense import Matrix, dot, times, zeros
from dalembert.algorithms.derivatives import joint_rates
from dalembert.algorithms.inverse_dynamics import joint_forces, rnea_common_frame
from dalembert.algorithms.kinematics import forward_kinematics
from dalembert.algorithms.open_tree import require_open_tree, velocity_places
from dalembert.model.body import Body
from dalembert.model.tree import PerBody, Tree
from dalembert.scalar import Scalar, Scalars
from dalembert.spatial import Motion, RigidInertia, Transform, Vec3
from dalembert.textbook.lagrange import add_armature, add_at_places


class ClosedForm(NamedTuple):
    """H `(nv, nv)` with armature on its diagonal, C `(nv, nv, nv)` and g `(nv,)` of Eq. 5.6."""

    H: Matrix
    C: list[Matrix]
    g: list[Scalar]


class _Variable(NamedTuple):
    """One velocity variable of a joint: its place in v, its direction s in the world, and B of (1)."""

    places: list[tuple[int, float]]
    s: Motion
    B: list[Motion]
    """B_jk for the variables k on the way to this joint, itself included, from the root on."""


def closed_form(tree: Tree, q: Scalars) -> ClosedForm:
    """Return the coefficients of Eq. 5.6 at q; of the independent coordinates where joints are coupled."""
    require_open_tree(tree, "closed_form")
    require_scleronomic(tree, "closed_form")
    poses = forward_kinematics(tree, q)
    paths = _paths(tree, q, poses)
    a_g = Motion(Vec3.zero(), tree.gravity)
    n = tree.nv
    H, C, g = zeros(n, n), [zeros(n, n) for _ in range(n)], [0.0] * n
    for b in tree.bodies:
        path = paths[b]
        I_b: RigidInertia = poses[b].inverse_apply(b.inertia)
        weight = I_b * a_g
        for i in path:
            for r, ratio in i.places:
                g[r] = g[r] - i.s.dot(weight) * ratio  # (5)
        for j in path:
            h_j = I_b * j.s
            for i in path:
                add_at_places(H, i.places, j.places, i.s.dot(h_j))  # (3)
            for k, B_jk in itertools.zip_longest(path, j.B):
                f_jk = k.s.cross(h_j) if B_jk is None else k.s.cross(h_j) + I_b * B_jk
                for i in path:
                    for r, ratio in i.places:
                        add_at_places(C[r], j.places, k.places, i.s.dot(f_jk) * ratio)  # (4)
    add_armature(tree, H)
    return ClosedForm(H, C, g)


def inverse_dynamics_closed_form(
    tree: Tree, q: Scalars, v: Scalars, a: Scalars, **given: Unpack[Loads]
) -> list[Scalar]:
    """Return tau of Eq. 5.6, less J^T external: O(n^4), a reference for the recursive algorithms.

    `time` makes no difference: joints that depend on it are refused.
    """
    H, C, g = closed_form(tree, q)
    f_x = body_forces(tree, q, **given)
    tau = g if f_x is None else [g_i - Q_i for g_i, Q_i in zip(g, joint_forces(tree, q, f_x), strict=True)]
    return [tau_i + dot(H_i, a) + dot(times(C_i, v), v) for tau_i, H_i, C_i in zip(tau, H, C, strict=True)]


def _paths(tree: Tree, q: Scalars, poses: PerBody[Transform]) -> PerBody[list[_Variable]]:
    """Return for each body the velocity variables that move it, from the root on."""

    def step(body: Body, above: list[_Variable]) -> tuple[list[_Variable], list[_Variable]]:
        S = [poses[body].inverse_apply(s) for s in body.jcalc(q).S]
        rings = joint_rates(body, q, [0.0] * tree.nv).S
        own = []
        for j, places in enumerate(velocity_places(body)):
            B = [k.s.cross(S[j]) for k in above]
            B += [S[k].cross(S[j]) + poses[body].inverse_apply(rings[k][j]) for k in range(body.nv)]  # (1)
            own.append(_Variable(places, S[j], B))
        path = above + own
        return path, path

    return tree.outward(step, [])


# Inverse dynamics with every vector in world coordinates, external forces in either frame.
#
# The basic equations of recursive Newton-Euler (Featherstone 2008 Eqs 5.7 to 5.11) are `rnea_common_frame`.
# An external force enters them linearly, so that it takes J^T f^x from tau wherever it is expressed.


def inverse_dynamics_common_frame(
    tree: Tree, q: Scalars, v: Scalars, a: Scalars, **given: Unpack[Loads]
) -> list[Scalar]:
    """Solve M(q) a + b(q, v) = tau + external for tau, in world coordinates (Eqs 5.7 to 5.11)."""
    time = given.get("time")
    tau = rnea_common_frame(tree, q, v, a, time=time)
    f_x = body_forces(tree, q, **given)
    if f_x is None:
        return tau
    return [t - Q for t, Q in zip(tau, joint_forces(tree, q, f_x, time=time), strict=True)]
