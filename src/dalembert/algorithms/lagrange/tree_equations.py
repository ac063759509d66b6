"""The equations of motion of a tree from the Jacobians of its bodies (Liu & Jain section 5.3).

    M = sum_k J_k^T M_ck J_k                                                                       (59)
    C = sum_k (J_k^T M_ck J_k' + J_k^T [omega~_k] M_ck J_k) v

J_k `(6, nv)` in world axes at the centre of mass of body k, angular first; M_ck = blockdiag(I_ck, m_k 1).
For every joint that does not depend on time. v need not be a rate of coordinates: Newton-Euler of each body
and J^T alone lead here, without Lagrange's equations. Gravity is the force m_k g at each centre of mass.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from dalembert.algorithms.cartesian.body_forces import joint_forces
from dalembert.algorithms.dense import Matrix, dot, times, transpose
from dalembert.algorithms.external_forces import ExternalForces, body_forces
from dalembert.algorithms.jacobians import jacobian, jacobian_rate
from dalembert.algorithms.kinematics import forward_kinematics
from dalembert.algorithms.lagrange.equations import forces_from
from dalembert.algorithms.lagrange.newton_euler import newton_euler_blocks, world_inertia
from dalembert.algorithms.lagrange.one_body import BodyEquations
from dalembert.algorithms.lagrange.scleronomic import require_scleronomic
from dalembert.algorithms.mass_centers import require_centers_of_mass
from dalembert.algorithms.open_tree import require_open_tree
from dalembert.algorithms.sparsity import velocity_places
from dalembert.model.body import Body
from dalembert.model.elements import Frame
from dalembert.model.model import Model
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar
from dalembert.spatial import Force, Mat3, Motion, Transform, Vec3

__all__ = ["inverse_dynamics_by_jacobians", "mass_matrix_by_jacobians", "tree_equations"]


def mass_matrix_by_jacobians(tree: Tree, q: Sequence[Scalar], *, time: Scalar | None = None) -> Matrix:
    """Return M = sum J_k^T M_ck J_k `(nv, nv)`, armature included on the diagonal (Eq. 59)."""
    return _sum_over_bodies(tree, q, None, time).M


def tree_equations(
    tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar], *, time: Scalar | None = None
) -> BodyEquations:
    """Return M and the velocity terms C of Eq. 59, without gravity."""
    require_scleronomic(tree, "tree_equations")
    return _sum_over_bodies(tree, q, v, time)


def inverse_dynamics_by_jacobians(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    a: Sequence[Scalar],
    *,
    external_forces: ExternalForces = None,
    external_frame: str = "body",
    time: Scalar | None = None,
) -> list[Scalar]:
    """Return tau = M a + C - sum J_k^T (weight and external force of body k), by Jacobians (Eqs 14, 59)."""
    require_open_tree(tree, "inverse_dynamics_by_jacobians")
    M, C = tree_equations(tree, q, v, time=time)
    f_x = body_forces(tree, q, external_forces, external_frame, time)
    poses = forward_kinematics(tree, q, time=time)

    def acting(body: Body, _: object) -> tuple[tuple[()], Force]:
        weight = body.inertia * poses[body].apply(Motion(Vec3.zero(), tree.gravity))
        return (), weight if f_x is None else weight + f_x[body]

    Q = joint_forces(tree, q, tree.outward(acting, ()), time=time)
    return [t - Q_j for t, Q_j in zip(forces_from(M, C, a), Q, strict=True)]


def _sum_over_bodies(
    tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar] | None, time: Scalar | None
) -> BodyEquations:
    """Sum Eq. 59 over the bodies; C is computed only if v is given."""
    require_centers_of_mass(tree, "tree_equations")
    n = tree.nv
    M: Matrix = [[0.0] * n for _ in range(n)]
    C: list[Scalar] = [0.0] * n
    poses = forward_kinematics(tree, q, time=time)
    model = cast("Model", tree)
    for body in tree.bodies:
        center = Frame("center of mass", body.index, Transform(Mat3.identity(), body.inertia.com))
        columns = transpose(jacobian(model, q, center, time=time))
        I_c = world_inertia(poses[body].R, body.inertia.inertia_at_com)
        V = [0.0] * 6 if v is None else _combine_columns(columns, v)
        M_c, bias = newton_euler_blocks(body.inertia.mass, I_c, Vec3(V[0], V[1], V[2]))
        momenta = [times(M_c, column) for column in columns]
        M = [[M[i][j] + dot(columns[i], momenta[j]) for j in range(n)] for i in range(n)]
        if v is not None:
            V_rate = _combine_columns(transpose(jacobian_rate(model, q, v, center, time=time)), v)
            f = [x + b for x, b in zip(times(M_c, V_rate), bias, strict=True)]
            C = [c + dot(column, f) for c, column in zip(C, columns, strict=True)]
        for armature, places in zip(body.armature, velocity_places(body), strict=True):
            for i, ratio_i in places:
                for j, ratio_j in places:
                    M[i][j] = M[i][j] + armature * (ratio_i * ratio_j)
    return BodyEquations(M, C)


def _combine_columns(columns: Sequence[Sequence[Scalar]], v: Sequence[Scalar]) -> list[Scalar]:
    """Return J v from the columns of J."""
    return [dot([column[r] for column in columns], v) for r in range(6)]
