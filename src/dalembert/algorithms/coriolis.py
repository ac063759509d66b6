"""The Coriolis matrix C(q, v) whose Mdot - 2 C is skew, and the rate of the inertia matrix.

With J_i the Jacobian of body i, v_i = J_i v its velocity and everything in fixed coordinates, the velocity
terms of the equation of motion are J_i^T (I_i J_i' v + v_i x* I_i v_i), summed over the bodies. The last
term is B_i v_i for many matrices B_i; one of them is (Echeandia & Wensing, Numerical Methods to Compute the
Coriolis Matrix and Christoffel Symbols for Rigid-Body Systems, 2021)

    B_i m = (I_i' m + m x* h_i) / 2        I_i' = v_i x* I_i - I_i v_i x,   h_i = I_i v_i                  (1)
    C     = sum of J_i^T (I_i J_i' + B_i J_i)                                                              (2)

m x* h is skew in m, so that B + B^T = I' and C + C^T = dM/dt; B_i v_i = v_i x* h_i, so that C v is the whole
of the velocity terms. (2) holds for joints of any number of freedoms and for subspaces that move in their
body. B is linear in I' and h, which add up over a subtree and move between frames like any inertia and
force, so that C is found like M by composite bodies (Table 6.2 of Featherstone 2008): for every joint i and
each of its ancestors j, with ^c the sums over what i carries,

    C_ji = S_j^T (I^c S_i' + B^c S_i)              C_ij = S_j'^T I^c S_i + S_j^T B^c^T S_i                 (3)
    S'   = v x S + S-ring                                                                                  (4)

Armature is constant and adds nothing. Coupled joints: v = G y with constant G, so that C becomes G^T C G.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

from dalembert.algorithms.declaration import SCLERONOMIC, choice, public
from dalembert.algorithms.dense import Matrix, dot, identity, transpose, zeros
from dalembert.algorithms.energy_momentum import inertia_rate
from dalembert.algorithms.jacobians import subspace_rate
from dalembert.algorithms.mass_matrix import inverse_mass_matrix, mass_matrix
from dalembert.algorithms.open_tree import add_block, add_symmetric, carry_to_ancestors, velocity_places
from dalembert.errors import ModelError, require_choice
from dalembert.model.body import Body, JointMotion
from dalembert.model.configuration import position_rate
from dalembert.model.joints.dual import directional_derivative
from dalembert.model.joints.subspaces import combination
from dalembert.model.tree import PerBody, Tree
from dalembert.scalar import Scalar, Scalars
from dalembert.spatial import Force, Motion, Placement, RigidInertia

geometric = functools.partial(public, "geometry", without=SCLERONOMIC)
"""The declaration of a function of the geometry of configuration space, which knows no time."""


@geometric("q v", method="composite_bodies", frame_free=True, empty=(0, 0), differentiable=True)
def coriolis_matrix(tree: Tree, q: Scalars, v: Scalars) -> Matrix:
    """Compute the Coriolis matrix C(q, v) `(…, nv, nv)` of M a + C v + g = tau.

    [kg m^2/s, kg m/s or kg/s]. C v = `coriolis_forces`, and dM/dt - 2 C is skew. C = sum over bodies of J^T
    (I J' + B J), with B m = ((v x* I - I v x) m + m x* I v) / 2: the matrix of the Christoffel symbols, C_kj
    = Gamma_ij,k v_i. It is defined for all joint types, and is G^T C G where joints are coupled.

    Source: Todorov, "Dynamics in generalized coordinates"; Echeandia & Wensing 2021.

    >>> model = da.models.two_link_arm()
    >>> q, v = np.array([0.3, 0.8]), np.array([1.0, -2.0])
    >>> C = da.geometry.coriolis_matrix(model, q, v)
    >>> np.allclose(C @ v, da.coriolis_forces(model, q, v))
    True
    >>> X = da.geometry.mass_matrix_rate(model, q, v) - 2.0 * C
    >>> np.allclose(X, -X.T)
    True
    """
    require_scleronomic(tree, "coriolis_matrix")
    moved = moving_subspaces(tree, q, v)
    carried = _composites(tree, moved)
    C = zeros(tree.nv, tree.nv)
    for i in tree.bodies:
        (_, S, S_rate, _), (I_c, rate, h) = moved[i], carried[i]
        F, down, up = [], [], []
        for s, s_rate in zip(S, S_rate, strict=True):
            even, odd = rate * s, s.cross(h)
            F.append(I_c * s)
            down.append(I_c * s_rate + (even + odd) * 0.5)  # I^c S' + B^c S
            up.append((even - odd) * 0.5)  # B^c^T S
        add_block(C, i, i, [[s.dot(f) for f in down] for s in S])
        n = len(S)
        for j, forces in carry_to_ancestors(tree, moved, i, [*F, *down, *up]):
            columns = list(zip(moved[j].S, moved[j].S_rate, strict=True))
            add_block(C, j, i, [[s.dot(f) for f in forces[n : 2 * n]] for s, _ in columns])  # (3)
            rows = zip(forces[:n], forces[2 * n :], strict=True)
            add_block(C, i, j, [[s_rate.dot(f) + s.dot(g) for s, s_rate in columns] for f, g in rows])
    return C


@geometric("q v", method="composite_bodies", frame_free=True, empty=(0, 0))
def mass_matrix_rate(tree: Tree, q: Scalars, v: Scalars) -> Matrix:
    """Compute dM/dt `(…, nv, nv)` [kg m^2/s, kg m/s or kg/s] along the motion v.

    M' = sum of S_j^T (I^c' S_i + I^c S_i') + S_j'^T I^c S_i, and M' = C + C^T.

    Source: the composite inertias of Featherstone 2008 Eq. 6.17, differentiated (§2.13); Todorov, "Dynamics
    in generalized coordinates".

    >>> model = da.models.two_link_arm()
    >>> q, v = np.array([0.3, 0.8]), np.array([1.0, -2.0])
    >>> difference = da.mass_matrix(model, q + 1e-6 * v) - da.mass_matrix(model, q - 1e-6 * v)
    >>> np.allclose(da.geometry.mass_matrix_rate(model, q, v), difference / 2e-6)
    True
    """
    require_scleronomic(tree, "mass_matrix_rate")
    moved = moving_subspaces(tree, q, v)
    carried = _composites(tree, moved)
    rates = zeros(tree.nv, tree.nv)
    for i in tree.bodies:
        (_, S, S_rate, _), (I_c, rate, _) = moved[i], carried[i]
        n, F = len(S), [I_c * s for s in S]
        F_rate = [rate * s + I_c * s_rate for s, s_rate in zip(S, S_rate, strict=True)]
        for j, forces in [(i, [*F, *F_rate]), *carry_to_ancestors(tree, moved, i, [*F, *F_rate])]:
            block = [
                [s.dot(f_rate) + s_rate.dot(f) for f, f_rate in zip(forces[:n], forces[n:], strict=True)]
                for s, s_rate in zip(moved[j].S, moved[j].S_rate, strict=True)
            ]
            add_symmetric(rates, j, i, block)
    return rates


@geometric("q v w", method="passes", frame_free=True, loops=True)
def coriolis_product(tree: Tree, q: Scalars, v: Scalars, w: Scalars) -> list[Scalar]:
    """Compute C(q, v) w `(…, nv)` [N m or N] in linear time, without forming C.

    `w`: any velocity `(…, nv)`; with w = v the result is `coriolis_forces`. The outward pass computes J v, J
    w and J' w, the inward pass I J' w + B J w of each body.

    Source: as `coriolis_matrix`.

    >>> model = da.models.arm6()
    >>> q, v = model.random_state(0)
    >>> np.allclose(da.geometry.coriolis_product(model, q, v, v), da.coriolis_forces(model, q, v))
    True
    """
    require_scleronomic(tree, "coriolis_product")

    def move(
        body: Body, parent: tuple[Motion, Motion, Motion]
    ) -> tuple[tuple[Motion, Motion, Motion], tuple[JointMotion, Force]]:
        joint = X, S, v_J, _ = body.jcalc(q, v)
        own_w = body.own_v(w)
        v_i = X.apply(parent[0]) + v_J
        w_J = combination(S, own_w)
        w_i = X.apply(parent[1]) + w_J
        ring = combination(subspace_rate(body, q, v), own_w)
        a_i = X.apply(parent[2]) + v_i.cross(w_J) + ring
        I = body.inertia
        turning = (inertia_rate(I, v_i) * w_i + w_i.cross(I * v_i)) * 0.5  # (1)
        return (v_i, w_i, a_i), (joint, I * a_i + turning)

    return tree.project_forces(tree.outward(move, (Motion.zero(), Motion.zero(), Motion.zero())))


def require_scleronomic(tree: Tree, function: str) -> None:
    """Refuse joints that depend on time: V is then not J v, and kinetic energy not a quadratic form of v."""
    for body in tree.bodies:
        if body.joint.time_dependent:
            raise ModelError(
                f'{function}: joint "{body.joint_name}" depends on time, so that the kinetic energy is not a '
                "quadratic form of v; use another method, or make what it prescribes a coordinate"
            )


class MovingSubspace(NamedTuple):
    """X and S of a joint, the rates S' of its columns (4), and the velocity of the body."""

    X: Placement
    S: tuple[Motion, ...]
    S_rate: tuple[Motion, ...]
    velocity: Motion


class _CompositeBody(NamedTuple):
    """The inertia of a body with all it carries, its rate, and the momentum, in body coordinates."""

    inertia: RigidInertia
    rate: RigidInertia
    momentum: Force


def moving_subspaces(tree: Tree, q: Scalars, v: Scalars) -> PerBody[MovingSubspace]:
    """Return S and S' of every joint in a motion."""

    def step(body: Body, v_parent: Motion) -> tuple[Motion, MovingSubspace]:
        X, S, v_J, _ = body.jcalc(q, v)
        v_i = X.apply(v_parent) + v_J
        rings = subspace_rate(body, q, v)
        S_rate = tuple(v_i.cross(s) + ring for s, ring in zip(S, rings, strict=True))  # (4)
        return v_i, MovingSubspace(X, S, S_rate, v_i)

    return tree.outward(step, Motion.zero())


def _composites(tree: Tree, moved: PerBody[MovingSubspace]) -> PerBody[_CompositeBody]:
    def step(
        body: Body, gathered: tuple[RigidInertia, RigidInertia, Force]
    ) -> tuple[tuple[RigidInertia, RigidInertia, Force], _CompositeBody]:
        X, _, _, v_i = moved[body]
        I_c = gathered[0] + body.inertia
        rate = gathered[1] + inertia_rate(body.inertia, v_i)
        h = gathered[2] + body.inertia * v_i
        return (X.inverse_apply(I_c), X.inverse_apply(rate), X.inverse_apply(h)), _CompositeBody(I_c, rate, h)

    return tree.inward(step, (RigidInertia.zero(), RigidInertia.zero(), Force.zero()))[0]


# Christoffel symbols: the connection of the metric M(q), whose geodesics are the unforced motions.
#
# With e_i the directions of the velocity variables, nabla_{e_i} e_j = Gamma_ij^k e_k (sum over k), and
#
#     Gamma_ij,k = M_ks Gamma_ij^s         c_k = Gamma_ij,k v_i v_j         C_kj = Gamma_ij,k v_i          (1)
#
# Where v = dq/dt the e_i are derivatives with respect to coordinates and Gamma_ij,k is symmetric in i and j:
#
#     Gamma_ij,k = (dM_ik/dq_j + dM_jk/dq_i - dM_ij/dq_k) / 2                                              (2)
#
# The velocity variables of spherical, planar and free joints are not rates of coordinates. Their directions
# turn with the body, and do not commute: [e_i, e_j] = gamma_ij^l e_l. The same connection then has (Koszul)
#
#     2 Gamma_ij,k = e_i M_jk + e_j M_ik - e_k M_ij + gamma_ij,k - gamma_ik,j - gamma_jk,i                 (3)
#
# with gamma_ij,k = M_kl gamma_ij^l, and Gamma_ij,k - Gamma_ji,k = gamma_ij,k: Hamel's terms. For one joint
#
#     gamma_ij^l S_l = S_i x S_j + e_i S_j - e_j S_i                                                       (4)
#
# Armature adds to M but, as everywhere in the library, has no gyroscopic terms of its own, so that it is left
# out of gamma_ij,k.

Tensor = list[list[list[Scalar]]]

KINDS = ("first", "second")


@geometric(
    "q",
    options={"kind": choice("first", "second")},
    method="coriolis_matrix",
    others=lambda: {"derivatives": christoffel_symbols_by_derivatives},
    frame_free=True,
    empty=(0, 0, 0),
)
def christoffel_symbols(tree: Tree, q: Scalars, *, kind: str = "first") -> Tensor:
    """Compute Gamma_ij,k = (dM_ik/dq_j + dM_jk/dq_i - dM_ij/dq_k) / 2 `(…, nv, nv, nv)`, indices i, j, k.

    `kind`: "first", or "second": Gamma_ij^k = (M^-1)_ks Gamma_ij,s. The velocity terms are c_k = Gamma_ij,k
    v_i v_j. Where v is not dq/dt (spherical, planar and free joints) the symbols are those of the same
    connection in the frame of the velocity variables, nabla_{e_i} e_j = Gamma_ij^k e_k, which is not
    symmetric in i and j. `method`: "coriolis_matrix" (C_kj at v = e_i) or "derivatives" (exact derivatives of
    M). The nv^3 numbers limit it to systems of up to about twenty variables.

    Source: Todorov, "Dynamics in generalized coordinates", "Covariant derivatives and geodesics".

    >>> model = da.models.two_link_arm()
    >>> Gamma = da.geometry.christoffel_symbols(model, np.array([0.3, 0.8]))
    >>> v = np.array([1.0, -2.0])
    >>> c = np.einsum("ijk,i,j->k", Gamma, v, v)
    >>> np.allclose(c, da.coriolis_forces(model, np.array([0.3, 0.8]), v))
    True
    """
    first = [transpose(coriolis_matrix(tree, q, e_i)) for e_i in identity(tree.nv)]  # (1)
    return _of_kind(tree, q, first, kind)


def christoffel_symbols_by_derivatives(tree: Tree, q: Scalars, *, kind: str = "first") -> Tensor:
    """Return the symbols from exact derivatives of M(q), Eq. (3), at nv times the cost of M."""
    require_scleronomic(tree, "christoffel_symbols")
    n = tree.nv
    rates = [position_rate(tree, q, e_i) for e_i in identity(n)]
    dM = [directional_derivative(lambda x: mass_matrix(tree, x), list(q), rate)[1] for rate in rates]
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


def structure_constants(tree: Tree, q: Scalars) -> Tensor:
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
    rates = [joint.position_rate(own_q, e_i) for e_i in identity(nv)]
    dS = [directional_derivative(joint.subspace, own_q, rate)[1] for rate in rates]
    brackets = [[S[i].cross(S[j]) + dS[i][j] - dS[j][i] for j in range(nv)] for i in range(nv)]
    return [[[bracket.dot(t) for t in T_a] for bracket in row] for row in brackets]


def _of_kind(tree: Tree, q: Scalars, first: Tensor, kind: str) -> Tensor:
    require_choice("kind of christoffel_symbols", kind, KINDS)
    if kind == "first":
        return first
    inverse = inverse_mass_matrix(tree, q)
    return [[[dot(row, symbols) for row in inverse] for symbols in plane] for plane in first]


def _without_armature(tree: Tree, M: Matrix) -> Matrix:
    """Return M without armature; that of coupled joints, which have no structure constants, stays."""
    rows = [list(row) for row in M]
    for body in tree.bodies:
        if body.dependence is None:
            for places, armature in zip(velocity_places(body), body.armature, strict=True):
                place = places[0][0]
                rows[place][place] = rows[place][place] - armature
    return rows


# Jacobian and bias of a map between coordinates, by exact derivatives of the map.


class MapMotion(NamedTuple):
    """The motion of y = f(x): y, J = df/dx, the velocity J x', and bias = J' x' of y'' = J x'' + bias."""

    value: list[Scalar]
    J: Matrix
    velocity: list[Scalar]
    bias: list[Scalar]


def map_motion(function: Callable[[list[Scalar]], Scalars], x: Scalars, x_rate: Scalars) -> MapMotion:
    """Return f, J, J x' and J' x' of a map f: a constraint phi(x) = 0, or coordinates x = h(q).

    J' = sum of dJ/dx_i x_i' (Todorov, "implicit constraints"), so that J' x' is the second derivative of f
    along x'.
    """

    def as_list(z: list[Scalar]) -> list[Scalar]:
        return list(function(z))

    value = as_list(list(x))
    columns = [directional_derivative(as_list, list(x), e_i)[1] for e_i in identity(len(x))]
    J = [[column[r] for column in columns] for r in range(len(value))]
    velocity, bias = directional_derivative(
        lambda z: directional_derivative(as_list, z, x_rate)[1], list(x), x_rate
    )
    return MapMotion(value, J, velocity, bias)
