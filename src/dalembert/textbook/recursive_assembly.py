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

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Unpack

from dalembert.algorithms.applied_forces import Conditions, Loads, Stabilization, stabilized_row
from dalembert.algorithms.constraints import loop_rows
from dalembert.algorithms.dense import dot, times
from dalembert.algorithms.kinematics import body_motions
from dalembert.algorithms.open_tree import has_couplings
from dalembert.errors import ModelError
from dalembert.model.body import Body, Loop
from dalembert.model.topology import WORLD
from dalembert.model.tree import PerBody, Tree
from dalembert.scalar import Scalar, Scalars, Time
from dalembert.spatial import Force, Motion, Vec3
from dalembert.textbook.handles import (
    ArticulatedBody,
    ConnectedJoints,
    HandleJoint,
    JointForces,
    collect_parts,
    connect,
    disconnect,
    joint_forces,
    relative_acceleration,
    require_invertible_inertias,
    single_body,
)

# The order in which bodies are assembled: structure only, no scalars (Featherstone 2008 §3.2, §7.5).
#
# Joint i connects body i to its parent; loop joint l is joint N + l, as in chapter 8. Each body is a part; a
# step connects parts by joints into a new part. Handles of a part are its bodies to which joints outside it
# are still to be connected. Joints to the world are applied to their body before it meets others: the world
# cannot move, so that it needs no handle.
#
#     one_by_one       body by body from the leaves to the root: the articulated-body algorithm's order
#     in_pairs         halves of halves: ceil(log2 N) levels for a chain of N bodies; parts of one level do
#                      not depend on each other


class AssemblyStep(NamedTuple):
    """Parts connected by joints: part k < N is body k, part N + k the result of step k.

    `with_world`: some of the joints go to the world; `handles`: the bodies through which the new part will
    meet others; `level`: one more than the highest of its parts', if they are two.
    """

    parts: tuple[int, ...]
    joints: tuple[int, ...]
    with_world: bool
    handles: tuple[int, ...]
    level: int


class AssemblyPlan(NamedTuple):
    """The steps of an assembly, each after those it depends on, and the number of `levels`."""

    steps: tuple[AssemblyStep, ...]
    levels: int


def plan_one_by_one(tree: Tree, *, handles: Iterable[int] = ()) -> AssemblyPlan:
    """Plan the assembly from the leaves inward, body by body; `handles` stay handles to the end."""
    order = _Order(tree, handles)
    for joint in reversed(order.spanning):
        order.connect(joint)
    return order.plan()


def plan_in_pairs(tree: Tree, *, handles: Iterable[int] = ()) -> AssemblyPlan:
    """Plan the assembly in halves: each part is cut where its halves are most alike in size.

    A part with three handles is cut between them, so that none has more, but for the ends of further
    loops: the work for each step is bounded, and the whole is O(N). A chain has ceil(log2 N) levels.
    `handles`: bodies that stay handles to the end.
    """
    order = _Order(tree, handles)
    for group in sorted(set(order.groups)):
        bodies = {body for body, own in enumerate(order.groups) if own == group}
        _cut(order, bodies, [joint for joint in order.spanning if order.ends[joint][0] in bodies])
    return order.plan()


class _Order:
    """The parts so far: which bodies each holds, and the joints that are not yet connected.

    `spanning`: joints that connect all bodies that can be reached from one another without the world;
    `groups`: a number for each body, the same for bodies that can be so reached.
    """

    def __init__(self, tree: Tree, kept: Iterable[int]) -> None:
        n = len(tree.bodies)
        self.kept = set(kept)
        loops = [(loop.predecessor, loop.successor) for loop in tree.loops]
        self.ends = [*zip(tree.parents, range(n), strict=True), *loops]  # the two bodies of each joint
        self.open = list(range(len(self.ends)))
        self.part_of = list(range(n))
        self.bodies: list[tuple[int, ...]] = [(i,) for i in range(n)]
        self.level = [0] * n
        self.steps: list[AssemblyStep] = []
        self.spanning, self.groups = list[int](), list(range(n))
        for joint, (p, s) in enumerate(self.ends):
            if WORLD not in (p, s) and self.groups[p] != self.groups[s]:
                self.spanning.append(joint)
                lost = self.groups[s]
                self.groups = [self.groups[p] if group == lost else group for group in self.groups]
        for body in range(n):
            grounded = [k for k, ends in enumerate(self.ends) if body in ends and WORLD in ends]
            if grounded:
                self._step((body,), grounded)

    def handles(self, bodies: Iterable[int]) -> tuple[int, ...]:
        """Return the bodies that joints from others are still to be connected to, and those that are kept."""
        inside = set(bodies)
        outward = [self.ends[k] for k in self.open if not inside.issuperset(self.ends[k])]
        return tuple(sorted(({end for ends in outward for end in ends} | self.kept) & inside))

    def connect(self, joint: int) -> None:
        """Connect the two parts at a joint, and close the loops that this completes."""
        p, s = self.ends[joint]
        parts = (self.part_of[p], self.part_of[s])
        between = [k for k in self.open if {self.part_of[x] for x in self.ends[k]} <= set(parts)]
        self._step(parts, sorted(between, key=lambda k: (k != joint, k)))

    def _step(self, parts: tuple[int, ...], joints: Sequence[int]) -> None:
        self.open = [joint for joint in self.open if joint not in joints]
        with_world = any(WORLD in self.ends[joint] for joint in joints)
        bodies = tuple(sorted(body for part in parts for body in self.bodies[part]))
        level = max(self.level[part] for part in parts) + (len(parts) > 1)
        for body in bodies:
            self.part_of[body] = len(self.bodies)
        self.bodies.append(bodies)
        self.level.append(level)
        self.steps.append(AssemblyStep(parts, tuple(joints), with_world, self.handles(bodies), level))

    def plan(self) -> AssemblyPlan:
        return AssemblyPlan(tuple(self.steps), max(self.level, default=0))


