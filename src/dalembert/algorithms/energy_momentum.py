"""Energy, momentum and the centre of mass of the whole system.

The centroidal momentum matrix A_G maps v to the momentum (angular about the centre of mass, linear) in
world axes. Column by column it is the momentum of a composite rigid body moving along one joint (as the
forces F in CRBA, Featherstone 2008 Table 6.2), taken to the world:

    A_O column = 0_X_i^* I_i^c S_i        at the world's origin                          (1)
    A_G column = A_O column moved to the centre of mass c: moment - c x force            (2)

With S' = v_i x S + S-ring and I' = v x* I - I v x of each body, in the world,

    A_O' column = I_i^c' S_i + I_i^c S_i'                                                (3)
    A_G' column = A_O' column moved to c, less c' x (force of A_O's column)              (4)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dalembert.algorithms.declaration import public
from dalembert.algorithms.dense import Matrix, total
from dalembert.algorithms.jacobians import subspace_rate
from dalembert.algorithms.kinematics import body_motions, body_velocities, forward_kinematics
from dalembert.errors import ModelError
from dalembert.model.body import Body
from dalembert.model.tree import PerBody, Tree
from dalembert.scalar import Scalar, Scalars, Time, is_zero
from dalembert.scalar.row_sets import sum_all
from dalembert.spatial import Force, Motion, RigidInertia, SymMat3, Vec3

# The rate of a moving body's inertia in fixed coordinates.


def inertia_rate(inertia: RigidInertia, v: Motion) -> RigidInertia:
    """Return dI/dt = v x* I - I v x of a rigid body with velocity v, in fixed coordinates
    (Featherstone 2008 §2.13).

    It has the form of an inertia without mass: by blocks, with omega and u the parts of v,

        h'   = mass u + omega x h
        I_O' = omega x I_O - I_O omega x + 2 (h . u) 1 - h u^T - u h^T
    """
    omega, u, h, I = v.angular, v.linear, inertia.h, inertia.inertia
    h_dot = u * inertia.mass + omega.cross(h)
    turned = omega.skew() @ I.to_mat3()
    turned = turned + turned.transpose()
    twice = 2.0 * h.dot(u)
    I_dot = SymMat3(
        turned.xx + twice - 2.0 * h.x * u.x,
        turned.yy + twice - 2.0 * h.y * u.y,
        turned.zz + twice - 2.0 * h.z * u.z,
        turned.xy - h.x * u.y - u.x * h.y,
        turned.xz - h.x * u.z - u.x * h.z,
        turned.yz - h.y * u.z - u.y * h.z,
    )
    return RigidInertia.from_compact(0.0, h_dot, I_dot)


def total_mass(tree: Tree) -> Scalar:
    """Return the mass of all bodies [kg]."""
    return sum_all(body.inertia.mass for body in tree.bodies)


@public("dynamics", "q v", method="tree", frame_free=True, differentiable=True)
def kinetic_energy(tree: Tree, q: Scalars, v: Scalars, *, time: Time = None) -> Scalar:
    """Compute the kinetic energy T = v^T M v / 2 = sum v_i . I_i v_i / 2 `(…)` [J], including armatures.

    Featherstone 2008 Eqs 2.67 and 3.2.

    >>> model = da.models.pendulum(length=2.0, mass=3.0)
    >>> print(da.dynamics.kinetic_energy(model, [0.4], [0.5]))  # m l^2 v^2 / 2
    1.5
    """
    velocities = body_velocities(tree, q, v, time=time)
    energy: Scalar = 0.0
    for body in tree.bodies:
        rotors = zip(body.armature, body.own_v(v), strict=True)
        energy = energy + body.inertia.kinetic_energy(velocities[body])
        energy = total((0.5 * m * x * x for m, x in rotors), energy)
    return energy


@public("dynamics", "q", method="tree", differentiable=True)
def potential_energy(tree: Tree, q: Scalars, *, time: Time = None) -> Scalar:
    """Compute the potential energy V = -sum m_i g . c_i `(…)` [J].

    c_i [m]: centres of mass in world coordinates; g [m/s^2]: the model's gravity. V is zero with all centres
    of mass at the world's origin.

    >>> model = da.models.pendulum(length=2.0, mass=3.0)
    >>> print(round(float(da.dynamics.potential_energy(model, [0.0])), 6))  # -m g l, hanging
    -58.86
    """
    poses = forward_kinematics(tree, q, time=time)
    moments = (poses[body].R @ body.inertia.h + poses[body].p * body.inertia.mass for body in tree.bodies)
    return sum_all(-tree.gravity.dot(moment) for moment in moments)


def momentum(tree: Tree, q: Scalars, v: Scalars, *, time: Time = None) -> Force:
    """Return the momentum (angular about the origin, linear) in world coordinates (Eq. 2.60)."""
    motions = body_motions(tree, q, v, time=time)
    at_origin = (motions[b].pose.inverse_apply(b.inertia * motions[b].velocity) for b in tree.bodies)
    found: Force = total(at_origin, Force.zero())
    return found


def _mass(tree: Tree) -> Scalar:
    """Return the mass of all bodies, as a divisor."""
    mass = total_mass(tree)
    if is_zero(mass):
        raise ModelError(
            "the bodies have no mass, and so no centre of mass; give them some, or use the model before "
            "simplify_inertias"
        )
    return mass


@public("dynamics", "q", method="tree", differentiable=True)
def center_of_mass(tree: Tree, q: Scalars, *, time: Time = None) -> Vec3:
    """Compute the system's centre of mass c = sum m_i c_i / sum m_i `(…, 3)` [m] in world coordinates.

    >>> model = da.models.two_link_arm()
    >>> print(da.dynamics.center_of_mass(model, [0.0, 0.0]))  # two equal links of 1 m along x
    [1. 0. 0.]
    """
    poses = forward_kinematics(tree, q, time=time)
    moment = Vec3.zero()
    for body in tree.bodies:
        moment = moment + poses[body].R @ body.inertia.h + poses[body].p * body.inertia.mass
    c: Vec3 = moment * (1.0 / _mass(tree))
    return c


def center_of_mass_velocity(tree: Tree, q: Scalars, v: Scalars, *, time: Time = None) -> Vec3:
    """Return dc/dt = linear momentum over mass [m/s], in world coordinates."""
    velocity: Vec3 = momentum(tree, q, v, time=time).linear * (1.0 / _mass(tree))
    return velocity


def center_of_mass_acceleration(tree: Tree, q: Scalars, v: Scalars, a: Scalars, *, time: Time = None) -> Vec3:
    """Return d^2c/dt^2 [m/s^2], in world coordinates, of a motion with dv/dt = a."""
    acceleration: Vec3 = _momentum_rate(tree, q, v, a, time).linear * (1.0 / _mass(tree))
    return acceleration


@public("dynamics", "q v", method="tree", differentiable=True)
def centroidal_momentum(tree: Tree, q: Scalars, v: Scalars, *, time: Time = None) -> Force:
    """Compute the momentum h = sum I_i v_i `(…, 6)` about the centre of mass, in world axes.

    The angular part [kg m^2/s] comes first, then the linear part [kg m/s]. h_C = h_O - c x (linear part), and
    the linear part is m dc/dt; Featherstone 2008 Eqs 2.58 to 2.60.

    >>> model = da.models.two_link_arm()
    >>> h = da.dynamics.centroidal_momentum(model, [0.0, 0.0], [1.0, 0.0])  # 2 kg of 2 m: m l^2 / 12
    >>> print(h.round(4) + 0.0)
    [ 0.     -0.6667  0.      0.      0.      2.    ]
    """
    return _at_point(momentum(tree, q, v, time=time), center_of_mass(tree, q, time=time))


def centroidal_momentum_rate(
    tree: Tree, q: Scalars, v: Scalars, a: Scalars | None = None, *, time: Time = None
) -> Force:
    """Return the rate A_G a + A_G' v of the centroidal momentum, that about the origin moved to c."""
    return _at_point(_momentum_rate(tree, q, v, a, time), center_of_mass(tree, q, time=time))


