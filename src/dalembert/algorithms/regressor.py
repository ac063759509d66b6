"""Dynamics as linear functions of the inertial parameters, from which they are identified."""

from __future__ import annotations

from typing import Final

from dalembert.algorithms.declaration import NO_LOADS, Option, public
from dalembert.algorithms.dense import Matrix
from dalembert.algorithms.kinematics import body_velocities, forward_kinematics
from dalembert.algorithms.open_tree import require_open_tree, velocity_places
from dalembert.errors import require_flag
from dalembert.model.body import Body
from dalembert.model.joints.subspaces import combination
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar, Scalars, Time
from dalembert.spatial import BodyAcceleration, Motion, RigidInertia, SymMat3, Vec3

# Energies as linear functions of the inertial parameters.
#
# Of a body with velocity (w, u), pose (R, p), mass m, first moment h and inertia I about its origin
#
#     T_i = m u.u / 2 + h . (u x w) + w . I w / 2                                                        (1)
#     V_i = -m g . p - h . R^T g                                                                         (2)


ARMATURE: Final = {"armature": Option("bool", False, read=lambda model, flag: require_flag("armature", flag))}
"""The option that appends a column for each armature."""


@public("identification", "q v", method="passes", options=ARMATURE, empty=(0,))
def kinetic_energy_regressor(
    tree: Tree, q: Scalars, v: Scalars, *, armature: bool = False, time: Time = None
) -> list[Scalar]:
    """Compute the regressor y(q, v) `(…, 10 n_bodies)` of the kinetic energy T = y . pi [J].

    T_i = m u.u / 2 + h . (u x w) + w . I w / 2 for a body with velocity (w, u) at its origin. `armature`
    appends a column for each armature. Featherstone 2008 Eq. 2.67.

    >>> model = da.models.pendulum(length=2.0, mass=3.0)
    >>> y = da.identification.kinetic_energy_regressor(model, [0.4], [0.5])
    >>> print(round(float(y @ da.identification.inertial_parameters(model)), 12))
    1.5
    """
    y: list[Scalar] = []
    for velocity in body_velocities(tree, q, v, time=time):
        w, u = velocity.angular, velocity.linear
        y += [0.5 * u.dot(u), *u.cross(w).to_list()]  # (1)
        y += [0.5 * (w.x * w.x), 0.5 * (w.y * w.y), 0.5 * (w.z * w.z), w.x * w.y, w.x * w.z, w.y * w.z]
    if armature:
        y += [0.5 * (x * x) for body in tree.bodies for x in body.own_v(v)]
    return y


@public("identification", "q", method="passes", options=ARMATURE, empty=(0,))
def potential_energy_regressor(
    tree: Tree, q: Scalars, *, armature: bool = False, time: Time = None
) -> list[Scalar]:
    """Compute the regressor y(q) `(…, 10 n_bodies)` of the potential energy V = y . pi [J].

    V_i = -m g . p - h . R^T g for a body with pose (R, p). `armature` appends a column of zeros for each
    armature.

    >>> model = da.models.pendulum(length=2.0, mass=3.0)
    >>> y = da.identification.potential_energy_regressor(model, [0.0])
    >>> print(round(float(y @ da.identification.inertial_parameters(model)), 6))
    -58.86
    """
    y: list[Scalar] = []
    for pose in forward_kinematics(tree, q, time=time):
        y += [-tree.gravity.dot(pose.p), *(-pose.R.transposed_times(tree.gravity)).to_list()]  # (2)
        y += [0.0] * 6
    return y + [0.0] * (sum(body.nv for body in tree.bodies) if armature else 0)


# The inertial parameters of a system as one vector, in which its equations of motion are linear.
#
#     pi_i = (m, h_x, h_y, h_z, I_xx, I_yy, I_zz, I_xy, I_xz, I_yz)          h = m c                       (1)
#
# of body i in its own frame: mass [kg], first moment [kg m], and inertia about the body's *origin* [kg m^2].
# The ten of every body stand in the order of the bodies; where armatures count as parameters, one for each
# velocity variable of each joint follows them, in the same order [kg m^2 or kg].

PARTS = ("mass", "h_x", "h_y", "h_z", "I_xx", "I_yy", "I_zz", "I_xy", "I_xz", "I_yz")
"""The ten parameters of a body, in order."""


def inertial_parameters(tree: Tree, *, armature: bool = False) -> list[Scalar]:
    """Return pi: ten numbers a body, (1), then the armatures if asked for."""
    require_flag("armature", armature)
    bodies = [x for body in tree.bodies for x in body.inertia.leaves()]
    return bodies + [x for body in tree.bodies for x in body.armature if armature]


def parameter_names(tree: Tree, *, armature: bool = False) -> list[str]:
    """Return `"<body>.mass"`, … `"<body>.I_yz"`, then `"<joint>.armature"`, numbered if several."""
    require_flag("armature", armature)
    names = [f"{body.name}.{part}" for body in tree.bodies for part in PARTS]
    for body in tree.bodies if armature else ():
        name = f"{body.joint_name}.armature"
        names += [name] if body.nv == 1 else [f"{name}[{k}]" for k in range(body.nv)]
    return names


def inertia_of(parameters: Scalars) -> RigidInertia:
    """Return the inertia of a body's ten parameters."""
    mass, hx, hy, hz, *I = parameters
    return RigidInertia.from_compact(mass, Vec3(hx, hy, hz), SymMat3(*I))