def _cut(order: _Order, bodies: set[int], joints: Sequence[int]) -> None:
    """Assemble the halves of a tree of bodies, then connect them."""
    if not joints:
        return
    beyond = _beyond(order, bodies, joints)
    handles, choices = set(order.handles(bodies)), joints
    if len(handles) > 2:
        choices = [k for k in joints if 0 < len(beyond[k] & handles) < len(handles)]
    joint = min(choices, key=lambda k: abs(2 * len(beyond[k]) - len(bodies)))
    for half in (bodies - beyond[joint], beyond[joint]):
        _cut(order, half, [k for k in joints if k != joint and order.ends[k][1] in half])
    order.connect(joint)


def _beyond(order: _Order, bodies: set[int], joints: Iterable[int]) -> dict[int, set[int]]:
    """Return for each joint of a tree of bodies the bodies beyond it, seen from the first body."""
    near_far: list[tuple[int, int, int]] = []
    reached = [min(bodies)]
    pending = {joint: order.ends[joint] for joint in joints}
    for near in reached:  # which grows on the way
        for joint in [k for k, ends in pending.items() if near in ends]:
            p, s = pending.pop(joint)
            far = s if p == near else p
            reached.append(far)
            near_far.append((joint, near, far))
    below = {body: {body} for body in bodies}
    for _, near, far in reversed(near_far):
        below[near] |= below[far]
    return {joint: below[far] for joint, _, far in near_far}


# Loop joints as joints between the handles of two bodies (Featherstone 2008 §7.5 and §8.2).
#
# A loop's equations are K a = k with K a = T^T (J_s - J_p) a; the accelerations of its bodies are a_i = J_i a
# + a_i^vp. So
#
#     T^T (a_s - a_p) = k + T^T (a_s^vp - a_p^vp) = gamma                                               (1)
#
# with k from `constraints.loop_rows`, stabilised if so asked (§7.5, end).


def velocity_product_accelerations(tree: Tree, joints: PerBody[JointForces]) -> PerBody[Motion]:
    """Return a_i^vp = X a_lambda^vp + c_i of every body, in its own coordinates."""

    def step(body: Body, a_parent: Motion) -> tuple[Motion, Motion]:
        a = joints[body].X.apply(a_parent) + joints[body].c
        return a, a

    return tree.outward(step, Motion.zero())


def loop_handle_joint(
    tree: Tree,
    loop: Loop,
    q: Scalars,
    v: Scalars,
    products: PerBody[Motion],
    *,
    time: Time = None,
    stabilization: Stabilization = None,
) -> HandleJoint:
    """Return the loop joint with T in the coordinates of both bodies and gamma of (1); it is passive."""
    rows = loop_rows(tree, loop, q, v, time=time)
    at_predecessor = loop.placement_predecessor.as_transform() @ rows.X
    T_p = tuple(at_predecessor.inverse_apply(t) for t in rows.T)
    T_s = tuple(loop.placement_successor.inverse_apply(t) for t in rows.T)
    errors = zip(rows.k, rows.velocity_error, rows.position_error, strict=True)
    gamma = [stabilized_row(k, e_v, e_p, stabilization) for k, e_v, e_p in errors]
    for sign, body, T in ((1.0, loop.successor, T_s), (-1.0, loop.predecessor, T_p)):
        if body >= 0:
            gamma = [g + sign * products[body].dot(t) for g, t in zip(gamma, T, strict=True)]  # (1)
    zero = Force.zero()
    return HandleJoint(loop.predecessor, loop.successor, T_p, T_s, zero, zero, gamma, [0.0] * len(gamma))


def divide_and_conquer(
    tree: Tree, q: Scalars, v: Scalars, tau: Scalars, **given: Unpack[Conditions]
) -> list[Scalar]:
    """Solve M a + b = tau + external (and K a = k of loops) for a `(nv,)`, parts put together in pairs."""
    return forward_dynamics_by_plan(tree, q, v, tau, plan_in_pairs(tree), **given)


def forward_dynamics_by_inverse_inertias(
    tree: Tree, q: Scalars, v: Scalars, tau: Scalars, **given: Unpack[Conditions]
) -> list[Scalar]:
    """Solve for a `(nv,)` as `divide_and_conquer` does, one body at a time: variant 1 of Table 7.2."""
    return forward_dynamics_by_plan(tree, q, v, tau, plan_one_by_one(tree), **given)


