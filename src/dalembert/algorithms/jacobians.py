"""Jacobians of bodies, frames and points, and their rates (Featherstone 2008 Examples 2.3 and 2.5).

Column j of a body's Jacobian is the joint direction S_j, for every joint on the way to the body; v = J
v_joints. It is expressed at one of three places:

    "body"           the frame's own origin and axes
    "world"          the world's origin and axes
    "world_aligned"  the frame's origin, the world's axes

With F the place's own motion (zero for "world", the frame's velocity for "body", its origin's velocity for
"world_aligned"), the rate of the components of a column is

    d/dt (F_X_0 S) = F_X_0 S' - v_F x F_X_0 S,      S' = v_i x S + S-ring     (in the world)
    (1)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dalembert.algorithms.declaration import JACOBIAN, public
from dalembert.algorithms.dense import Matrix
from dalembert.algorithms.kinematics import body_motions, placed_motion, relative_motion
from dalembert.algorithms.open_tree import velocity_places
from dalembert.algorithms.sparse import ancestors
from dalembert.errors import require_choice
from dalembert.model.body import Body, Frame
from dalembert.model.joints.dual import directional_derivative
from dalembert.model.model import Model
from dalembert.model.tree import PerBody, Tree
from dalembert.scalar import Scalar, Scalars, Time
from dalembert.spatial import Mat3, Motion, Transform, Vec3

FRAMES = ("body", "world", "world_aligned")
"""The frames in which a Jacobian may be expressed."""


Place = str | Body | Frame
"""A body or frame, or the name of one."""


def frame_of(model: Model, where: Place) -> Frame:
    """Return a named frame, or the frame of a body."""
    if isinstance(where, Frame):
        return where
    if isinstance(where, Body):
        return Frame(where.name, where.index, Transform.identity())
    return model.frame(where)


@public("kinematics", "q", method="tree", options=JACOBIAN, differentiable=True)
def jacobian(
    model: Model, q: Scalars, where: Place, *, frame: str = "world_aligned", time: Time = None
) -> Matrix:
    """Compute the Jacobian J(q) `(…, 6, nv)` of a body or frame: (omega, velocity) = J v, angular first.

    Columns of the joints that support the body are their S in the chosen frame; the others are zero. `frame`:
    "body" at the frame's origin in its axes; "world" at the world's origin in world axes; "world_aligned" at
    the frame's origin in world axes. Featherstone 2008 Eqs 4.4 to 4.6.

    >>> model = da.models.two_link_arm()
    >>> J = da.jacobian(model, [0.0, 0.0], "tip")
    >>> print(J[3:].round(6) + 0.0)  # stretched out along x, both joints lift the tip
    [[0. 0.]
     [0. 0.]
     [2. 1.]]
    """
    path = _path(model, frame_of(model, where), q, None, time)
    X_F, _ = _place(path, frame)
    return _columns(model, [(body, [X_F.apply(s) for s in S]) for body, S, _ in path.links])


def point_jacobian(
    model: Model, q: Scalars, body: str | Body, point: Scalars, *, time: Time = None
) -> Matrix:
    """Return the Jacobian `(3, nv)` of a body point for its velocity in world axes; Liu & Jain Eq. 57."""
    where = frame_of(model, body)
    at_point = Frame(
        "point", where.body, where.placement.as_transform() @ Transform(Mat3.identity(), Vec3.of(point))
    )
    return jacobian(model, q, at_point, time=time)[3:]


def all_jacobians(model: Model, q: Scalars, *, frame: str = "body", time: Time = None) -> PerBody[Matrix]:
    """Return the Jacobian of every body."""
    return PerBody([jacobian(model, q, body, frame=frame, time=time) for body in model.bodies])


@public("kinematics", "q v", method="tree", options=JACOBIAN, differentiable=True)
def jacobian_rate(
    model: Model, q: Scalars, v: Scalars, where: Place, *, frame: str = "world_aligned", time: Time = None
) -> Matrix:
    """Compute dJ/dt `(…, 6, nv)` along the motion v, in the frame of `jacobian`.

    The acceleration is J a + dJ/dt v. The columns are dS_i/dt = v_i x S_i + ring S_i. Featherstone 2008 Eqs
    2.57 and 4.5.

    >>> model = da.models.two_link_arm()
    >>> rate = da.kinematics.jacobian_rate(model, [0.0, 0.0], [2.0, 0.0], "tip")
    >>> print((rate @ [2.0, 0.0])[3:].round(6) + 0.0)  # centripetal, 2 m from the axis
    [-8.  0.  0.]
    """
    path = _path(model, frame_of(model, where), q, v, time)
    X_F, v_F = _place(path, frame)
    rates = [
        (body, [X_F.apply(s_dot) - v_F.cross(X_F.apply(s)) for s, s_dot in zip(S, S_dot)])  # (1)
        for body, S, S_dot in path.links
    ]
    return _columns(model, rates)


def jacobian_rate_times_velocity(
    model: Model, q: Scalars, v: Scalars, where: Place, *, frame: str = "world_aligned", time: Time = None
) -> list[Scalar]:
    """Return J' v `(6,)`: the acceleration of the body or frame when dv/dt = 0; d/dt (J v) = J dv/dt + J' v.

    Spatial acceleration for "body" and "world", classical acceleration for "world_aligned": the rates of
    what J v is.
    """
    require_choice("frame of a Jacobian", frame, FRAMES)
    where = frame_of(model, where)
    if where.body < 0:
        return [0.0] * 6
    motion = relative_motion(body_motions(model, q, v, time=time)[where.body], where.placement.as_transform())
    if frame == "body":
        return motion.acceleration.to_list()
    if frame == "world":
        return motion.pose.inverse_apply(motion.acceleration).to_list()
    return placed_motion(motion)[1].to_list()


def subspace_rate(body: Body, q: Scalars, v: Scalars, time: Time = None) -> tuple[Motion, ...]:
    """Return S-ring, the rates of S's components in body coordinates (Eq. 3.42), by dual numbers."""
    joint, own_q = body.joint, body.own_q(q)
    rate = joint.position_rate(own_q, body.own_v(v))
    if time is None:
        return directional_derivative(lambda x: joint.subspace(x), own_q, rate)[1]
    return directional_derivative(lambda x: joint.subspace(x[:-1], x[-1]), [*own_q, time], [*rate, 1.0])[1]


