"""Integrators that evaluate accelerations and nothing else.

euler           y' = y + h dy/dt,  w' = w + h dw/dt, both where the step begins               order 1
semi_implicit   w' = w + h dw/dt,  then y' from w'                      order 1; 2 for the spin of one body
heun            the mean of the rates at both ends, the far end as Euler's method finds it      order 2
rk4             the classical Runge–Kutta method                                                order 4
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, final

import numpy as np

from dalembert.algorithms.aligned import AlignedTree
from dalembert.algorithms.applied_forces import (
    FRICTION_SPEED,
    Loads,
    Stabilization,
    displacement,
    passive_forces,
)
from dalembert.algorithms.dense import dot, factor
from dalembert.algorithms.fluid import fluid_forces
from dalembert.algorithms.forward_dynamics import forward_dynamics
from dalembert.algorithms.hybrid import hybrid_dynamics
from dalembert.algorithms.open_tree import is_constrained
from dalembert.algorithms.springs import stretched_springs
from dalembert.errors import ModelError
from dalembert.model.body import Body
from dalembert.model.joints import Free, Planar, Spherical
from dalembert.model.model import Model
from dalembert.model.topology import WORLD
from dalembert.model.tree import Tree
from dalembert.model.values import rebuilt
from dalembert.scalar import Scalar, Scalars, Time, cos, is_zero, literal, sin, sqrt
from dalembert.spatial import Mat3, SymMat3, Vec3
from dalembert.spatial.rotations import quaternion_rate, rotation_of_quaternion

# Centroidal coordinates (y, w) of a joint: centre of mass and its velocity if free or planar, else q and v.
#
# y holds the position variables with the position of the body's own centre of mass in place of its origin's,
# w the velocity variables with the centre's velocity along predecessor axes in place of the origin's along
# body axes; see `stepping`, Eqs (1) and (2).

Pair = tuple[list[Scalar], list[Scalar]]


def to_centroidal(body: Body, q: Scalars, v: Scalars) -> Pair:
    """Return (y, w) of (q, v): y = p + R c, w = R (v_O + omega x c)."""
    if not _is_free_or_planar(body):
        return list(q), list(v)
    R, p, omega, v_O = _parts(body, q, v)
    c = _center(body)
    return _pack(body, p + R @ c, q, omega, R @ (v_O + omega.cross(c)))


def from_centroidal(body: Body, y: Scalars, w: Scalars) -> Pair:
    """Return (q, v) of (y, w); quaternions in y have unit norm."""
    if not _is_free_or_planar(body):
        return list(y), list(w)
    R, center, omega, velocity = _parts(body, y, w)
    c = _center(body)
    return _pack(body, center - R @ c, y, omega, R.transposed_times(velocity) - omega.cross(c))


def velocity_relative_to_center(body: Body, q: Scalars, v: Scalars) -> list[Scalar]:
    """Return v relative to a frame that moves with the body's centre of mass and does not rotate."""
    if not _is_free_or_planar(body):
        return list(v)
    _, _, omega, _ = _parts(body, q, v)
    return _pack(body, Vec3.zero(), q, omega, -omega.cross(_center(body)))[1]


def centroidal_rates(body: Body, q: Scalars, v: Scalars, a: Scalars) -> Pair:
    """Return (dy/dt, dw/dt) for dv/dt = a."""
    if not _is_free_or_planar(body):
        return body.joint.position_rate(q, v), list(a)
    R, _, omega, v_O = _parts(body, q, v)
    _, _, alpha, a_O = _parts(body, q, a)
    c = _center(body)
    at_center = v_O + omega.cross(c)
    turn = quaternion_rate(q[3:], omega) if isinstance(body.joint, Free) else [v[0]]
    return _pack(
        body, R @ at_center, [0.0] * 3 + turn, alpha, R @ (a_O + alpha.cross(c) + omega.cross(at_center))
    )