def forward_dynamics_by_plan(
    tree: Tree, q: Scalars, v: Scalars, tau: Scalars, plan: AssemblyPlan, **given: Unpack[Conditions]
) -> list[Scalar]:
    """Return a `(nv,)` by assembly in any order."""
    f_J, parts, connected = _assemble(tree, q, v, tau, plan, **given)
    n = len(tree.bodies)
    forces: list[dict[int, Force]] = [{} for _ in parts]  # on the handles of each part
    for number in reversed(range(len(plan.steps))):
        found, _ = disconnect(connected[number], forces[n + number])
        for k in plan.steps[number].parts:
            forces[k] = {i: found[i] for i in parts[k].handles}
    a = {i: parts[i].acceleration(i, forces[i]) for i in range(n)}
    a[WORLD] = Motion(Vec3.zero(), -tree.gravity)
    return tree.collect(
        [
            relative_acceleration(joint.X.apply(a[body.parent]), a[body.index], joint.c, joint.T_a)
            for body, joint in zip(tree.bodies, f_J, strict=True)
        ]
    )


def handle_equations(
    tree: Tree, q: Scalars, v: Scalars, tau: Scalars, handles: Sequence[int], **given: Unpack[Conditions]
) -> ArticulatedBody:
    """Return a_i = sum_j Phi_ij f_j + b_i of bodies (by index) as handles of the system, assembled in pairs.

    Spatial accelerations and forces in the coordinates of each body, as `handle_inverse_inertia` and
    `handle_bias_acceleration` give them; here in O(N) operations, and for systems with loops too (Eqs 7.4
    and 7.59).
    """
    plan = plan_in_pairs(tree, handles=handles)
    _, parts, _ = _assemble(tree, q, v, tau, plan, **given)
    used = {k for step in plan.steps for k in step.parts}
    whole = collect_parts(part for k, part in enumerate(parts) if k not in used)
    motions = body_motions(tree, q, v, time=given.get("time"))

    def spatial(i: int, b: Motion) -> Motion:
        """Return the spatial acceleration for one seen by the co-moving observers, who fall freely."""
        fall, velocity = motions[i].pose.R.transposed_times(tree.gravity), motions[i].velocity
        return Motion(b.angular, b.linear + fall - velocity.angular.cross(velocity.linear))

    return ArticulatedBody(whole.Phi, {i: spatial(i, b) for i, b in whole.b.items()})


def _assemble(
    tree: Tree,
    q: Scalars,
    v: Scalars,
    tau: Scalars,
    plan: AssemblyPlan,
    *,
    stabilization: Stabilization = None,
    **given: Unpack[Loads],
) -> tuple[PerBody[JointForces], list[ArticulatedBody], list[ConnectedJoints]]:
    """Return the forces of the joints, all parts (bodies, then results of steps) and the joints of steps."""
    _require(tree)
    f_J = joint_forces(tree, q, v, tau, **given)
    parts, joints = list[ArticulatedBody](), list[HandleJoint]()
    for body in tree.bodies:
        Phi = body.inertia.inverse_matrix()
        X, T, E, _, active, c, p = f_J[body]
        parts.append(single_body(body.index, Phi, Motion.of(times(Phi, (-p).to_list()))))
        T_p, active_p = tuple(X.inverse_apply(t) for t in T), X.inverse_apply(active)
        gamma = [c.dot(t) for t in T]
        joints.append(HandleJoint(body.parent, body.index, T_p, T, active_p, active, gamma, E))
    if tree.loops:
        products, time = velocity_product_accelerations(tree, f_J), given.get("time")
        for loop in tree.loops:
            joints.append(
                loop_handle_joint(tree, loop, q, v, products, time=time, stabilization=stabilization)
            )
        joints = [_with_scale(joint, parts) for joint in joints]
    world = single_body(WORLD, None, Motion(Vec3.zero(), -tree.gravity))
    connected: list[ConnectedJoints] = []
    for step in plan.steps:
        meeting = [parts[k] for k in step.parts]
        whole = collect_parts([*meeting, world] if step.with_world else meeting)
        part, own = connect(whole, [joints[k] for k in step.joints], step.handles)
        parts.append(part)
        connected.append(own)
    return f_J, parts, connected


def _with_scale(joint: HandleJoint, bodies: Sequence[ArticulatedBody]) -> HandleJoint:
    """Return the joint with the diagonal that Y would have if its two bodies were free."""
    scale = list(joint.E)
    for i, T in ((joint.predecessor, joint.T_predecessor), (joint.successor, joint.T_successor)):
        if i != WORLD:
            Phi, columns = bodies[i].Phi[i, i], [t.to_list() for t in T]
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
    others = [repr(item.name) for item in tree.constraints]
    others += [] if tree.closure is None else ["its loop closure"]
    if others:
        raise ModelError(
            f"{name}: this model has constraints that are no joints between two bodies "
            f"({', '.join(others)}); use another method, such as the default"
        )
