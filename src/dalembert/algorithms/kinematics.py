"""Positions, velocities and accelerations of the bodies.

Featherstone 2008 sections 2.11 and 4.1; Liu & Jain section 5.2.

Legend: X_0i pose of body i in the world; v_i, a_i spatial velocity and acceleration of body i in its own
coordinates; v_J, c_J what the joint adds. A spatial acceleration is (alpha, r'' - omega x r') at the
origin; the classical one of a point is its second derivative (Eq. 2.48).
"""

from __future__ import annotations

from typing import NamedTuple

from dalembert.algorithms.declaration import FRAME_NAME, NO_LOADS, public
from dalembert.algorithms.dense import total
from dalembert.errors import ModelError
from dalembert.model.body import Body
from dalembert.model.joints.subspaces import combination
from dalembert.model.model import Model
from dalembert.model.tree import PerBody, Tree
from dalembert.scalar import Scalar, Scalars, Time, is_zero, literal
from dalembert.spatial import Mat3, Motion, Transform, Vec3


class BodyMotion(NamedTuple):
    """Pose in the world, spatial velocity and spatial acceleration in body coordinates."""

    pose: Transform
    velocity: Motion
    acceleration: Motion


class PointMotion(NamedTuple):
    """Position, velocity and classical acceleration of a body-fixed point, in world coordinates."""

    position: Vec3
    velocity: Vec3
    acceleration: Vec3


def forward_kinematics(tree: Tree, q: Scalars, *, time: Time = None) -> PerBody[Transform]:
    """Return the pose X_0i = X_0lambda X_lambda,i of each body; R maps body to world coordinates."""

    def step(body: Body, X_0: Transform) -> tuple[Transform, Transform]:
        X_0i = X_0 @ body.jcalc(q, None, time).X
        return X_0i, X_0i

    return tree.outward(step, Transform.identity())


def squared_turning_rate(tree: Tree, q: Scalars, v: Scalars) -> Scalar:
    """Return the sum of squares of the velocity variables that turn something [rad^2/s^2]."""
    return total(
        rate * rate
        for body in tree.bodies
        for s, rate in zip(body.jcalc(q, None, None).S, body.own_v(v), strict=True)
        if not all(is_zero(x) for x in s.angular)
    )


def body_velocities(tree: Tree, q: Scalars, v: Scalars, *, time: Time = None) -> PerBody[Motion]:
    """Return v_i = i_X_lambda v_lambda + v_J in body coordinates, angular first (Eq. 5.14)."""

    def step(body: Body, v_parent: Motion) -> tuple[Motion, Motion]:
        joint = body.jcalc(q, v, time)
        v_i = joint.X.apply(v_parent) + joint.v_J
        return v_i, v_i

    return tree.outward(step, Motion.zero())


def body_motions(
    tree: Tree, q: Scalars, v: Scalars, a: Scalars | None = None, *, time: Time = None
) -> PerBody[BodyMotion]:
    """Return pose, spatial velocity and acceleration of every body; without `a`, dv/dt = 0 leaves J' v.

    v_i = i_X_lambda v_lambda + v_J;  a_i = i_X_lambda a_lambda + S dv/dt + c_J + v_i x v_J (Eqs 5.14, 5.15).
    The accelerations are true ones, without the fictitious acceleration of the base that stands for gravity.
    """

    def step(body: Body, parent: BodyMotion) -> tuple[BodyMotion, BodyMotion]:
        X, S, v_J, c_J = body.jcalc(q, v, time)
        v_i = X.apply(parent.velocity) + v_J
        a_i = X.apply(parent.acceleration) + c_J + v_i.cross(v_J)
        if a is not None:
            a_i = a_i + combination(S, body.own_v(a))
        own = BodyMotion(parent.pose @ X, v_i, a_i)
        return own, own

    return tree.outward(step, BodyMotion(Transform.identity(), Motion.zero(), Motion.zero()))


def body_accelerations(
    tree: Tree, q: Scalars, v: Scalars, a: Scalars, *, time: Time = None
) -> PerBody[Motion]:
    """Return a_i, the spatial accelerations in body coordinates."""
    motions = body_motions(tree, q, v, a, time=time)
    return PerBody([motion.acceleration for motion in motions])