def integrate_centroidal(body: Body, y: Scalars, dw: Scalars) -> list[Scalar]:
    """Return y after unit time at constant dw: the centre moves straight, the turn is its exponential."""
    if not _is_free_or_planar(body):
        return body.joint.integrate(y, dw)
    if isinstance(body.joint, Free):
        rotated = body.joint.integrate(y, [*dw[:3], 0.0, 0.0, 0.0])
        return [y[0] + dw[3], y[1] + dw[4], y[2] + dw[5], *rotated[3:]]
    return [y[0] + dw[1], y[1] + dw[2], y[2] + dw[0]]


def _is_free_or_planar(body: Body) -> bool:
    return isinstance(body.joint, (Free, Planar))


def _center(body: Body) -> Vec3:
    """Return the body's centre of mass c; for a planar joint, its part in the plane, as only that moves."""
    c = body.inertia.com
    return c if isinstance(body.joint, Free) else Vec3(c.x, c.y, 0.0)


def _parts(body: Body, q: Scalars, v: Scalars) -> tuple[Mat3, Vec3, Vec3, Vec3]:
    """Return R, position, angular and linear part; for a planar joint, in three dimensions."""
    if isinstance(body.joint, Free):
        return rotation_of_quaternion(q[3:]), Vec3(*q[:3]), Vec3(*v[:3]), Vec3(*v[3:])
    x, y, angle = q
    c, s = cos(angle), sin(angle)
    R = Mat3(c, -s, 0.0, s, c, 0.0, 0.0, 0.0, 1.0)
    return R, Vec3(x, y, 0.0), Vec3(0.0, 0.0, v[0]), Vec3(v[1], v[2], 0.0)


def _pack(body: Body, position: Vec3, q: Scalars, angular: Vec3, linear: Vec3) -> Pair:
    """Return the joint's variables with this position and the orientation in q."""
    if isinstance(body.joint, Free):
        return [*position, *q[3:]], [*angular, *linear]
    return [position.x, position.y, q[-1]], [angular.z, linear.x, linear.y]


# State of a system, and its centroidal coordinates (y, w) of `flight`, joint by joint.


class State(NamedTuple):
    """Position and velocity variables of the whole system."""

    q: list[Scalar]
    v: list[Scalar]


@final
@dataclass(frozen=True, slots=True)
class CentroidalCoordinates:
    """The centroidal coordinates (y, w) of the independent joints, and their conversion."""

    tree: Tree
    time: Time

    @property
    def bodies(self) -> list[Body]:
        """Return the bodies with independent joints, in the order of their variables."""
        if self.tree.closure is None:
            return independent(self.tree)
        by_name = {body.joint_name: body for body in self.tree.bodies}
        return [by_name[name] for name in self.tree.closure.independent]

    def to_centroidal(self, state: State) -> State:
        """Return (y, w) of the state (q, v)."""
        return concatenate_states(to_centroidal(b, b.own_q(state.q), b.own_v(state.v)) for b in self.bodies)

    def rates(self, state: State, a: Scalars) -> State:
        """Return (dy/dt, dw/dt) in the state, for dv/dt = a."""
        return concatenate_states(
            centroidal_rates(b, b.own_q(state.q), b.own_v(state.v), b.own_v(a)) for b in self.bodies
        )

    def from_centroidal(self, centroidal: State, elapsed: Scalar) -> State:
        """Return the state (q, v) of (y, w), with quaternions of unit norm."""
        state = concatenate_states(
            from_centroidal(b, b.joint.normalize(y), w) for b, y, w in self.parts(centroidal)
        )
        if self.tree.closure is None:
            return state
        from dalembert.algorithms.constraints import closure_equations

        now = None if self.time is None else self.time + elapsed
        whole = closure_equations(self.tree, state.q, state.v, time=now)
        return State(whole.q, whole.v)

    def positions_after(self, centroidal: State, elapsed: Scalar) -> list[Scalar]:
        """Return y after a time [s] at the constant velocity w."""
        return [
            x
            for body, y, w in self.parts(centroidal)
            for x in integrate_centroidal(body, y, [u * elapsed for u in w])
        ]

    def parts(self, centroidal: State) -> Iterator[tuple[Body, list[Scalar], list[Scalar]]]:
        """Yield each body with its part of (y, w)."""
        start_q = start_v = 0
        for body in self.bodies:
            end_q, end_v = start_q + body.nq, start_v + body.nv
            yield body, centroidal.q[start_q:end_q], centroidal.v[start_v:end_v]
            start_q, start_v = end_q, end_v


