"""External forces: the arguments of a caller as one spatial force for each body, in body coordinates.

A caller gives, for every body, (moment, force) as six scalars: in body coordinates at the body's origin
("body"), in world coordinates at the world's origin ("world", the form of Featherstone 2008 Table 5.1), or
along the world's axes at the body's centre of mass ("center"). Where a tree uses other body frames than the
model, as `aligned` makes them, the forces are still given in the model's frames.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypedDict

import numpy as np

from dalembert.algorithms.aligned import AlignedBody
from dalembert.algorithms.declaration import NO_LOADS, public
from dalembert.algorithms.fluid import fluid_forces
from dalembert.algorithms.kinematics import forward_kinematics
from dalembert.algorithms.springs import spring_forces, stretch_energy
from dalembert.errors import ArgumentError, ShapeError, require_choice
from dalembert.model.body import Body
from dalembert.model.tree import PerBody, Tree
from dalembert.scalar import Scalar, Scalars, Time, absolute, is_zero, select, sqrt
from dalembert.scalar.row_sets import sum_all
from dalembert.spatial import Force, Transform, Vec3

# Constraint stabilisation against drift: the right side of K a = k with feedback of errors.
#
# An ODE solver integrates K a = k twice, and its errors add up. Baumgarte's term lets them fade (Featherstone
# 2008 section 8.3):
#
#     K a = k - 2/T e_v - 1/T^2 e_p,     e_v = K v, e_p = phi or delta                         (Eq. 8.22)
#
# A semi-implicit step, v' = v + dt a and then q' = q + dt v', can take errors of velocity away at once, and
# those of position in a few steps:
#
#     K a = k - (e_v + e_p / T) / dt                                                           (1)
#     =>  e_v(q', v') = -e_p / T,     e_p(q') = (1 - dt/T) e_p + dt^2/2 k                      to order dt^2
#
# so that e_p stays at dt T k / 2. From a state that keeps the constraints (1) is K a = k.


class Leap(NamedTuple):
    """A semi-implicit step of dt [s], in which errors of position fade in T [s], at least dt; see (1)."""

    dt: Scalar
    T: Scalar


Stabilization = Scalar | Leap | None
"""T_stab [s] of Eq. 8.22; a step as in (1); or None: K a = k."""


def stabilized_row(k: Scalar, e_v: Scalar, e_p: Scalar, stabilization: Stabilization) -> Scalar:
    """Return the right side of one row of K a = …, from its k and its errors of velocity and position."""
    if stabilization is None:
        return k
    if isinstance(stabilization, Leap):
        return k - (e_v + e_p / stabilization.T) / stabilization.dt  # (1)
    rate = 1.0 / stabilization
    return k - 2.0 * rate * e_v - rate * rate * e_p


ExternalForces = Sequence[Any] | None
"""One entry a body: a `Force` or six scalars, moment first; None: no external forces."""

FORCE_FRAMES: Final = ("body", "world", "center")
"""The values of `external_frame`, of which the first is the default."""


class Loads(TypedDict, total=False):
    """The keywords of every function of dynamics: the forces from outside and the time at which they act.

    `external_forces`: (moment, force) on each body `(number of bodies, 6)` [N m, N]; left out: none.
    `external_frame`: "body", the default: in body coordinates at the body's origin; "world": in world
    coordinates at the world's origin; "center": along the world's axes at the body's centre of mass. `time`
    [s]: read by models that depend on it.
    """

    external_forces: ExternalForces
    external_frame: str
    time: Time


class Conditions(Loads, total=False):
    """The conditions of a motion: `Loads`, and how constraints are held against drift.

    `stabilization`: T_stab [s] of Featherstone 2008 Eq. 8.22, or a `Leap`; left out, errors drift.
    """

    stabilization: Stabilization


def body_forces(
    tree: Tree,
    q: Scalars,
    external_forces: ExternalForces = None,
    external_frame: str = "body",
    time: Time = None,
) -> PerBody[Force] | None:
    """Return the external force on each body, in the coordinates of the tree's bodies:
    i_X_0* f_i^x (Eq. 5.20)."""
    require_choice("external_frame", external_frame, FORCE_FRAMES)
    if external_forces is None:
        return None
    given = external_forces
    if isinstance(given, Sequence | np.ndarray) and len(given) != len(tree.bodies):
        raise ShapeError(
            f"external_forces has {len(given)} entries; give one (moment, force) for each of the "
            f"{len(tree.bodies)} bodies"
        )
    poses = None if external_frame == "body" else forward_kinematics(tree, q, time=time)

    def in_body(body: Body) -> Force:
        force = _as_force(given[body.index])
        if poses is None:
            return body.original_frame.inverse_apply(force) if isinstance(body, AlignedBody) else force
        if external_frame == "world":
            return poses[body].apply(
                body.world_frame.inverse_apply(force) if isinstance(body, AlignedBody) else force
            )
        n, f = force.angular, force.linear
        if isinstance(body, AlignedBody):
            n, f = body.world_frame.rotate_to_parent(n), body.world_frame.rotate_to_parent(f)
        n, f = poses[body].rotate_to_child(n), poses[body].rotate_to_child(f)
        return Force(n + body_center(body).cross(f), f)

    return tree.outward(lambda body, _: ((), in_body(body)), ())


def body_center(body: Body) -> Vec3:
    """Return the centre of mass in the coordinates of the tree's body; the origin of the model's body for one
    without mass.
    """
    center = body.inertia.com
    if not isinstance(body, AlignedBody):
        return center
    has_mass = absolute(body.inertia.mass) > 0.0
    return Vec3(*(select(has_mass, c, o) for c, o in zip(center, body.original_frame.p, strict=True)))


def force_at_point(pose: Transform, point: Vec3, force: Vec3) -> Force:
    """Return the spatial force, in body coordinates, of `force` acting at `point`, both in world coordinates.

    `pose`: the body placed in the world. f_O = (OP x f, f) (Featherstone 2008 Eq. 2.6).
    """
    arm = pose.R.transposed_times(point - pose.p)
    push = pose.R.transposed_times(force)
    return Force(arm.cross(push), push)


def _as_force(given: Any) -> Force:
    if isinstance(given, Force):
        return given
    if len(given) != 6:
        raise ArgumentError(f"an external force has 6 numbers, moment first; got {len(given)}")
    return Force(Vec3(given[0], given[1], given[2]), Vec3(given[3], given[4], given[5]))


# Forces that joints exert by themselves: springs, dampers and dry friction, as contributions to tau.
#
# None of them is part of `inverse_dynamics`, `forward_dynamics` or `mass_matrix`: a simulation adds them to
# tau. Per velocity variable of a joint with the displacement x from its rest position, its rate v and the
# constants of the model,
#
#     tau = - stiffness x - damping v - friction v / sqrt(v^2 + s^2)                                  (1)
#
# x is the joint's `difference(rest, q)`: q - rest for angles and lengths, the rotation vector for a ball
# joint. The last term is dry friction with its jump at rest smoothed over speeds of about s, so that it has a
# derivative everywhere; the smoothed law lets a loaded joint creep instead of sticking.

FRICTION_SPEED = 1e-3
"""s of Eq. (1) [rad/s or m/s]: at this speed friction has 71 % of its full size."""


@public("dynamics", "q v", method="joints", differentiable=True, without=NO_LOADS)
def passive_forces(tree: Tree, q: Scalars, v: Scalars, *, time: Time = None) -> list[Scalar]:
    """Compute tau_p = -k (q - q_rest) - d v - f sign(v) - sum J^T T `(…, nv)` [N m or N].

    These are the spring, damping and dry-friction forces of the joints, and those of the springs between
    points of bodies, with the tension T along a path of the length l and J = dl/dq, and those of a fluid
    (`da.dynamics.fluid_forces`). They are not part of the equation of motion; `step` adds them to tau.

    >>> model = da.models.pendulum(damping=0.5)
    >>> print(da.passive_forces(model, q=[0.3], v=[2.0]))
    [-1.]
    """
    forces = tree.collect(
        tree.outward(lambda body, _: ((), _joint_forces(body, body.own_q(q), body.own_v(v))), ())
    )
    if tree.springs:
        forces = [a + b for a, b in zip(forces, spring_forces(tree, q, v, time=time), strict=True)]
    if tree.fluid is not None:
        forces = [a + b for a, b in zip(forces, fluid_forces(tree, q, v, time=time), strict=True)]
    return forces


def spring_energy(tree: Tree, q: Scalars, *, time: Time = None) -> Scalar:
    """Return the energy stored in the springs of joints and between points, sum of stiffness x^2 / 2 [J]."""
    return stretch_energy(tree, q, time=time) + sum_all(
        0.5 * k * x * x
        for body in tree.bodies
        for k, x in zip(body.stiffness, displacement(body, body.own_q(q)), strict=True)
    )


def _joint_forces(body: Body, q: Scalars, v: Scalars) -> list[Scalar]:
    """Compute Eq. (1) of one joint; terms whose constant is a structural zero are left out."""
    forces: list[Scalar] = []
    for k, x, d, f, rate in zip(
        body.stiffness, displacement(body, q), body.damping, body.friction, v, strict=True
    ):
        tau: Scalar = -(d * rate)
        if not is_zero(k):
            tau = tau - k * x
        if not is_zero(f):
            tau = tau - f * rate / sqrt(rate * rate + FRICTION_SPEED * FRICTION_SPEED)
        forces.append(tau)
    return forces


def displacement(body: Body, q: Scalars) -> list[Scalar]:
    """Return x from the rest position to q; zeros without a spring."""
    if all(is_zero(k) for k in body.stiffness):
        return [0.0] * body.nv
    return body.joint.difference(body.rest, q)
