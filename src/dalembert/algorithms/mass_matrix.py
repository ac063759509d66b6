"""The joint-space inertia matrix M(q), the book's H.

Composite rigid bodies (Featherstone 2008 Table 6.2): I_i^c = I_i + sum of the children's, and the block of
joints i and j is S_j^T X^T I_i^c S_i for every ancestor j of i (Eqs 6.17 to 6.20); all other blocks are
zero. Where joints are coupled, v = G y holds for the independent velocities y, and the matrix is G^T H G
(Eq. 9.27).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from dalembert.algorithms.articulated import joint_inertia
from dalembert.algorithms.declaration import later, public
from dalembert.algorithms.dense import Matrix, identity, total, transpose, zeros
from dalembert.algorithms.energy_momentum import composites
from dalembert.algorithms.inverse_dynamics import spanning_tree_forces
from dalembert.algorithms.kinematics import forward_kinematics
from dalembert.algorithms.open_tree import (
    HAS_INVERSE,
    add_symmetric,
    carry_to_ancestors,
    require_moving_mass,
    variable_parents,
)
from dalembert.algorithms.sparse import ancestors, factor_with_reciprocals, solve_with_reciprocals
from dalembert.errors import UnknownNameError
from dalembert.model.body import Body
from dalembert.model.tree import PerBody, Tree
from dalembert.scalar import Scalar, Scalars, Time
from dalembert.spatial import RigidInertia


class Block(NamedTuple):
    """H_ij, nv(i) rows by nv(j) columns, of a body i and itself or an ancestor j."""

    i: Body
    j: Body
    rows: Matrix


@public(
    "dynamics",
    "q",
    method="crba",
    others=lambda: {
        "rnea_columns": mass_matrix_by_columns,
        "crba_common_frame": crba_common_frame,
        "jacobians": later("textbook:mass_matrix_by_jacobians"),
    },
    frame_free=True,
    empty=(0, 0),
    differentiable=True,
)
def mass_matrix(tree: Tree, q: Scalars, *, time: Time = None, method: str = "crba") -> Matrix:
    """Compute the joint-space inertia M(q) = sum J_i^T I_i J_i + armature `(…, nv, nv)`.

    M is symmetric, and T = v^T M v / 2. Composite-rigid-body algorithm, Featherstone 2008 Table 6.2.
    `method="rnea_columns"` uses nv inverse dynamics, which is the default above `UNROLLED_BODIES`
    coordinates; `"jacobians"` evaluates the sum directly.

    >>> model = da.models.double_pendulum()
    >>> print(da.mass_matrix(model, [0.3, np.pi / 2]).round(6))  # 3 + 2 cos q2, 1 + cos q2, 1
    [[3. 1.]
     [1. 1.]]
    """
    if method == "crba":
        return assemble_blocks(tree, _composite_blocks(tree, q, time))
    if method == "rnea_columns":
        return mass_matrix_by_columns(tree, q, time=time)
    raise UnknownNameError.of("method of mass_matrix", method, ("crba", "rnea_columns"))


def composite_inertias(tree: Tree, q: Scalars, *, time: Time = None) -> PerBody[RigidInertia]:
    """Return I_i^c: body i and all it carries as one rigid body, in body coordinates (Eq. 6.17)."""

    def step(body: Body, I_children: RigidInertia) -> tuple[RigidInertia, RigidInertia]:
        I_c = body.inertia + I_children
        return body.jcalc(q, None, time).X.inverse_apply(I_c), I_c

    return tree.inward(step, RigidInertia.zero())[0]


def _composite_blocks(tree: Tree, q: Scalars, time: Time) -> Iterator[Block]:
    """Run Table 6.2: the force F that moves subtree i about joint i, taken to each ancestor j in turn."""
    joints = tree.outward(lambda body, _: ((), body.jcalc(q, None, time)), ())
    I_c = composite_inertias(tree, q, time=time)
    for i in tree.bodies:
        F = [I_c[i] * s for s in joints[i].S]
        yield Block(i, i, joint_inertia(joints[i].S, F, i.armature))
        for j, F_j in carry_to_ancestors(tree, joints, i, F):
            yield Block(i, j, [[s.dot(f) for s in joints[j].S] for f in F_j])


def crba_common_frame(tree: Tree, q: Scalars, *, time: Time = None) -> Matrix:
    """Run the basic equations 6.13 to 6.16, all in world coordinates: M_ij = s_j^T I_i^c s_i."""
    poses = forward_kinematics(tree, q, time=time)
    I_c = composites(tree, lambda body: poses[body].inverse_apply(body.inertia))
    S = tree.outward(
        lambda body, _: ((), [poses[body].inverse_apply(s) for s in body.jcalc(q, None, time).S]), ()
    )

    def blocks() -> Iterator[Block]:
        for i in tree.bodies:
            F = [I_c[i] * s for s in S[i]]
            yield Block(i, i, joint_inertia(S[i], F, i.armature))
            j = i
            while j.parent >= 0:
                j = tree.bodies[j.parent]
                yield Block(i, j, [[s.dot(f) for s in S[j]] for f in F])

    return assemble_blocks(tree, blocks())


def mass_matrix_by_columns(tree: Tree, q: Scalars, *, time: Time = None) -> Matrix:
    """Return M with columns ID(q, 0, e_i) - ID(q, 0, 0): nv + 1 inverse dynamics, O(n^2) (Eq. 6.4)."""
    zero = [0.0] * tree.nv
    c = spanning_tree_forces(tree, q, zero, zero, time=time)
    columns = [spanning_tree_forces(tree, q, zero, e_i, time=time) for e_i in identity(tree.nv)]
    return transpose([[t - c_k for t, c_k in zip(column, c, strict=True)] for column in columns])


def assemble_blocks(tree: Tree, blocks: Iterator[Block]) -> Matrix:
    """Assemble G^T H G from the blocks on and below the diagonal; without couplings each has its place."""
    M = zeros(tree.nv, tree.nv)
    for i, j, rows in blocks:
        add_symmetric(M, i, j, rows)
    return M


# The inverse of the joint-space inertia matrix.
#
# M = L^T D L gives M^-1 = L^-1 D^-1 L^-T. L^-1 has the sparsity of L (an element for each variable and
# ancestor), so that element (i, j) of the inverse is a sum over the *common* ancestors of i and j only. Up to
# depths of about fifty variables, deeper than any robot, that costs less than the recursion through
# articulated bodies.


@public(
    "dynamics",
    "q",
    method="ltdl",
    frame_free=True,
    preconditions=HAS_INVERSE,
    empty=(0, 0),
    differentiable=True,
)
def inverse_mass_matrix(tree: Tree, q: Scalars, *, time: Time = None) -> Matrix:
    """Compute M(q)^-1 = L^-1 D^-1 L^-T `(…, nv, nv)` from the sparse factors M = L^T D L.

    A large M is factored densely. Featherstone 2008 Tables 6.3 and 6.5.

    >>> model = da.models.cart_pole()
    >>> q = [0.0, 0.2]
    >>> product = da.inverse_mass_matrix(model, q) @ da.mass_matrix(model, q)
    >>> print(np.abs(product - np.eye(2)).max() < 1e-12)
    True
    """
    require_moving_mass(tree, "inverse_mass_matrix")
    lam = variable_parents(tree)
    L, reciprocals = factor_with_reciprocals(mass_matrix(tree, q, time=time), lam)
    return inverse_from_factors(L, reciprocals, lam)


def inertia_solver(tree: Tree, q: Scalars, *, time: Time = None) -> Callable[[Scalars], list[Scalar]]:
    """Return the function f -> M(q)^-1 f, with M factored once."""
    lam = variable_parents(tree)
    L, reciprocals = factor_with_reciprocals(mass_matrix(tree, q, time=time), lam)
    return lambda f: solve_with_reciprocals(L, reciprocals, lam, f)


def inverse_from_factors(L: Matrix, reciprocals: Scalars, lam: Sequence[int]) -> Matrix:
    """Return M^-1 of M = L^T D L, from `factor_with_reciprocals`."""
    N = _inverse_unit_lower(L, lam)
    W = [{k: x * reciprocals[k] for k, x in row.items()} for row in N]
    n = len(lam)
    inverse = zeros(n, n)
    for i in range(n):
        for j in range(i + 1):
            common = (k for k in (j, *ancestors(lam, j)) if k in N[i])
            inverse[i][j] = inverse[j][i] = total(N[i][k] * W[j][k] for k in common)
    return inverse


def _inverse_unit_lower(L: Matrix, lam: Sequence[int]) -> list[dict[int, Scalar]]:
    """Return N = L^-1 by rows: N_ij = - sum of L_ik N_kj over the ancestors k of i down to j."""
    N: list[dict[int, Scalar]] = []
    for i in range(len(lam)):
        row: dict[int, Scalar] = {i: 1.0}
        path = list(ancestors(lam, i))
        for j in path:
            row[j] = -total(L[i][k] * N[k][j] for k in path if j in N[k])
        N.append(row)
    return N