def concatenate_states(pairs: Iterable[tuple[list[Scalar], list[Scalar]]]) -> State:
    """Concatenate the parts of all bodies to one state."""
    listed = list(pairs)
    return State([x for y, _ in listed for x in y], [x for _, w in listed for x in w])


def independent(tree: Tree) -> list[Body]:
    """Return the bodies whose joints do not depend on others by a coupling."""
    return [body for body in tree.bodies if body.dependence is None]


class GivenMotion(NamedTuple):
    """Joints that move as given: their names, and `at(s)` their positions, velocities and accelerations by
    places in q, v and v, s seconds after the start of the step."""

    names: tuple[str, ...]
    at: Callable[[Scalar], tuple[dict[int, Scalar], dict[int, Scalar], dict[int, Scalar]]]


def _with_entries(values: Scalars, entries: dict[int, Scalar]) -> list[Scalar]:
    return [entries.get(k, x) for k, x in enumerate(values)]


# The conditions of a step: the forces on a system, and the accelerations that follow from them.


JointForces: TypeAlias = Callable[[Scalars, Scalars, Scalar], Scalars]
"""tau from q, v and the time [s] since the step began."""


@final
@dataclass(frozen=True, slots=True)
class StepConditions:
    """The system and the forces on it: external forces are constant during the step, and so is `tau`, unless
    it is a function of the state, which each stage then evaluates.

    `loads`: the external forces, and the time [s] at the start of the step. `passive`: springs, damping and
    dry friction of the joints act too. `prescribed`: joints that move as given.
    """

    tree: Tree
    tau: Scalars | JointForces
    loads: Loads
    passive: bool = False
    stabilization: Stabilization = None
    prescribed: GivenMotion | None = None

    @property
    def coordinates(self) -> CentroidalCoordinates:
        """Return the coordinates in which the step is taken."""
        return CentroidalCoordinates(self.tree, self.loads.get("time"))

    def at(self, elapsed: Scalar) -> Time:
        """Return the time [s] at `elapsed` after the start of the step."""
        start = self.loads.get("time")
        return None if start is None else start + elapsed

    def loads_at(self, elapsed: Scalar) -> Loads:
        """Return the loads at `elapsed` [s] after the start of the step."""
        return {**self.loads, "time": self.at(elapsed)}

    def controls(self, q: Scalars, v: Scalars, elapsed: Scalar) -> Scalars:
        """Return tau."""
        return self.tau(q, v, elapsed) if callable(self.tau) else self.tau

    def joint_forces(self, q: Scalars, v: Scalars, elapsed: Scalar) -> Scalars:
        """Return tau, with the passive forces if these act."""
        tau = self.controls(q, v, elapsed)
        if not self.passive:
            return tau
        own = passive_forces(self.tree, q, v, time=self.at(elapsed))
        return [t + p for t, p in zip(tau, own, strict=True)]

    def acceleration(self, q: Scalars, v: Scalars, elapsed: Scalar) -> list[Scalar]:
        """Return dv/dt in a state, `elapsed` [s] after the start of the step."""
        if self.prescribed is not None:
            own_q, own_v, _ = self.prescribed.at(elapsed)
            q, v = _with_entries(q, own_q), _with_entries(v, own_v)
        return self.acceleration_under(self.tree, q, v, self.joint_forces(q, v, elapsed), elapsed)

    def acceleration_under(
        self, tree: Tree, q: Scalars, v: Scalars, tau: Scalars, elapsed: Scalar
    ) -> list[Scalar]:
        """Return dv/dt under joint forces tau; the tree may differ in its armatures."""
        if self.prescribed is not None:
            return self.hybrid(tree, q, v, tau, elapsed)[0]
        return forward_dynamics(tree, q, v, tau, stabilization=self.stabilization, **self.loads_at(elapsed))

    def hybrid(
        self, tree: Tree, q: Scalars, v: Scalars, tau: Scalars, elapsed: Scalar
    ) -> tuple[list[Scalar], list[Scalar]]:
        """Return dv/dt and the joint forces, with the accelerations of prescribed joints as given."""
        if self.prescribed is None:
            raise ModelError("hybrid dynamics of a step without prescribed joints")
        a = _with_entries([0.0] * tree.nv, self.prescribed.at(elapsed)[2])
        loads, names = self.loads_at(elapsed), self.prescribed.names
        return hybrid_dynamics(
            tree, q, v, tau, a, prescribed=names, stabilization=self.stabilization, **loads
        )

    def prescribed_forces(self, start: State) -> list[Scalar]:
        """Return tau where the step begins: as given, and at prescribed joints what moves them so, with
        springs, damping and friction of the joints acting beside."""
        given = self.controls(start.q, start.v, 0.0)
        acting = self.joint_forces(start.q, start.v, 0.0)
        _, tau = self.hybrid(self.tree, start.q, start.v, acting, 0.0)
        return [t + x - f for t, x, f in zip(given, tau, acting, strict=True)]


