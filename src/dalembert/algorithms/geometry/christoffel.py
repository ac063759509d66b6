"""Christoffel symbols: the connection of the metric M(q), whose geodesics are the unforced motions.

With e_i the directions of the velocity variables, nabla_{e_i} e_j = Gamma_ij^k e_k (sum over k), and

    Gamma_ij,k = M_ks Gamma_ij^s         c_k = Gamma_ij,k v_i v_j         C_kj = Gamma_ij,k v_i            (1)

Where v = dq/dt the e_i are derivatives with respect to coordinates and Gamma_ij,k is symmetric in i and j:

    Gamma_ij,k = (dM_ik/dq_j + dM_jk/dq_i - dM_ij/dq_k) / 2                                                (2)

The velocity variables of spherical, planar and free joints are not rates of coordinates. Their directions
turn with the body, and do not commute: [e_i, e_j] = gamma_ij^l e_l. The same connection then has (Koszul)

    2 Gamma_ij,k = e_i M_jk + e_j M_ik - e_k M_ij + gamma_ij,k - gamma_ik,j - gamma_jk,i                   (3)

with gamma_ij,k = M_kl gamma_ij^l, and Gamma_ij,k - Gamma_ji,k = gamma_ij,k: Hamel's terms. For one joint

    gamma_ij^l S_l = S_i x S_j + e_i S_j - e_j S_i                                                         (4)

Armature adds to M but, as everywhere in the library, has no gyroscopic terms of its own, so that it is left
out of gamma_ij,k.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dalembert.algorithms.dense import Matrix, dot, unit
from dalembert.algorithms.geometry.coriolis_matrix import coriolis_matrix, require_scleronomic
from dalembert.algorithms.inverse_mass_matrix import inverse_mass_matrix
from dalembert.algorithms.mass_matrix import mass_matrix
from dalembert.algorithms.sparsity import velocity_places
from dalembert.errors import require_choice
from dalembert.model.body import Body
from dalembert.model.configuration import position_rate
from dalembert.model.joints.dual import directional_derivative
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar

__all__ = ["christoffel_symbols", "christoffel_symbols_by_derivatives", "structure_constants"]

Tensor = list[list[list[Scalar]]]

KINDS = ("first", "second")


def christoffel_symbols(tree: Tree, q: Sequence[Scalar], *, kind: str = "first") -> Tensor:
    """Return Gamma_ij,k (first kind) or Gamma_ij^k (second) `(nv, nv, nv)`, indices in the order i, j, k.

    From the Coriolis matrix, which is linear in v: Gamma_ij,k = C_kj(q, e_i). The columns of a tree that
    i does not move vanish by structure.
    """
    n = tree.nv
    first: Tensor = []
    for i in range(n):
        C = coriolis_matrix(tree, q, unit(n, i))
        first.append([[C[k][j] for k in range(n)] for j in range(n)])  # (1)
    return _of_kind(tree, q, first, kind)


def christoffel_symbols_by_derivatives(tree: Tree, q: Sequence[Scalar], *, kind: str = "first") -> Tensor:
    """Return the symbols from exact derivatives of M(q), Eq. (3):
    the textbook formula, at nv times the cost of M."""
    require_scleronomic(tree, "christoffel_symbols")
    n = tree.nv
    dM = [_along(tree, q, i, lambda x: mass_matrix(tree, x)) for i in range(n)]
    gamma = structure_constants(tree, q)
    M = _without_armature(tree, mass_matrix(tree, q))
    lowered = [[[dot(M[k], gamma[i][j]) for k in range(n)] for j in range(n)] for i in range(n)]
    first = [
        [
            [
                0.5
                * (
                    dM[i][j][k] + dM[j][i][k] - dM[k][i][j]
                    + (lowered[i][j][k] - lowered[i][k][j] - lowered[j][k][i])
                )
                for k in range(n)
            ]
            for j in range(n)
        ]
        for i in range(n)
    ]  # fmt: skip
    return _of_kind(tree, q, first, kind)


def structure_constants(tree: Tree, q: Sequence[Scalar]) -> Tensor:
    """Return gamma_ij^l `(nv, nv, nv)` of [e_i, e_j] = gamma_ij^l e_l; Eq. (4).

    Zeros unless i, j and l are of one joint with velocity variables that are not rates of coordinates.
    """
    n = tree.nv
    gamma: Tensor = [[[0.0] * n for _ in range(n)] for _ in range(n)]
    for body in tree.bodies:
        if body.dependence is not None or body.nv < 2:
            continue
        start = body.v_slice.start
        for i, plane in enumerate(_joint_constants(body, body.own_q(q))):
            for j, row in enumerate(plane):
                gamma[start + i][start + j][start : start + body.nv] = row
    return gamma


def _joint_constants(body: Body, own_q: list[Scalar]) -> Tensor:
    joint = body.joint
    nv = joint.nv
    S, T_a = joint.subspace(own_q), joint.active_subspace(own_q)
    dS = [
        directional_derivative(joint.subspace, own_q, joint.position_rate(own_q, unit(nv, i)))[1]
        for i in range(nv)
    ]
    brackets = [[S[i].cross(S[j]) + dS[i][j] - dS[j][i] for j in range(nv)] for i in range(nv)]
    return [[[bracket.dot(t) for t in T_a] for bracket in row] for row in brackets]


def _along(tree: Tree, q: Sequence[Scalar], i: int, function: Callable[[list[Scalar]], Matrix]) -> Matrix:
    """Return e_i f: the derivative of a function of q along velocity variable i."""
    direction = position_rate(tree, q, unit(tree.nv, i))  # type: ignore[arg-type]
    return directional_derivative(function, list(q), direction)[1]


def _of_kind(tree: Tree, q: Sequence[Scalar], first: Tensor, kind: str) -> Tensor:
    require_choice("kind of christoffel_symbols", kind, KINDS)
    if kind == "first":
        return first
    inverse = inverse_mass_matrix(tree, q)
    return [[[dot(row, symbols) for row in inverse] for symbols in plane] for plane in first]


def _without_armature(tree: Tree, M: Matrix) -> Matrix:
    """Return M of the bodies alone; the armature of coupled joints,
    which have no structure constants, stays."""
    rows = [list(row) for row in M]
    for body in tree.bodies:
        if body.dependence is None:
            for places, armature in zip(velocity_places(body), body.armature, strict=True):
                place = places[0][0]
                rows[place][place] = rows[place][place] - armature
    return rows
