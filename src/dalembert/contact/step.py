"""One time step with contact, under both laws, and the balance of its kinetic energy.

A step solves for the velocities eta by its contact law (`rigid_step`, `compliant_step`), and then moves the
bodies. The balance keeps velocity-product forces from adding energy or momentum, as follows.

A step changes velocities at fixed positions, from v to eta, and then moves the bodies, from q to q'.
Centrifugal, Coriolis and gyroscopic forces C do no work in total, and give no momentum: the energy that they
take while velocities change, the change of M(q) returns while the bodies move. So at the end of the step

    T' = T(q, eta) + h C . (v + v*) / 2,      P' = P(q, eta) + h C_P                                      (1)

where v* is the velocity that the step would have without contact, on which contact acts, and P the linear
momentum of all that a free root carries, in the world: the root's own rows of M eta and of C. With C where
the step begins, (1) holds to first order only, and the error is larger than T itself where a light body turns
by a radian in a step.

The work of weights is that of the displacement of the centre of mass from c to c': velocities turn with the
bodies while these move. The momenta give the displacement that a step should have, with the shift s of flight
(`step_terms`), and T' is less by the work of lifting beyond it:

    T' = ... + g . (m (c' - c - s) - h (P(q, eta) + P(q', v')) / 2)                                       (2)

The kinetic energy of a tree on a free root, with mass m, inertia I and angular momentum L about its centre,
has three parts:

    T = P^2 / 2 m  +  L . I^-1 L / 2  +  T_relative                                                       (3)

Each tree keeps an account of the error in T; errors of both signs cancel there, and a loss of energy of the
tree reduces the account in proportion. Where the sum exceeds a small part of T, the momentum moves towards P'
by the ratio of that excess to this step's error, or as far as T' allows; the remaining excess is removed from
T_relative, by slowing the bodies down relative to the rigid motion of the whole, and where that is not enough
from the rotation. Trees on other joints are slowed down as a whole.

Tried: L set to that of (1) too. Then a tumbling body by itself loses its energy, since orientations follow
the velocities at the end of a step, and T and L are not both kept along those. And T' bounded by the work
that motors and weights do at (v + v*) / 2: stiff motors that contact stops have another force at v*, and
bodies came to rest at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from dalembert.algorithms.applied_forces import ExternalForces
from dalembert.algorithms.inverse_dynamics import bias_forces
from dalembert.algorithms.kinematics import body_velocities, forward_kinematics
from dalembert.algorithms.mass_matrix import composite_inertias
from dalembert.contact.compliant_step import solve_compliant_step
from dalembert.contact.contacts import Contacts, listed_contacts
from dalembert.contact.costs import JointDrive, JointLimit, joint_inverse_masses
from dalembert.contact.law import Law
from dalembert.contact.law_step import solve_law_step
from dalembert.contact.narrow_phase.candidates import Candidate
from dalembert.contact.options import Compliant, Rigid
from dalembert.contact.prescribed import PrescribedMotion, TreeAtTime, moves_as_given
from dalembert.contact.rigid_step import solve_rigid_step
from dalembert.contact.step_terms import (
    Memory,
    Motor,
    independent_bodies,
    start_step,
    whole_translations,
)
from dalembert.errors import ShapeError
from dalembert.model.body import Body
from dalembert.model.joints import Free
from dalembert.model.topology import WORLD
from dalembert.model.tree import PerBody, Tree
from dalembert.scalar import Family, Scalar, Time, is_zero, maximum, minimum, select, sqrt
from dalembert.scalar.row_sets import sum_all
from dalembert.spatial import Force, Motion, RigidInertia, Transform, Vec3


class ContactStep(NamedTuple):
    """The state after a step; the impulses [N s] on the second bodies of the points along world axes, and
    `memory` for the next step, both by rows of the contacts or in the order of candidates; the work [J] of
    contact, 1/2 (v+ + v*) . J^T gamma; for the energy balance eta, `free` (eta without contact), `bias` and
    `momenta` M v of `step_terms`, and `turn` by `squared_turn`; the relative residual of the solver; the
    impulses that prescribed joints need, at their places; the displacement by `step_terms.flight_shift`. A
    step without contact has only the state, `turn` and, as forces, `reaction`."""

    q: Sequence[Scalar]
    v: Sequence[Scalar]
    impulses: Any = ()
    memory: Any = ()
    work: Scalar = 0.0
    eta: Sequence[Scalar] = ()
    free: Sequence[Scalar] = ()
    bias: Sequence[Scalar] = ()
    momenta: Sequence[Scalar] = ()
    turn: Scalar = 0.0
    residual: Scalar = 0.0
    reaction: Sequence[Scalar] = ()
    flight: Sequence[Scalar] = ()


def contact_step(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    tau: Sequence[Scalar],
    dt: Scalar,
    contacts: Contacts | Sequence[Candidate],
    *,
    motors: Sequence[Motor] = (),
    memory: Family[list[Scalar]] | Sequence[Sequence[Scalar]] | None = None,
    settings: Rigid | Compliant | Law | None = None,
    external_forces: ExternalForces = None,
    external_frame: str = "body",
    prescribed: PrescribedMotion | None = None,
    time: Time = None,
) -> ContactStep:
    """Return the state after dt [s] under joint forces tau, with the contacts that were found at q, or at
    candidates one by one.

    `settings`: the contact law, by default `Rigid()`; `memory`: that of the previous step; `prescribed`:
    joints that move as given, under any force; `time` [s] where the step begins, for a tree that
    depends on it.
    """
    law, external = Rigid() if settings is None else settings, (external_forces, external_frame)
    conditions = _Conditions(law, motors, external, prescribed, time)
    if not isinstance(contacts, Contacts):
        return _step_at(tree, q, v, tau, dt, contacts, memory, conditions)
    if memory is not None and not isinstance(memory, Family):
        raise ShapeError("the memory of contacts is a family of their rows; contacts.recall returns it")
    return _step(tree, q, v, tau, dt, contacts, memory, conditions)


class _Conditions(NamedTuple):
    """The law of contact, the motors, the external forces and their frame, the prescribed joints, and the
    time."""

    law: Rigid | Compliant | Law
    motors: Sequence[Motor]
    external: tuple[ExternalForces, str]
    prescribed: PrescribedMotion | None
    time: Time


def _step_at(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    tau: Sequence[Scalar],
    dt: Scalar,
    candidates: Sequence[Candidate],
    memory: Any,
    conditions: _Conditions,
) -> ContactStep:
    """Return a step with contact at candidates, and what it gives for each of them."""
    contacts = listed_contacts(len(tree.bodies), candidates, [q, v] if candidates else ())
    if memory is not None:
        if len(memory) != len(candidates):
            raise ShapeError(f"there are {len(candidates)} contact points and memory of {len(memory)}")
        memory = contacts.every.stack([list(row) for row in memory])
    after = _step(tree, q, v, tau, dt, contacts, memory, conditions)
    places = range(len(candidates))
    return after._replace(
        impulses=[after.impulses.at(k).linear for k in places], memory=[after.memory.at(k) for k in places]
    )


def _step(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    tau: Sequence[Scalar],
    dt: Scalar,
    contacts: Contacts,
    memory: Memory,
    conditions: _Conditions,
) -> ContactStep:
    law, motors, external, prescribed, time = conditions
    start = start_step(tree, q, v, tau, dt, motors, law, *external, prescribed, time)
    if isinstance(law, Compliant):
        found = solve_compliant_step(start, contacts, memory, law, motors)
    elif isinstance(law, Law):
        found = solve_law_step(start, contacts, memory, law)
    else:
        found = solve_rigid_step(start, contacts, memory, law)
    way = [dt * x + y + z for x, y, z in zip(found.v, found.correction, found.flight, strict=True)]
    travel, now, own = within_limits(start.joints, way), start.system.axes.tree, slice(tree.nv)
    q_next, v_next = start.end(found.v, travel)
    turn = squared_turn(now, q, joint_inverse_masses(now), travel, start.system.known)
    balance = [x[own] for x in (found.v, found.free, start.bias, start.momenta)]
    ends = (*balance, turn, found.residual, found.reaction[own], found.flight[own])
    return ContactStep(q_next, v_next[own], found.impulses, found.memory, found.work, *ends)


def within_limits(joints: Sequence[JointLimit | JointDrive], travel: Sequence[Scalar]) -> list[Scalar]:
    """Return the ways of joints in a step, shorter where they would lead beyond a limit.

    Velocities of rebounds, and corrections of overlaps, do not know of limits; the velocity that leads into a
    limit is stopped in the next step. Limits give way by `step_terms.LIMIT_GIVE` in all.
    """
    result = list(travel)
    for joint in joints:
        if isinstance(joint, JointLimit):
            k = joint.place
            result[k] = (
                maximum(result[k], -joint.room) if joint.sign > 0.0 else minimum(result[k], joint.room)
            )
    return result


def squared_turn(
    tree: Tree,
    q: Sequence[Scalar],
    inverse_mass: Sequence[Scalar],
    travel: Sequence[Scalar],
    known: frozenset[int] = frozenset(),
) -> Scalar:
    """Return how far joints turn in a step, squared [rad^2]: the mean of the squares of their ways, `travel`,
    each with the kinetic energy that it would have alone in the neutral configuration, among those of all
    ways; `inverse_mass`: 1 / M_jj there. Variables that are `known` are left out."""
    turns: list[Scalar] = []
    ways: list[Scalar] = []
    for body in independent_bodies(tree):
        for k, s in enumerate(body.jcalc(q, None, None).S, start=body.v_slice.start):
            if k in known:
                continue
            square = travel[k] * travel[k]
            energy = square / inverse_mass[k]
            ways.append(energy)
            if not all(is_zero(x) for x in s.angular):
                turns.append(energy * square)
    return sum_all(turns) / sum_all(ways, 1e-300)


TOLERATED_GAIN = 0.005
"""Errors that add less than this fraction of T in all are left alone, so that motion which is resolved well
is not touched."""


class Balance(NamedTuple):
    """The velocities after a step, and of each tree the sum of errors in T [J] that are left."""

    v: list[Scalar]
    account: list[Scalar]


def balance_energy(
    tree: Tree,
    start: tuple[Sequence[Scalar], Sequence[Scalar]],
    step: ContactStep,
    external: tuple[ExternalForces, str],
    account: Sequence[Scalar],
    dt: Scalar,
    known: frozenset[int] = frozenset(),
    time: Time = None,
) -> Balance:
    """Return the velocities that fulfil (1) and (2) where a step ends.

    `start`: the state (q, v) where it begins; `external` forces and their frame; `account`: that of the
    previous step [J]. Trees with variables that are `known`, or with joints that depend on `time`, do the
    work of what moves them, and are left alone.
    """
    (q, v), tree = start, tree if time is None else TreeAtTime(tree, time)
    still, (forces, frame) = [0.0] * tree.nv, external
    weights = bias_forces(tree, q, still, external_forces=forces, external_frame=frame)
    products = [b - g for b, g in zip(step.bias, weights, strict=True)]
    targets = _targets(tree, q, v, step, products, dt)
    return _balance_trees(tree, step.q, step.v, targets, account, dt, known)


def root_trees(tree: Tree) -> list[list[Body]]:
    """Return the bodies of each tree, its root first."""
    numbers: dict[int, int] = {}
    found: list[list[Body]] = []
    for body in tree.bodies:
        if body.parent == WORLD:
            numbers[body.index] = len(found)
            found.append([])
        else:
            numbers[body.index] = numbers[body.parent]
        found[numbers[body.index]].append(body)
    return found


class _Target(NamedTuple):
    """T of (1) of one tree, before (2), and T(q, v); what contact took from T; P of (1), P(q, eta), m c where
    the step begins, and m s, in the world."""

    energy: Scalar
    earlier: Scalar
    taken: Scalar
    linear: Vec3
    without: Vec3
    moment: Vec3
    shift: Vec3


def _targets(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    step: ContactStep,
    products: Sequence[Scalar],
    dt: Scalar,
) -> list[_Target]:
    """Return the targets of all trees; `products`: C."""
    eta, velocities = step.eta, body_velocities(tree, q, step.eta)
    free = body_velocities(tree, q, step.free)
    poses, composites, momenta = _composite_states(tree, q, velocities)
    found = []
    for bodies, along in zip(root_trees(tree), whole_translations(tree, q), strict=True):
        root, energy = bodies[0], _kinetic_energy(bodies, velocities, eta)
        taken = maximum(_kinetic_energy(bodies, free, step.free) - energy, 0.0)
        earlier: Scalar = 0.0
        for k in _variables(bodies):
            earlier = earlier + 0.5 * step.momenta[k] * v[k]
            energy = energy + (0.5 * dt) * products[k] * (v[k] + step.free[k])
        R, P = poses[root].R, momenta[root].linear
        given = Vec3(*products[root.v_slice][3:]) * dt if isinstance(root.joint, Free) else Vec3.zero()
        moment = _moment(poses[root], composites[root])
        shift = sum((item.axis * step.flight[item.place] for item in along), Vec3.zero())
        shift = R @ shift * composites[root].mass
        found.append(_Target(energy, earlier, taken, R @ (P + given), R @ P, moment, shift))
    return found


def _balance_trees(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    wanted: Sequence[_Target],
    account: Sequence[Scalar],
    dt: Scalar,
    known: frozenset[int],
) -> Balance:
    """Return the balance of all trees in the state (q, v) where a step ends."""
    velocities = body_velocities(tree, q, v)
    poses, composites, momenta = _composite_states(tree, q, velocities)
    result, accounts = list(v), []
    for bodies, target, earlier in zip(root_trees(tree), wanted, account, strict=True):
        if moves_as_given(bodies, known):
            accounts.append(earlier)
            continue
        root, total = bodies[0], _kinetic_energy(bodies, velocities, v)
        pose, carried = poses[root], composites[root]
        fallen = _moment(pose, carried) - target.moment
        expected = (target.without + pose.R @ momenta[root].linear) * (0.5 * dt) + target.shift
        # Position correction lifts at the expense of T, but for what contact has taken from T.
        lifted = tree.gravity.dot(expected - fallen)
        energy = target.energy - maximum(lifted - target.taken, minimum(lifted, 0.0))
        excess, left = _excess(earlier, total - energy, energy)
        left = left * _at_most(target.earlier, energy)
        added: list[Scalar] = []
        if isinstance(root.joint, Free):
            now, kept = _rigid_motion(carried, momenta[root]), maximum(total - excess, 0.0)
            ratio = excess / maximum(total - energy, excess + 1e-300)
            wanted_velocity = pose.R.transposed_times(target.linear) * (1.0 / carried.mass)
            linear = now.linear + (wanted_velocity - now.linear) * ratio
            translation = 0.5 * carried.mass * linear.dot(linear)
            linear = linear * _factor(translation, translation - kept)
            relative = maximum(total - now.translation - now.rotation, 0.0)
            rest = minimum(translation, kept) + now.rotation + relative - kept
            s = select(excess > 0.0, _factor(relative, rest), 1.0)
            omega = now.angular * (_factor(now.rotation, rest - relative) - s)
            change = linear - now.linear * s - omega.cross(carried.com)
            added = [select(excess > 0.0, x, 0.0) for x in (*omega, *change)]
        else:
            s = _factor(total, excess)
        accounts.append(left)
        for k in _variables(bodies):
            result[k] = result[k] * s
        for k, more in enumerate(added, start=root.v_slice.start):
            result[k] = result[k] + more
    return Balance(result, accounts)


def _composite_states(
    tree: Tree, q: Sequence[Scalar], velocities: PerBody[Motion]
) -> tuple[PerBody[Transform], PerBody[RigidInertia], PerBody[Force]]:
    """Return the poses of bodies, and the inertia and the momentum of the subtree of each."""
    return forward_kinematics(tree, q), composite_inertias(tree, q), _momenta(tree, q, velocities)


def _moment(pose: Transform, carried: RigidInertia) -> Vec3:
    """Return m c in the world."""
    moment: Vec3 = pose.R @ carried.h + pose.p * carried.mass
    return moment


class _RigidMotion(NamedTuple):
    """A tree moving as one rigid body: velocity of its centre, angular velocity, and their energies."""

    linear: Vec3
    angular: Vec3
    translation: Scalar
    rotation: Scalar


def _rigid_motion(carried: RigidInertia, h: Force) -> _RigidMotion:
    """Return the motion of a rigid body with the momentum h, about the root's origin."""
    L = h.angular - carried.com.cross(h.linear)
    linear, angular = h.linear * (1.0 / carried.mass), carried.inertia_at_com.inverse() @ L
    return _RigidMotion(linear, angular, 0.5 * h.linear.dot(linear), 0.5 * L.dot(angular))