Integrator = Callable[[StepConditions, State, Scalar], State]
"""The state after a step of dt [s]."""


Acceleration = Callable[[Scalars, Scalars, Scalar], list[Scalar]]
"""dv/dt from q, v and the time since the step began."""


def euler(conditions: StepConditions, start: State, dt: Scalar) -> State:
    """Take a step of explicit Euler, for teaching: an oscillator gains (omega dt)^2 of its energy a step."""
    coordinates = conditions.coordinates
    centroidal = coordinates.to_centroidal(start)
    rate = coordinates.rates(start, conditions.acceleration(start.q, start.v, 0.0))
    y = coordinates.positions_after(centroidal, dt)
    return coordinates.from_centroidal(State(y, _advance(centroidal.v, rate.v, dt)), dt)


def semi_implicit(conditions: StepConditions, start: State, dt: Scalar) -> State:
    """Take a step of semi-implicit Euler: v2 = v + dt a(q, v), then q2 from v2.

    Where M is constant this is the symplectic Euler method, whose energy error stays bounded. The
    velocity-product forces of jointed bodies are explicit, so that limbs that swing fast gain energy: take
    "midpoint" for them. The gyroscopic force of a body by itself is that in the middle of the step.
    """
    a = conditions.acceleration(start.q, start.v, 0.0)
    if not is_constrained(conditions.tree) and conditions.tree.closure is None:
        a = _with_middle_spin(conditions.tree, start.v, a, dt)
    return semi_implicit_update(conditions.coordinates, start, a, dt)


def _with_middle_spin(tree: Tree, v: Scalars, a: Scalars, dt: Scalar) -> list[Scalar]:
    """Return dv/dt with mid-step gyroscopic forces on bodies by themselves, on free or ball joints.

    I alpha' = I alpha + omega x I omega - omega_m x I omega_m,      omega_m = omega + h alpha / 2

    I about the centre of mass, or about a ball joint. At omega itself the force would add (h omega)^2 of the
    energy in every step. A free body's centre keeps its acceleration.
    """
    result = list(a)
    for body in tree.bodies:
        free = isinstance(body.joint, Free)
        alone = body.parent == WORLD and body.index not in tree.parents and body.dependence is None
        if not alone or not (free or isinstance(body.joint, Spherical)):
            continue
        I = body.inertia.inertia_at_com if free else body.inertia.inertia
        if any(not is_zero(m) for m in body.armature) or not _is_invertible(I):
            continue
        own_v, own_a = body.own_v(v), body.own_v(a)
        omega, alpha = Vec3(*own_v[:3]), Vec3(*own_a[:3])
        middle = omega + alpha * (0.5 * dt)
        more = I.inverse() @ (omega.cross(I @ omega) - middle.cross(I @ middle))
        linear = [*(Vec3(*own_a[3:]) - more.cross(body.inertia.com))] if free else []
        result[body.v_slice] = [*(alpha + more), *linear]
    return result


