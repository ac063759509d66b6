"""Active forces at loop joints: springs, dampers and motors that are not part of the tree.

    f_k^a = T_k^a tau_k          in the successor frame of loop joint k                 (section 8.4)
    tau^a = sum over loops of J_L^T f_k^a                                               (8.28)

Seen from the tree they are external forces, +f_k^a on the successor and -f_k^a on the predecessor, so that
every function that takes external forces takes them. Table 8.3 subtracts them inside the recursive
Newton-Euler algorithm; its last line must read f_lambda(i) = f_lambda(i) + ..., and a body that is the world
takes no force. Where every loop joint is passive nothing is computed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dalembert.algorithms.constraints import loop_rows
from dalembert.algorithms.kinematics import body_motions, forward_kinematics
from dalembert.errors import ShapeError, require_choice
from dalembert.model.body import Loop
from dalembert.model.tree import PerBody, Tree
from dalembert.scalar import Scalar, Scalars, Time
from dalembert.spatial import Force, Motion, Transform, Vec3

LoopTorques = Mapping[str, Scalars]
"""tau_k (nv of the loop joint) [N m or N] of loop joints by name; those not named are passive."""


class LoopState(NamedTuple):
    """The q (nq) and v (nv) of a loop joint, as if it were a tree joint."""

    q: list[Scalar]
    v: list[Scalar]


class BiasWithLoopForces(NamedTuple):
    """C' = C - tau^a (nv), and a_i^vp of every body in its own coordinates, gravity left out."""

    bias: list[Scalar]
    accelerations: PerBody[Motion]


def loop_state(tree: Tree, loop: Loop, q: Scalars, v: Scalars, *, time: Time = None) -> LoopState:
    """Return the loop joint's own position and velocity:
    q_J at the placement X, v_J = T_a^T (v_s - v_p - sigma)."""
    joint = loop.joint
    rows = loop_rows(tree, loop, q, v, time=time)
    own = joint.position_of(rows.X, time)
    relative = rows.velocity
    if joint.time_dependent:
        relative = relative - joint.velocity(own, [0.0] * joint.nv, time)
    return LoopState(own, [relative.dot(force) for force in joint.active_subspace(own, time)])


def loop_active_forces(tree: Tree, q: Scalars, tau: LoopTorques, *, time: Time = None) -> list[Force]:
    """Return the external force on each body, in body coordinates, that active loop joints exert (Eq. 8.28).

    Of a model, hand it to any function as `external_forces`. `tau`: by the loop joint's name, nv numbers.
    """
    forces: list[Force] = [Force.zero() for _ in tree.bodies]
    active = _active(tree, tau)
    if not active:
        return forces
    poses = forward_kinematics(tree, q, time=time)
    for loop, torques in active:
        X_p, X_s = _pose(poses, loop.predecessor), _pose(poses, loop.successor)
        X = (X_p @ loop.placement_predecessor).inverse() @ X_s @ loop.placement_successor
        T_a = loop.joint.active_subspace(loop.joint.position_of(X, time), time)
        f = Force.zero()
        for column, torque in zip(T_a, torques, strict=True):
            f = f + column * torque
        at_s = loop.placement_successor.inverse_apply(f)
        if loop.successor >= 0:
            forces[loop.successor] = forces[loop.successor] + at_s
        if loop.predecessor >= 0:
            at_p = X_p.apply(X_s.inverse_apply(at_s))
            forces[loop.predecessor] = forces[loop.predecessor] - at_p
    return forces


def loop_active_torques(tree: Tree, q: Scalars, tau: LoopTorques, *, time: Time = None) -> list[Scalar]:
    """Return tau^a = sum of J_L^T f_k^a (nv) [N m or N] (Eq. 8.28)."""
    return _joint_forces(tree, q, loop_active_forces(tree, q, tau, time=time), time)


def bias_with_loop_forces(
    tree: Tree, q: Scalars, v: Scalars, tau: LoopTorques, *, time: Time = None
) -> BiasWithLoopForces:
    """Return C - tau^a and a_i^vp: the recursive Newton-Euler algorithm of Tables 8.2 and 8.3."""
    motions = body_motions(tree, q, v, time=time)
    active = loop_active_forces(tree, q, tau, time=time)
    a_0 = Motion(Vec3.zero(), -tree.gravity)
    forces = []
    for body, (pose, v_i, a_i), f_a in zip(tree.bodies, motions, active, strict=True):
        f_B = body.inertia * (a_i + pose.apply(a_0)) + v_i.cross(body.inertia * v_i)
        forces.append(f_B - f_a)
    accelerations = PerBody([motion.acceleration for motion in motions])
    return BiasWithLoopForces(_joint_forces(tree, q, forces, time), accelerations)


def _joint_forces(tree: Tree, q: Scalars, forces: Sequence[Force], time: Time) -> list[Scalar]:
    """Return S_i^T f_i, with f_i the sum of forces over the bodies that joint i carries."""
    return tree.project_forces(
        tree.outward(lambda body, _: ((), (body.jcalc(q, None, time), forces[body.index])), ())
    )


def _active(tree: Tree, tau: LoopTorques) -> list[tuple[Loop, Scalars]]:
    """Return the loop joints that are not passive, with their forces."""
    known = {loop.name: loop for loop in tree.loops}
    found = []
    for name, torques in tau.items():
        require_choice("loop joint", name, known)
        if len(torques) != known[name].joint.nv:
            raise ShapeError(
                f'loop joint "{name}" has {known[name].joint.nv} freedoms, {len(torques)} forces were given'
            )
        if len(torques) > 0:
            found.append((known[name], torques))
    return found


def _pose(poses: PerBody[Transform], body: int) -> Transform:
    return Transform.identity() if body < 0 else poses[body]
