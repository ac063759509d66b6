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
from dalembert.algorithms.assembly.matrices import dot, times
from dalembert.algorithms.assembly.planning import WORLD, AssemblyPlan, plan_in_pairs, plan_one_by_one
from dalembert.algorithms.assembly.variants import relative_acceleration
from dalembert.algorithms.external_forces import ExternalForces
from dalembert.algorithms.open_tree import has_couplings
from dalembert.errors import ModelError
from dalembert.model.body import Body
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar
from dalembert.spatial import Force, Motion, Vec3

__all__ = ["divide_and_conquer", "forward_dynamics_by_inverse_inertias", "forward_dynamics_by_plan"]


def divide_and_conquer(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    tau: Sequence[Scalar],
    *,
    external_forces: ExternalForces = None,
    external_frame: str = "body",
    time: Scalar | None = None,
    stabilization: Scalar | None = None,
) -> list[Scalar]:
    """Solve M a + b = tau + external (and K a = k of loops) for a `(nv,)`, parts put together in pairs."""
    return forward_dynamics_by_plan(
        tree,
        q,
        v,
        tau,
        plan_in_pairs(tree),
        external_forces=external_forces,
        external_frame=external_frame,
        time=time,
        stabilization=stabilization,
    )


def forward_dynamics_by_inverse_inertias(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    tau: Sequence[Scalar],
    *,
    external_forces: ExternalForces = None,
    external_frame: str = "body",
    time: Scalar | None = None,
    stabilization: Scalar | None = None,
) -> list[Scalar]:
    """Solve for a `(nv,)` as `divide_and_conquer` does, one body at a time: variant 1 of Table 7.2."""
    return forward_dynamics_by_plan(
        tree,
        q,
        v,
        tau,
        plan_one_by_one(tree),
        external_forces=external_forces,
        external_frame=external_frame,
        time=time,
        stabilization=stabilization,
    )


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
    stabilization: Scalar | None = None,
) -> list[Scalar]:
    """a `(nv,)` by assembly in any order."""
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
    forces = _assembled_forces(bodies, world, joints, plan)
    a = [body.acceleration(i, {i: forces[i]}) for i, body in enumerate(bodies)]
    return tree.collect([_joint_acceleration(body, held[body], a, world) for body in tree.bodies])


def _assembled_forces(
    bodies: Sequence[ArticulatedBody],
    world: ArticulatedBody,
    joints: Sequence[HandleJoint],
    plan: AssemblyPlan,
) -> dict[int, Force]:
    """The force of all its joints on every body: assembly, then disassembly."""
    parts = list(bodies)
    connected: list[ConnectedJoints] = []
    for step in plan.steps:
        meeting = [parts[k] for k in step.parts]
        whole = collect_parts([*meeting, world] if step.with_world else meeting)
        part, own = connect(whole, [joints[k] for k in step.joints], step.handles)
        parts.append(part)
        connected.append(own)
    forces: dict[int, dict[int, Force]] = {}
    for number in reversed(range(len(plan.steps))):
        step = plan.steps[number]
        found, _ = disconnect(connected[number], forces.get(len(bodies) + number, {}))
        for k in step.parts:
            forces[k] = {i: found.get(i, Force.zero()) for i in parts[k].handles}
    return {i: forces.get(i, {}).get(i, Force.zero()) for i in range(len(bodies))}


def _free_body(body: Body, p: Force) -> ArticulatedBody:
    """a = Phi f + b of a body alone."""
    Phi = body.inertia.inverse_matrix()
    return single_body(body.index, Phi, Motion.of(times(Phi, (-p).to_list())))


def _handle_joint(body: Body, joint: JointForces) -> HandleJoint:
    """A tree joint between the handles of a body and of its parent."""
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
    """The joint with what the diagonal of Y would be if its two bodies were free."""
    sides = ((joint.predecessor, joint.T_predecessor), (joint.successor, joint.T_successor))
    scale = list(joint.E)
    for handle, T in sides:
        if handle != WORLD:
            columns = [t.to_list() for t in T]
            Phi = bodies[handle].Phi[handle, handle]
            scale = [x + dot(t, times(Phi, t)) for x, t in zip(scale, columns, strict=True)]
    return joint._replace(scale=scale)


def _joint_acceleration(
    body: Body, joint: JointForces, a: Sequence[Motion], world: ArticulatedBody
) -> list[Scalar]:
    a_parent = world.b[WORLD] if body.parent < 0 else a[body.parent]
    return relative_acceleration(joint.X.apply(a_parent), a[body.index], joint.c, joint.T_a)


def _require(tree: Tree) -> None:
    name = "assembly by inverse inertias"
    require_invertible_inertias(tree, name)
    if has_couplings(tree):
        raise ModelError(
            f"{name}: this model couples joints, which is no constraint between two bodies; "
            'use method="aba" or "crba", or model.uncoupled()'
        )
    if len(getattr(tree, "constraints", ())):
        raise ModelError(
            f"{name}: this model has constraints that are no joints between two bodies; "
            "use the default method"
        )