def _is_invertible(I: SymMat3) -> bool:
    """Return whether an inertia is that of a solid; one that is a run-time parameter counts as such."""
    values = [[literal(x) for x in row] for row in I.to_list()]
    if any(x is None for row in values for x in row):
        return True
    smallest, _, largest = np.linalg.eigvalsh(np.array(values, float))
    return bool(smallest > 1e-12 * largest)


def semi_implicit_update(
    coordinates: CentroidalCoordinates, start: State, a: Scalars, dt: Scalar, v: Scalars | None = None
) -> State:
    """Return the state after a step with the acceleration a, in which positions follow the new velocities.

    `v`: the velocities at which a was computed, by default those at the start of the step.
    """
    centroidal = coordinates.to_centroidal(start)
    rate = coordinates.rates(start if v is None else State(start.q, list(v)), a)
    faster = State(centroidal.q, _advance(centroidal.v, rate.v, dt))
    return coordinates.from_centroidal(State(coordinates.positions_after(faster, dt), faster.v), dt)


def heun(conditions: StepConditions, start: State, dt: Scalar) -> State:
    """Take a step of the explicit trapezoidal rule (weights 1/2, 1/2; nodes 0, 1)."""
    centroidal = conditions.coordinates.to_centroidal(start)
    rate = _centroidal_rate(conditions.coordinates, conditions.acceleration)
    k1 = rate(centroidal, 0.0)
    k2 = rate(_advance_state(centroidal, k1, dt), dt)
    mean = State(*([(a + b) * 0.5 for a, b in zip(*rates, strict=True)] for rates in zip(k1, k2)))
    return conditions.coordinates.from_centroidal(_advance_state(centroidal, mean, dt), dt)


def runge_kutta_4(conditions: StepConditions, start: State, dt: Scalar) -> State:
    """Take a step of the classical Runge–Kutta method in the variables (y, w) of `stepping`, Eq. (1)."""
    return runge_kutta_step(conditions.coordinates, conditions.acceleration, start, dt)


def runge_kutta_step(
    coordinates: CentroidalCoordinates, acceleration: Acceleration, start: State, dt: Scalar
) -> State:
    """Take a classical Runge–Kutta step of any dv/dt = acceleration(q, v, time since the step began)."""
    centroidal = coordinates.to_centroidal(start)
    rate = _centroidal_rate(coordinates, acceleration)
    half = 0.5 * dt
    k1 = rate(centroidal, 0.0)
    k2 = rate(_advance_state(centroidal, k1, half), half)
    k3 = rate(_advance_state(centroidal, k2, half), half)
    k4 = rate(_advance_state(centroidal, k3, dt), dt)
    mean = State(
        *(
            [(a + d + 2.0 * (b + c)) * (1.0 / 6.0) for a, b, c, d in zip(*rates, strict=True)]
            for rates in zip(k1, k2, k3, k4)
        )
    )
    return coordinates.from_centroidal(_advance_state(centroidal, mean, dt), dt)


def _centroidal_rate(
    coordinates: CentroidalCoordinates, acceleration: Acceleration
) -> Callable[[State, Scalar], State]:
    """Return the function (y, w), time since the step began -> (dy/dt, dw/dt)."""

    def rate(centroidal: State, elapsed: Scalar) -> State:
        whole = coordinates.from_centroidal(centroidal, elapsed)
        return coordinates.rates(whole, acceleration(whole.q, whole.v, elapsed))

    return rate