@public("dynamics", "q", method="tree", differentiable=True)
def centroidal_momentum_matrix(tree: Tree, q: Scalars, *, time: Time = None) -> Matrix:
    """Compute the matrix A(q) `(…, 6, nv)` of the centroidal momentum h = A v.

    A = sum X_i^T I_i J_i over the bodies, about the centre of mass, in world axes.

    >>> model = da.models.two_link_arm()
    >>> A = da.dynamics.centroidal_momentum_matrix(model, [0.0, 0.0])
    >>> print((A @ [1.0, 0.0]).round(4) + 0.0)
    [ 0.     -0.6667  0.      0.      0.      2.    ]
    """
    poses = forward_kinematics(tree, q, time=time)
    composite = composites(tree, lambda body: poses[body].inverse_apply(body.inertia))
    c = center_of_mass(tree, q, time=time)
    columns = []
    for body in tree.bodies:
        S = [poses[body].inverse_apply(s) for s in body.jcalc(q, None, time).S]
        columns.append([_at_point(composite[body.index] * s, c) for s in S])  # (1), (2)
    return _matrix(tree, columns)


def centroidal_momentum_rate_matrix(tree: Tree, q: Scalars, v: Scalars, *, time: Time = None) -> Matrix:
    """Return dA_G/dt `(6, nv)`; Eqs (3), (4)."""
    motions = body_motions(tree, q, v, time=time)
    to_world = {body.index: motions[body].pose.inverse_apply for body in tree.bodies}
    velocity = {body.index: to_world[body.index](motions[body].velocity) for body in tree.bodies}
    I = composites(tree, lambda body: to_world[body.index](body.inertia))
    I_dot = composites(
        tree, lambda body: inertia_rate(to_world[body.index](body.inertia), velocity[body.index])
    )
    c = center_of_mass(tree, q, time=time)
    c_dot = center_of_mass_velocity(tree, q, v, time=time)
    columns: list[list[Force]] = [[] for _ in tree.bodies]
    for i, body in enumerate(tree.bodies):
        for s, ring in zip(body.jcalc(q, v, time).S, subspace_rate(body, q, v, time), strict=True):
            S = to_world[i](s)
            S_dot = velocity[i].cross(S) + to_world[i](ring)
            rate = _at_point(I_dot[i] * S + I[i] * S_dot, c)  # (3)
            columns[i].append(rate - Force(c_dot.cross((I[i] * S).linear), Vec3.zero()))  # (4)
    return _matrix(tree, columns)


