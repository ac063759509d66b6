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

from dalembert.algorithms.applied_forces import Conditions, ExternalForces, Stabilization, stabilized_row
from dalembert.algorithms.constraints import loop_rows
from dalembert.algorithms.dense import dot, times
from dalembert.algorithms.kinematics import body_velocities, forward_kinematics
from dalembert.algorithms.open_tree import has_couplings
from dalembert.errors import ModelError
from dalembert.model.body import Body, Loop
from dalembert.model.topology import WORLD
from dalembert.model.tree import PerBody, Tree
from dalembert.scalar import Scalar
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
    """Plan the assembly from the leaves inward, one body at a time; `handles`:
    bodies that stay handles to the end."""
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
    for component in _components(len(tree.bodies), order.spanning_edges()):
        _cut(component, order)
    return order.plan()


class _Edge(NamedTuple):
    """A joint between two bodies."""

    joint: int
    predecessor: int
    successor: int


class _Order:
    """The parts so far: which bodies each holds, and the joints that are not yet connected."""

    def __init__(self, tree: Tree, kept: Iterable[int]) -> None:
        n = len(tree.bodies)
        self.kept = set(kept)
        edges = [_Edge(i, parent, i) for i, parent in enumerate(tree.parents)]
        edges += [_Edge(n + k, loop.predecessor, loop.successor) for k, loop in enumerate(tree.loops)]
        self.size = n
        self.open = {edge.joint: edge for edge in edges}
        self.part_of = list(range(n))
        self.bodies: list[tuple[int, ...]] = [(i,) for i in range(n)]
        self.level = [0] * n
        self.steps: list[AssemblyStep] = []
        self.spanning = _spanning_joints(n, edges)
        for body in range(n):
            grounded = [e for e in edges if body in (e.predecessor, e.successor) and WORLD in e[1:]]
            if grounded:
                self._step((body,), grounded)

    def spanning_edges(self) -> list[_Edge]:
        return [self.open[joint] for joint in self.spanning]

    def handles(self, bodies: Iterable[int]) -> tuple[int, ...]:
        """Return the bodies that joints from others are still to be connected to, and those that are kept."""
        inside = set(bodies)
        ends = {end for e in self.open.values() if not inside.issuperset(e[1:]) for end in e[1:]}
        return tuple(sorted((ends | self.kept) & inside))

    def connect(self, joint: int) -> None:
        """Connect the two parts at a joint, and close the loops that this completes."""
        edge = self.open[joint]
        parts = (self.part_of[edge.predecessor], self.part_of[edge.successor])
        between = [e for e in self.open.values() if {self.part_of[x] for x in e[1:]} <= set(parts)]
        self._step(parts, sorted(between, key=lambda e: (e.joint != joint, e.joint)))

    def _step(self, parts: tuple[int, ...], edges: Iterable[_Edge]) -> None:
        for edge in edges:
            del self.open[edge.joint]
        bodies = tuple(sorted(body for part in parts for body in self.bodies[part]))
        level = max(self.level[part] for part in parts) + (len(parts) > 1)
        for body in bodies:
            self.part_of[body] = len(self.bodies)
        self.bodies.append(bodies)
        self.level.append(level)
        with_world = any(WORLD in edge[1:] for edge in edges)
        joints = tuple(edge.joint for edge in edges)
        self.steps.append(AssemblyStep(parts, joints, with_world, self.handles(bodies), level))

    def plan(self) -> AssemblyPlan:
        return AssemblyPlan(tuple(self.steps), max(self.level, default=0))


def _spanning_joints(n: int, edges: Iterable[_Edge]) -> list[int]:
    """Return joints that connect all bodies that can be reached from one another, without the world."""
    root = list(range(n))

    def find(i: int) -> int:
        while root[i] != i:
            root[i] = root[root[i]]
            i = root[i]
        return i

    chosen = []
    for edge in edges:
        if WORLD not in edge[1:] and find(edge.predecessor) != find(edge.successor):
            root[find(edge.predecessor)] = find(edge.successor)
            chosen.append(edge.joint)
    return chosen


def _components(n: int, edges: Iterable[_Edge]) -> list[tuple[set[int], list[_Edge]]]:
    """Return the trees of a forest: bodies and edges of each."""
    neighbours: list[list[_Edge]] = [[] for _ in range(n)]
    for edge in edges:
        neighbours[edge.predecessor].append(edge)
        neighbours[edge.successor].append(edge)
    seen: set[int] = set()
    components = []
    for start in range(n):
        if start in seen:
            continue
        bodies, own, pending = {start}, [], [start]
        while pending:
            body = pending.pop()
            for edge in neighbours[body]:
                other = edge.successor if edge.predecessor == body else edge.predecessor
                if other not in bodies:
                    bodies.add(other)
                    own.append(edge)
                    pending.append(other)
        seen |= bodies
        components.append((bodies, own))
    return components


def _cut(component: tuple[set[int], list[_Edge]], order: _Order) -> None:
    """Assemble the halves of a component, then connect them."""
    bodies, edges = component
    if not edges:
        return
    handles = set(order.handles(tuple(bodies)))
    beyond = _beyond(bodies, edges)
    choices = edges
    if len(handles) > 2:
        choices = [e for e in edges if 0 < len(beyond[e.joint] & handles) < len(handles)]
    edge = min(choices, key=lambda e: abs(2 * len(beyond[e.joint]) - len(bodies)))
    far = beyond[edge.joint]
    for half in (bodies - far, far):
        _cut((half, [e for e in edges if e is not edge and e.successor in half]), order)
    order.connect(edge.joint)


def _beyond(bodies: set[int], edges: Iterable[_Edge]) -> dict[int, set[int]]:
    """Return for each edge of a tree of bodies the bodies beyond it, seen from the first body."""
    outward: list[tuple[_Edge, int, int]] = []
    reached, pending = {min(bodies)}, [min(bodies)]
    while pending:
        body = pending.pop()
        for edge in edges:
            if body in edge[1:]:
                other = edge.successor if edge.predecessor == body else edge.predecessor
                if other not in reached:
                    reached.add(other)
                    pending.append(other)
                    outward.append((edge, body, other))
    below = {body: {body} for body in bodies}
    for _, near, far in reversed(outward):
        below[near] |= below[far]
    return {edge.joint: below[far] for edge, _, far in outward}


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
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    products: PerBody[Motion],
    *,
    time: Scalar | None = None,
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