def _advance_state(centroidal: State, k: State, h: Scalar) -> State:
    return State(_advance(centroidal.q, k.q, h), _advance(centroidal.v, k.v, h))


def _advance(x: Scalars, rate: Scalars, h: Scalar) -> list[Scalar]:
    return [x_i + h * r for x_i, r in zip(x, rate, strict=True)]


# Steps that are implicit in stiff forces, with velocity-product forces in the middle of the step.
#
# Damping and dry friction of joints are evaluated at the end of the step; "implicit" evaluates springs there
# too, at positions q + h v', "midpoint" at the start:
#
#     M (v' - v) / h + b = tau - K (x + h v') - D v'                 D = damping + friction / sqrt(v^2 + s^2)
#     =>  (M + h D + h^2 K) a = tau - b - K x - (D + h K) v,          v' = v + h a                      (1)
#
# and q' follows from v'. h D + h^2 K stands where armature does, so that (1) is forward dynamics of the same
# system with larger armatures, loops and couplings included. Dry friction counts by its secant, which takes
# no energy back: a joint stops, and does not chatter.
#
# b holds centrifugal, Coriolis and gyroscopic forces, quadratic in velocities. At v they let a spinning body
# gain (h omega)^2 of its energy in every step. So (1) is solved twice with the same inertias: with b(q, v),
# and then with b(q, v_m) at the velocities v_m half a step on; the error falls to (h omega)^4. Systems with
# loops or other constraints, whose accelerations are those that keep the loops at v, take the first solution.
#
# A spring between points, with the row J of its length, adds g J^T J to the matrix of (1), g = h d, or
# h d + h^2 k in "implicit", and - J^T (k x + (g / h) J v) to the right side. With all rows J, N the matrix
# without them and a_0 its solution, and S = sqrt(g) on the diagonal (Sherman, Morrison and Woodbury),
#
#     X = N^-1 J^T S,      (1 + S J X) y = S J a_0,      a = a_0 - X y                                     (2)


def implicit(conditions: StepConditions, start: State, dt: Scalar) -> State:
    """Take a step of Eq. (1), implicit in springs, damping and dry friction of the joints."""
    tree = conditions.tree
    return _step(conditions, start, dt, [body.stiffness for body in tree.bodies], springs=True)


def midpoint(conditions: StepConditions, start: State, dt: Scalar) -> State:
    """Take a step of Eq. (1), implicit in damping and dry friction; springs keep their energy."""
    return _step(conditions, start, dt, [(0.0,) * body.nv for body in conditions.tree.bodies])


def _step(
    conditions: StepConditions,
    start: State,
    dt: Scalar,
    stiffnesses: Sequence[Scalars],
    *,
    springs: bool = False,
) -> State:
    """Take a step of Eq. (1), implicit in damping, dry friction, springs of these stiffnesses and, if so,
    `springs` between points."""
    tree, tau = conditions.tree, conditions.controls(start.q, start.v, 0.0)
    rows: list[list[Scalar]] = []

    def with_fluid(v: Scalars) -> Scalars:
        if not conditions.passive or tree.fluid is None:
            return tau
        drag = fluid_forces(conditions.tree, start.q, v, time=conditions.at(0.0))
        return [t + f for t, f in zip(tau, drag, strict=True)]

    if conditions.passive:
        tree, tau = _stiff(conditions, start, dt, tau, stiffnesses)
        tau, rows = _stiff_springs(conditions, start, dt, tau, springs)

    def acceleration(v: Scalars) -> list[Scalar]:
        tau = with_fluid(v)
        a = conditions.acceleration_under(tree, start.q, v, tau, 0.0)
        if not rows:
            return a
        columns = []
        for row in rows:
            pulled = [t + j for t, j in zip(tau, row, strict=True)]
            moved = conditions.acceleration_under(tree, start.q, v, pulled, 0.0)
            columns.append([x - y for x, y in zip(moved, a, strict=True)])
        matrix = [[dot(row, column) for column in columns] for row in rows]
        for i in range(len(rows)):
            matrix[i][i] = matrix[i][i] + 1.0
        y = factor(matrix).solve([dot(row, a) for row in rows])  # (2)
        return [x - dot(y, [column[k] for column in columns]) for k, x in enumerate(a)]

    a, coordinates = acceleration(start.v), conditions.coordinates
    if is_constrained(tree) or tree.closure is not None:
        return semi_implicit_update(coordinates, start, a, dt)
    centroidal, rate = coordinates.to_centroidal(start), coordinates.rates(start, a)
    half = State(centroidal.q, [w + 0.5 * dt * x for w, x in zip(centroidal.v, rate.v, strict=True)])
    v_m = concatenate_states(from_centroidal(b, y, w) for b, y, w in coordinates.parts(half)).v
    return semi_implicit_update(coordinates, start, acceleration(v_m), dt, v_m)