def _momentum_rate(tree: Tree, q: Scalars, v: Scalars, a: Scalars | None, time: Time) -> Force:
    """Return sum of I a + v x* I v at the world's origin, the net force with gravity (Eq. 2.68)."""
    rate = Force.zero()
    for body, (pose, v_i, a_i) in zip(tree.bodies, body_motions(tree, q, v, a, time=time), strict=True):
        rate = rate + pose.inverse_apply(body.inertia * a_i + v_i.cross(body.inertia * v_i))
    return rate


def composites(tree: Tree, own: Callable[[Body], RigidInertia]) -> PerBody[RigidInertia]:
    """Return the sum of `own`, in world coordinates, over each body and all that it carries."""

    def step(body: Body, children: RigidInertia) -> tuple[RigidInertia, RigidInertia]:
        total = own(body) + children
        return total, total

    return tree.inward(step, RigidInertia.zero())[0]


def _at_point(h: Force, c: Vec3) -> Force:
    """Return a force or momentum given at the origin with its moment about the point c (Eq. 2.6)."""
    return Force(h.angular - c.cross(h.linear), h.linear)


def _matrix(tree: Tree, columns: Sequence[Sequence[Force]]) -> Matrix:
    """Return six rows, each collected over the joints like a generalised force."""
    return [tree.collect([[column.to_list()[k] for column in own] for own in columns]) for k in range(6)]