def relative_motion(motion: BodyMotion, X: Transform) -> BodyMotion:
    """Return the motion of a frame fixed in a body and placed in it by X, in that frame's coordinates."""
    return BodyMotion(motion.pose @ X, X.apply(motion.velocity), X.apply(motion.acceleration))


def point_motion(motion: BodyMotion, point: Vec3) -> PointMotion:
    """Return position, velocity and classical acceleration in the world of a point given in body coordinates.

    r' = v_O + omega x r;  r'' = a_O + alpha x r + omega x r' (Eqs 2.1 and 2.48), then rotated to world axes.
    """
    R = motion.pose.R
    omega, alpha = motion.velocity.angular, motion.acceleration.angular
    velocity = motion.velocity.linear + omega.cross(point)
    acceleration = motion.acceleration.linear + alpha.cross(point) + omega.cross(velocity)
    return PointMotion(motion.pose.transform_point(point), R @ velocity, R @ acceleration)


@public("kinematics", "q", name="forward_kinematics", method="tree", returns="Poses", differentiable=True)
def body_poses(tree: Tree, q: Scalars, *, time: Scalar | None = None) -> tuple[list[Mat3], list[Vec3]]:
    """Compute the poses of all bodies in the world: X_i = X_parent(i) X_T X_J(q_i), from the root outward.

    `poses.rotation (…, n_bodies, 3, 3)` has the body axes as columns; `poses.translation (…, n_bodies, 3)`
    are the origins [m]; `poses["hand"]` is the pose of a body or frame by name. Featherstone 2008 Examples
    4.3 and 4.4.

    >>> model = da.models.two_link_arm()
    >>> poses = da.forward_kinematics(model, [np.pi / 2, 0.0])  # straight up
    >>> print(poses["tip"].translation.round(6) + 0.0)
    [0. 0. 2.]
    >>> print(poses.translation.round(6) + 0.0)
    [[0. 0. 0.]
     [0. 0. 1.]]
    """
    poses = list(forward_kinematics(tree, q, time=time))
    return [pose.R for pose in poses], [pose.p for pose in poses]


@public(
    "kinematics",
    "q v a",
    name="point_motion",
    method="tree",
    without=NO_LOADS,
    options={"frame_name": FRAME_NAME},
    returns="tuple[Array, Array, Array]",
    differentiable=True,
)
def frame_origin_motion(
    model: Model, q: Scalars, v: Scalars, a: Scalars, *, where: str, time: Scalar | None = None
) -> tuple[Vec3, Vec3, Vec3]:
    """Compute position p, velocity dp/dt and acceleration d²p/dt² of a frame's origin, `(…, 3)` each.

    All are in world axes [m, m/s, m/s^2]. The acceleration is the classical one, d²p/dt² = a_O + omega x v_O
    of the spatial acceleration (Featherstone 2008 Eq. 2.49). `a`: dv/dt.

    >>> model = da.models.pendulum(length=2.0)
    >>> p, velocity, acceleration = da.kinematics.point_motion(model, [0.0], [3.0], [0.0], "tip")
    >>> print(velocity + 0.0, acceleration + 0.0)  # at the bottom: 6 m/s, and v^2 / l = 18 m/s^2 upward
    [-6.  0.  0.] [ 0.  0. 18.]
    """
    place = model.frame(where)
    if place.body < 0:
        return place.placement.p, Vec3.zero(), Vec3.zero()
    return point_motion(body_motions(model, q, v, a, time=time)[place.body], place.placement.p)


def placed_motion(motion: BodyMotion) -> tuple[Motion, Motion]:
    """Return (velocity, classical acceleration) of a body or frame at its origin, along world axes."""
    R = motion.pose.R
    origin = point_motion(motion, Vec3.zero())
    return (
        Motion(R @ motion.velocity.angular, origin.velocity),
        Motion(R @ motion.acceleration.angular, origin.acceleration),
    )


# The precondition of algorithms that compute with centres of mass.


def require_centers_of_mass(tree: Tree, function: str) -> None:
    """Refuse a body without mass but with moments (`simplify_inertias`): it has no centre of mass."""
    for body in tree.bodies:
        mass, *moments = (literal(x) for x in body.inertia.leaves())
        if mass == 0.0 and any(x is not None and x != 0.0 for x in moments):
            raise ModelError(
                f'{function}: body "{body.name}" has no mass but other inertia, so that it has no centre of '
                "mass, with which this algorithm computes; use another method where there is one, or the "
                "model before simplify_inertias"
            )