def _momenta(tree: Tree, q: Sequence[Scalar], velocities: PerBody[Motion]) -> PerBody[Force]:
    """Return the momentum of the subtree of each body, in its coordinates."""

    def step(body: Body, carried: Force) -> tuple[Force, Force]:
        h = body.inertia * velocities[body] + carried
        return body.jcalc(q, None, None).X.inverse_apply(h), h

    return tree.inward(step, Force.zero())[0]


def _kinetic_energy(bodies: Sequence[Body], velocities: PerBody[Motion], v: Sequence[Scalar]) -> Scalar:
    total: Scalar = 0.0
    for body in bodies:
        total = total + body.inertia.kinetic_energy(velocities[body])
        for m, u in zip(body.armature, body.own_v(v), strict=True):
            if not is_zero(m):
                total = total + 0.5 * m * (u * u)
    return total


def _excess(earlier: Scalar, error: Scalar, energy: Scalar) -> tuple[Scalar, Scalar]:
    """Return the energy to remove from T, and the account that remains: the part of the sum of errors beyond
    the tolerated fraction of T, but no more than this step added."""
    balance = earlier + error
    excess = maximum(minimum(balance - TOLERATED_GAIN * maximum(energy, 0.0), error), 0.0)
    return excess, balance - excess


def _at_most(energy: Scalar, most: Scalar) -> Scalar:
    """Return the factor that makes an energy no more than another."""
    return select(energy > most, maximum(most, 0.0) / maximum(energy, 1e-300), 1.0)


def _factor(energy: Scalar, excess: Scalar) -> Scalar:
    """Return the factor of velocities that takes an excess, if there is one, out of their energy, or all of
    it."""
    left = maximum(energy - excess, 0.0)
    return select(excess > 0.0, sqrt(left / maximum(energy, 1e-300)), 1.0)


def _variables(bodies: Sequence[Body]) -> list[int]:
    """Return the places in v of the independent joints of these bodies."""
    return [k for b in bodies if b.dependence is None for k in range(b.v_slice.start, b.v_slice.stop)]