class _Path(NamedTuple):
    """The joints from the world to a frame, each with its columns S and, if requested, their rates, in the
    world; the frame's pose and velocity (in its own coordinates)."""

    links: list[tuple[Body, list[Motion], list[Motion]]]
    pose: Transform
    velocity: Motion


def _path(model: Tree, where: Frame, q: Scalars, v: Scalars | None, time: Time) -> _Path:
    chain = [] if where.body < 0 else [where.body, *ancestors(model.parents, where.body)]
    pose, velocity = Transform.identity(), Motion.zero()
    links = []
    for body in (model.bodies[i] for i in reversed(chain)):
        X, S, v_J, _ = body.jcalc(q, v, time)
        pose, velocity = pose @ X, X.apply(velocity) + v_J
        rings = () if v is None else subspace_rate(body, q, v, time)
        S_dot = [pose.inverse_apply(velocity.cross(s) + ring) for s, ring in zip(S, rings)]
        links.append((body, [pose.inverse_apply(s) for s in S], S_dot))
    place = where.placement.as_transform()
    return _Path(links, pose @ place, place.apply(velocity))


def _place(path: _Path, frame: str) -> tuple[Transform, Motion]:
    """Return the place F in the world, and its velocity v_F in the coordinates of F."""
    require_choice("frame of a Jacobian", frame, FRAMES)
    if frame == "body":
        return path.pose, path.velocity
    if frame == "world":
        return Transform.identity(), Motion.zero()
    velocity = Motion(Vec3.zero(), path.pose.R @ path.velocity.linear)
    return Transform(Mat3.identity(), path.pose.p), velocity


def _columns(model: Tree, columns: Sequence[tuple[Body, Sequence[Motion]]]) -> Matrix:
    """Return the columns at each joint's place in v; of a dependent joint at those that it follows."""
    J: Matrix = [[0.0] * model.nv for _ in range(6)]
    for body, motions in columns:
        for places, motion in zip(velocity_places(body), motions, strict=True):
            for place, ratio in places:
                for row, x in zip(J, motion.to_list()):
                    row[place] = row[place] + (x if ratio == 1.0 else ratio * x)
    return J