# The matrix Y(q, v, a) with which generalized forces depend on the inertial parameters: tau = Y pi.
#
# A body's share of the power of a velocity s = (w, u), given at its origin in its coordinates, is s . f with
# the force f of `RigidInertia.force_of`: every point r of it has the acceleration linear + W r, W = alpha x +
# omega x omega x. Sorted by mass, first moment h and Euler's tensor J = tr(I)/2 - I
#
#     (1)  mass      u . linear
#     (2)  h         W^T u + linear x w
#     (3)  J         c_xx = w_z W_yx - w_y W_zx,   c_yz = w_x (W_zz - W_yy) + w_y W_xy - w_z W_xz,   cyclic
#     (4)  I         c_xx + c_yy + c_zz = 2 w . alpha,  so that  I_xx has w . alpha - c_xx,  I_yz has -c_yz
#
# So a row of Y in the columns of body i is (1) to (4) with s = S_j brought to body i, for every joint j on
# the way to it; other entries are zero. Each S_j goes outward along its subtree, one transform a body: O(n d)
# for n bodies at depth d, against ten transforms inward where the columns of f are moved instead.

Direction = tuple[list[tuple[int, float]], Motion]
"""A joint's direction in the coordinates of a body: its places in v, with ratios, and the motion."""


@public(
    "identification",
    "q v a",
    method="passes",
    without=NO_LOADS,
    options=ARMATURE,
    empty=lambda model: (0, len(PARTS) * len(model.bodies)),
)
def inverse_dynamics_regressor(
    tree: Tree, q: Scalars, v: Scalars, a: Scalars, *, armature: bool = False, time: Time = None
) -> Matrix:
    """Compute the regressor Y(q, v, a) `(…, nv, 10 n_bodies)` of inverse dynamics, tau = Y pi.

    pi = `inertial_parameters(model)`: for each body mass, h = m c, and I_xx, I_yy, I_zz, I_xy, I_xz, I_yz
    about the origin of its frame. A body's columns are zero in the rows of joints that do not carry it. tau
    is that of `inverse_dynamics` without external forces and armatures; `armature=True` appends a column for
    each armature. Of models with loops use the spanning tree, `model.tree()`. The cost is O(n d) for n bodies
    at depth d. Featherstone 2008 Eqs 2.63 and 5.8; Atkeson, An & Hollerbach (1986).

    >>> model = da.models.arm6()
    >>> q, v = model.random_state(0)
    >>> Y = da.identification.inverse_dynamics_regressor(model, q, v, np.ones(6))
    >>> tau = da.inverse_dynamics(model, q, v, np.ones(6))
    >>> print(Y.shape, np.allclose(Y @ da.identification.inertial_parameters(model), tau))
    (6, 60) True
    """
    require_open_tree(tree, "inverse_dynamics_regressor")
    width = len(PARTS)
    columns = width * len(tree.bodies)
    freedoms = sum(body.nv for body in tree.bodies) if armature else 0
    Y: Matrix = [[0.0] * (columns + freedoms) for _ in range(tree.nv)]

    def accelerate(
        body: Body, parent: tuple[BodyAcceleration, list[Direction]]
    ) -> tuple[tuple[BodyAcceleration, list[Direction]], tuple[BodyAcceleration, list[Direction]]]:
        X, S, v_J, c_J = body.jcalc(q, v, time)
        A_parent, supporting = parent
        A = A_parent.across_joint(X, v_J, combination(S, body.own_v(a)) + c_J)
        directions = [(places, X.apply(s)) for places, s in supporting]
        directions += list(zip(velocity_places(body), S, strict=True))
        return (A, directions), (A, directions)

    base = BodyAcceleration(Vec3.zero(), Vec3.zero(), -tree.gravity)
    moved = tree.outward(accelerate, (base, []))
    for body in tree.bodies:
        A, directions = moved[body]
        for places, s in directions:
            _add(Y, places, width * body.index, power_coefficients(s, A))
    if armature:
        for body in tree.bodies:
            for places, x in zip(velocity_places(body), body.own_v(a), strict=True):
                _add(Y, places, columns, [x])
                columns += 1
    return Y


def power_coefficients(s: Motion, A: BodyAcceleration) -> list[Scalar]:
    """Return s . (I a + v x* I v) by the ten parameters of I, in their order; Eqs (1) to (4)."""
    w, u, W = s.angular, s.linear, A.tensor
    by_mass = u.dot(A.linear)  # (1)
    by_h = W.transposed_times(u) + A.linear.cross(w)  # (2)
    c_xx = w.z * W.yx - w.y * W.zx  # (3)
    c_yy = w.x * W.zy - w.z * W.xy
    c_zz = w.y * W.xz - w.x * W.yz
    c_yz = w.x * (W.zz - W.yy) + w.y * W.xy - w.z * W.xz
    c_xz = w.y * (W.xx - W.zz) + w.z * W.yz - w.x * W.yx
    c_xy = w.z * (W.yy - W.xx) + w.x * W.zx - w.y * W.zy
    half = w.dot(A.alpha)
    return [by_mass, *by_h.to_list(), half - c_xx, half - c_yy, half - c_zz, -c_xy, -c_xz, -c_yz]  # (4)


def _add(Y: Matrix, places: list[tuple[int, float]], column: int, entries: list[Scalar]) -> None:
    """Add entries to the rows of a joint, from a column on; a dependent joint's act on those it follows."""
    for place, ratio in places:
        row = Y[place]
        for k, entry in enumerate(entries):
            row[column + k] = row[column + k] + (entry if ratio == 1.0 else ratio * entry)