def _stiff(
    conditions: StepConditions, start: State, dt: Scalar, tau: Scalars, stiffnesses: Sequence[Scalars]
) -> tuple[Tree, list[Scalar]]:
    """Return the system with the armatures of Eq. (1), and tau - K x - (D + h K) v."""
    armatures: dict[int, tuple[Scalar, ...]] = {}
    forces: list[list[Scalar]] = []
    for body, soft in zip(conditions.tree.bodies, stiffnesses, strict=True):
        own_v = body.own_v(start.v)
        gains = [d + dt * k for d, k in zip(resistances(body, own_v), soft, strict=True)]
        armatures[body.index] = tuple(
            m + dt * gain if not is_zero(gain) else m for m, gain in zip(body.armature, gains, strict=True)
        )
        x = displacement(body, body.own_q(start.q))
        forces.append(
            [-(k * e) - gain * u for k, e, gain, u in zip(body.stiffness, x, gains, own_v, strict=True)]
        )
    total = [t + f for t, f in zip(tau, conditions.tree.collect(forces), strict=True)]
    return with_armatures(conditions.tree, armatures), total


def _stiff_springs(
    conditions: StepConditions, start: State, dt: Scalar, tau: Scalars, implicit_stiffness: bool
) -> tuple[list[Scalar], list[list[Scalar]]]:
    """Return tau with the springs between points, and the rows sqrt(g) J of Eq. (2) of those with g > 0."""
    total, rows = list(tau), []
    for item in stretched_springs(conditions.tree, start.q, time=conditions.at(0.0)):
        gain = item.spring.damping
        if implicit_stiffness:
            gain = gain + dt * item.stiffness
        force = item.spring.stiffness * item.stretch + gain * item.path.rate(start.v)
        total = [t - j * force for t, j in zip(total, item.row, strict=True)]
        if not is_zero(gain):
            root = sqrt(dt * gain)
            rows.append([root * j for j in item.row])
    return total, rows


def with_armatures(tree: Tree, armatures: dict[int, tuple[Scalar, ...]]) -> Tree:
    """Return the same system with other armatures, by the indices of bodies; they may be traced."""
    bodies: list[Any] = [dataclasses.replace(body, armature=armatures[body.index]) for body in tree.bodies]
    if isinstance(tree, AlignedTree):
        original: Any = with_armatures(tree.original, armatures)
        return AlignedTree(bodies, tree.gravity, original, tree.loops)
    if not isinstance(tree, Model):
        raise ModelError(
            f'integrators "implicit" and "midpoint" are for models; a {type(tree).__name__} has no armatures'
        )
    return rebuilt(tree, bodies=bodies)


def resistances(body: Body, v: list[Scalar]) -> list[Scalar]:
    """Return D for each velocity variable."""
    return [
        d if is_zero(f) else d + f / sqrt(u * u + FRICTION_SPEED * FRICTION_SPEED)
        for d, f, u in zip(body.damping, body.friction, v, strict=True)
    ]
