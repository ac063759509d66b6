"""Forward dynamics by assembling articulated bodies through their inverse inertias (§7.4 variant 1, §7.5).

    1  each body alone:     a = Phi f + b,   Phi = I^-1,   b = -Phi p
    2  assembly:            `connect` part after part, as a plan says, until no handle is left
    3  disassembly:         `disconnect` in reverse order; the joint forces act on the parts' handles
    4  each joint:          q̈ = T_a^T (a_i - X a_lambda - c),   a_i = Phi f_i + b

In pairs that is the divide-and-conquer algorithm: parts of one level do not depend on each other, so that
N bodies take O(log N) time on O(N) processors. One body at a time it is the articulated-body algorithm with
inverse inertias. The world is a body that no force accelerates, Phi = 0, b = -gravity. Loops need no other
treatment than a second joint in one step, for which Y may be singular.

Source: Featherstone 2008 sections 7.4 and 7.5; Featherstone 1999a,b.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Unpack

from dalembert.algorithms.assembly.handles import (
    ArticulatedBody,
    ConnectedJoints,
    HandleJoint,
    collect_parts,
    connect,
    disconnect,
    single_body,
)
from dalembert.algorithms.assembly.joint_forces import JointForces, joint_forces, require_invertible_inertias
from dalembert.algorithms.assembly.loop_joints import loop_handle_joint, velocity_product_accelerations
from dalembert.algorithms.assembly.planning import AssemblyPlan, plan_in_pairs, plan_one_by_one
from dalembert.algorithms.assembly.variants import relative_acceleration
from dalembert.algorithms.dense import dot, times
from dalembert.algorithms.external_forces import Conditions, ExternalForces
from dalembert.algorithms.kinematics import body_velocities, forward_kinematics
from dalembert.algorithms.open_tree import has_couplings
from dalembert.algorithms.stabilization import Stabilization
from dalembert.errors import ModelError
from dalembert.model.body import Body
from dalembert.model.topology import WORLD
from dalembert.model.tree import PerBody, Tree
from dalembert.scalar import Scalar
from dalembert.spatial import Force, Motion, Vec3

__all__ = [
    "divide_and_conquer",
    "forward_dynamics_by_inverse_inertias",
    "forward_dynamics_by_plan",
    "handle_equations",
]


def divide_and_conquer(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    tau: Sequence[Scalar],
    **options: Unpack[Conditions],
) -> list[Scalar]:
    """Solve M a + b = tau + external (and K a = k of loops) for a `(nv,)`, parts put together in pairs."""
    return forward_dynamics_by_plan(tree, q, v, tau, plan_in_pairs(tree), **options)


def forward_dynamics_by_inverse_inertias(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    tau: Sequence[Scalar],
    **options: Unpack[Conditions],
) -> list[Scalar]:
    """Solve for a `(nv,)` as `divide_and_conquer` does, one body at a time: variant 1 of Table 7.2."""
    return forward_dynamics_by_plan(tree, q, v, tau, plan_one_by_one(tree), **options)


def forward_dynamics_by_plan(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    tau: Sequence[Scalar],
    plan: AssemblyPlan,
    *,
    external_forces: ExternalForces = None,
    external_frame: str = "body",
    time: Scalar | None = None,
    stabilization: Stabilization = None,
) -> list[Scalar]:
    """Return a `(nv,)` by assembly in any order."""
    system = _system(tree, q, v, tau, external_forces, external_frame, time=time, stabilization=stabilization)
    parts, connected = _assemble(system, plan)
    forces = _joint_forces_on_bodies(system, plan, parts, connected)
    a = [
        body.acceleration(i, {i: force})
        for i, (body, force) in enumerate(zip(system.bodies, forces, strict=True))
    ]
    a_world = system.world.b[WORLD]

    def joint_acceleration(body: Body) -> list[Scalar]:
        X, _, _, T_a, _, c, _ = system.held[body]
        return relative_acceleration(
            X.apply(a[body.parent] if body.parent >= 0 else a_world), a[body.index], c, T_a
        )

    return tree.collect([joint_acceleration(body) for body in tree.bodies])


def handle_equations(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    tau: Sequence[Scalar],
    handles: Sequence[int],
    *,
    external_forces: ExternalForces = None,
    external_frame: str = "body",
    time: Scalar | None = None,
    stabilization: Stabilization = None,
) -> ArticulatedBody:
    """Return a_i = sum_j Phi_ij f_j + b_i of bodies (by index) as handles of the system, assembled in pairs.

    Spatial accelerations and forces in the coordinates of each body, as `projection.handle_inverse_inertia`
    and `handle_bias_acceleration` give them; here in O(N) operations, and for systems with loops too
    (Eqs 7.4 and 7.59).
    """
    plan = plan_in_pairs(tree, handles=handles)
    system = _system(tree, q, v, tau, external_forces, external_frame, time=time, stabilization=stabilization)
    parts, _ = _assemble(system, plan)
    used = {k for step in plan.steps for k in step.parts}
    whole = collect_parts(part for k, part in enumerate(parts) if k not in used)
    poses = forward_kinematics(tree, q, time=time)
    velocities = body_velocities(tree, q, v, time=time)

    def spatial(i: int, b: Motion) -> Motion:
        """Return the spatial acceleration for one seen by the co-moving observers, who fall freely."""
        fall = poses[i].R.transposed_times(tree.gravity)
        return Motion(b.angular, b.linear + fall - velocities[i].angular.cross(velocities[i].linear))

    return ArticulatedBody(whole.Phi, {i: spatial(i, b) for i, b in whole.b.items()})


class _System(NamedTuple):
    """The bodies and the world as parts of their own, and all joints, loop joints after tree joints."""

    held: PerBody[JointForces]
    bodies: list[ArticulatedBody]
    world: ArticulatedBody
    joints: list[HandleJoint]


def _system(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    tau: Sequence[Scalar],
    external_forces: ExternalForces,
    external_frame: str,
    *,
    time: Scalar | None,
    stabilization: Stabilization,
) -> _System:
    _require(tree)
    held = joint_forces(
        tree, q, v, tau, external_forces=external_forces, external_frame=external_frame, time=time
    )
    bodies = [_free_body(body, held[body].p) for body in tree.bodies]
    world = single_body(WORLD, None, Motion(Vec3.zero(), -tree.gravity))
    joints = [_handle_joint(body, held[body]) for body in tree.bodies]
    if tree.loops:
        products = velocity_product_accelerations(tree, held)
        joints += [
            loop_handle_joint(tree, loop, q, v, products, time=time, stabilization=stabilization)
            for loop in tree.loops
        ]
        joints = [_with_scale(joint, bodies) for joint in joints]
    return _System(held, bodies, world, joints)


def _assemble(system: _System, plan: AssemblyPlan) -> tuple[list[ArticulatedBody], list[ConnectedJoints]]:
    """Return all parts (the bodies, then the result of each step) and the joints of each step."""
    parts = list(system.bodies)
    connected: list[ConnectedJoints] = []
    for step in plan.steps:
        meeting = [parts[k] for k in step.parts]
        whole = collect_parts([*meeting, system.world] if step.with_world else meeting)
        part, own = connect(whole, [system.joints[k] for k in step.joints], step.handles)
        parts.append(part)
        connected.append(own)
    return parts, connected


def _joint_forces_on_bodies(
    system: _System,
    plan: AssemblyPlan,
    parts: Sequence[ArticulatedBody],
    connected: Sequence[ConnectedJoints],
) -> list[Force]:
    """Return the force of all joints on every body, by disassembly from the whole to the bodies."""
    n = len(system.bodies)
    forces: list[dict[int, Force]] = [{} for _ in parts]
    for number in reversed(range(len(plan.steps))):
        found, _ = disconnect(connected[number], forces[n + number])
        for k in plan.steps[number].parts:
            forces[k] = {i: found[i] for i in parts[k].handles}
    return [forces[i].get(i, Force.zero()) for i in range(n)]


def _free_body(body: Body, p: Force) -> ArticulatedBody:
    """Return a = Phi f + b of a body alone."""
    Phi = body.inertia.inverse_matrix()
    return single_body(body.index, Phi, Motion.of(times(Phi, (-p).to_list())))


def _handle_joint(body: Body, joint: JointForces) -> HandleJoint:
    """Return a tree joint between the handles of a body and of its parent."""
    return HandleJoint(
        predecessor=body.parent,
        successor=body.index,
        T_predecessor=tuple(joint.X.inverse_apply(t) for t in joint.T),
        T_successor=joint.T,
        active_predecessor=joint.X.inverse_apply(joint.active),
        active_successor=joint.active,
        gamma=[joint.c.dot(t) for t in joint.T],
        E=joint.E,
    )


def _with_scale(joint: HandleJoint, bodies: Sequence[ArticulatedBody]) -> HandleJoint:
    """Return the joint with the diagonal that Y would have if its two bodies were free."""
    sides = ((joint.predecessor, joint.T_predecessor), (joint.successor, joint.T_successor))
    scale = list(joint.E)
    for handle, T in sides:
        if handle != WORLD:
            columns = [t.to_list() for t in T]
            Phi = bodies[handle].Phi[handle, handle]
            scale = [x + dot(t, times(Phi, t)) for x, t in zip(scale, columns, strict=True)]
    return joint._replace(scale=scale)


def _require(tree: Tree) -> None:
    name = "assembly by inverse inertias"
    require_invertible_inertias(tree, name)
    if has_couplings(tree):
        raise ModelError(
            f"{name}: this model couples joints, which is no constraint between two bodies; "
            'use method="aba" or "crba", or model.uncoupled()'
        )
    if tree.constraints or tree.closure is not None:
        others = [repr(item.name) for item in tree.constraints]
        if tree.closure is not None:
            others.append("its loop closure")
        raise ModelError(
            f"{name}: this model has constraints that are no joints between two bodies "
            f"({', '.join(others)}); use another method, such as the default"
        )
