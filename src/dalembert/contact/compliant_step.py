"""One time step with compliant contact: springs and dampers at the end of the step, by linear solves.

A surface with K and D under a body at p, and a patch at x along it with K_t and D_t, give to velocities u at
the end of a step of h seconds the impulses (Featherstone 2008 Eqs 11.74, 11.78 with z = p + h u_n, x + h u_t)

    gamma_n = max(0, - h K p - h (D + h K) u_n)                                                          (1)
    gamma_t = - h K_t x - h (D_t + h K_t) u_t, shortened to mu gamma_n                                   (2)

and, where p > 0, gamma_n = max(0, - h (D + h K) (u_n + p / h)): these are points of `costs` whose warm-start
impulse is that of the springs. The equation to solve, with A and p of `stepping`, is

    A eta = p + J^T gamma(J eta)                                                                         (3)

`compliant_solver` does so with the pressing points and the fractions of friction of an earlier eta: a linear
system, twice or until these agree. Its springs and dampers are passive for any stiffness, so that they do not
limit h. Impulses that pull or leave the friction cone are then cut; the rest acts on A. Patches move by
Eq. (11.77) with x at the end of the step:

    x+ = (D_t x - h f_t) / (D_t + h K_t)                                                                 (4)

which is x + h u_t where the body sticks. The surface itself moves likewise: pressed in by z, and by

    z+ = (D z + gamma_n) / (D + h K)                                                                     (5)

after the step, which is the depth that the body then has, unless its impulse was cut. Surfaces return as
soon as bodies leave them: z is never more than the depth. Where it is less, since a body went deep without a
force or starts there, springs store only the energy that contact has put into them; z then grows by 0.25 m/s,
up to 25 times the sag under the weight. At the start z is that bound or the depth, if that is less: bodies
that start deep in each other would otherwise be thrown apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dalembert.algorithms.applied_forces import ExternalForces
from dalembert.contact.active_contacts import JointAxes, sum_over_bodies
from dalembert.contact.compliant_solver import CompliantPoint, solve_compliant
from dalembert.contact.costs import Point
from dalembert.contact.geometry.candidates import ABSENT_POINT_GAP, Candidate
from dalembert.contact.inverse_effective_mass import inverse_tree_masses
from dalembert.contact.options import Compliant, Rigid
from dalembert.contact.step_terms import Motor, advance_state, before_contact, squared_turn, within_limits
from dalembert.errors import ShapeError
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar, maximum, minimum, select, sqrt
from dalembert.spatial import Vec3

GRAVITY_SCALE = 9.81
"""The acceleration [m/s^2] of gravity, as a scale of weights."""

DEFAULT_SAG = 1e-3
"""The depth [m] by which the weight of a figure presses one point in, unless a stiffness is given."""

MAX_UNLOADED_DEPTH_IN_SAGS = 25.0
"""The greatest depth of springs that contact has not pressed in, in multiples of the sag under the weight."""

SEPARATION_SPEED = 0.25
"""The speed [m/s] at which bodies part that overlap by more than their springs are pressed in."""

MAX_STEP_STIFFNESS = 1e3
"""The greatest h^2 K w and h D w. More stiffness would not matter in a step, as a weight presses in by 0.25
um in 5 ms, but rounding errors would grow."""


class CompliantStep(NamedTuple):
    """The state after a step; the impulses [N s] on the second bodies of all candidates along world axes;
    `memory` for the next step, five numbers a candidate (the patch x [m], the normal impulse, the depth z
    [m] by which the surface is pressed in); the work [J] of contact, 1/2 (v+ + v*) . J^T gamma; eta, `free`,
    `bias`, `momenta` and `turn` as in `ContactStep`."""

    q: list[Scalar]
    v: list[Scalar]
    impulses: list[Vec3]
    memory: list[list[Scalar]]
    work: Scalar
    eta: list[Scalar]
    free: list[Scalar]
    bias: list[Scalar]
    momenta: list[Scalar]
    turn: Scalar


def step_compliant(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    tau: Sequence[Scalar],
    dt: Scalar,
    candidates: Sequence[Candidate],
    *,
    motors: Sequence[Motor] = (),
    memory: Sequence[Sequence[Scalar]] | None = None,
    settings: Compliant | None = None,
    external_forces: ExternalForces = None,
    external_frame: str = "body",
) -> CompliantStep:
    """Return the state after dt [s] under joint forces tau, with contact at the candidates (found at q).

    `memory`: that of the previous step, or `fresh_memory` for the first step; None: surfaces at rest that may
    be pressed in by any depth.
    """
    settings = Compliant() if settings is None else settings
    begun = before_contact(
        tree,
        q,
        v,
        tau,
        dt,
        motors,
        limits=settings.limits,
        correction_ratio=Rigid.position_correction,
        friction_compliance=Rigid.friction_compliance,
        external_forces=external_forces,
        external_frame=external_frame,
    )
    surfaces = _surfaces(begun.axes, candidates, memory, dt, settings)
    problem = begun.problem([surface.point for surface in surfaces])
    found = solve_compliant(problem, v, surfaces)
    way = [dt * x + y for x, y in zip(found.v, found.correction, strict=True)]
    travel = within_limits(begun.joints, way)
    q_next, v_next = advance_state(tree, q, found.v, travel)
    new_memory = [
        [
            *surface.patch_after(impulse),
            surface.point.normal.dot(impulse),
            surface.depth_after(impulse),
        ]
        for surface, impulse in zip(surfaces, found.impulses, strict=True)
    ]
    return CompliantStep(
        q_next,
        v_next,
        found.impulses,
        new_memory,
        found.work,
        found.v,
        found.free,
        begun.bias,
        begun.momenta,
        squared_turn(tree, q, begun.M, travel),
    )


def _surfaces(
    axes: JointAxes,
    candidates: Sequence[Candidate],
    memory: Sequence[Sequence[Scalar]] | None,
    dt: Scalar,
    settings: Compliant,
) -> list[CompliantPoint]:
    given = [[0.0, 0.0, 0.0, 0.0, ABSENT_POINT_GAP]] * len(candidates) if memory is None else memory
    if len(given) != len(candidates):
        raise ShapeError(f"there are {len(candidates)} contact points and memory of {len(given)}")
    inverse_mass = inverse_tree_masses(axes.tree)
    return [
        _surface(axes, item, past, dt, settings, inverse_mass)
        for item, past in zip(candidates, given, strict=True)
    ]


def _surface(
    axes: JointAxes,
    item: Candidate,
    past: Sequence[Scalar],
    dt: Scalar,
    settings: Compliant,
    inverse_mass: Sequence[Scalar],
) -> CompliantPoint:
    """Return a candidate with its springs and dampers, as in Eqs (1) and (2)."""
    w = sum_over_bodies(item, inverse_mass)
    K = GRAVITY_SCALE / (DEFAULT_SAG * w) if settings.stiffness is None else settings.stiffness
    D = 2.0 * sqrt(K / w) if settings.damping is None else settings.damping
    K_t = K if settings.friction_stiffness is None else settings.friction_stiffness
    D_t = D if settings.friction_damping is None else settings.friction_damping
    rate = 1.0 / dt
    firm = (MAX_STEP_STIFFNESS / w) * rate
    D, D_t = minimum(D, firm), minimum(D_t, firm)
    K, K_t = minimum(K, firm * rate), minimum(K_t, firm * rate)
    n, gap = item.point.normal, item.point.gap
    sag = GRAVITY_SCALE / (K * w)
    let_go = maximum(past[4], minimum(past[4] + SEPARATION_SPEED * dt, MAX_UNLOADED_DEPTH_IN_SAGS * sag))
    z = minimum(maximum(-gap, 0.0), select(past[4] < 0.0, MAX_UNLOADED_DEPTH_IN_SAGS * sag, let_go))
    x = Vec3(past[0], past[1], past[2])
    across = x - n * n.dot(x)
    arm = item.point.position - axes.origin
    point = Point(
        first=item.first,
        second=item.second,
        arm=arm,
        normal=n,
        bound=-(maximum(gap, 0.0) * (1.0 / dt)),
        friction=item.friction,
        stiffness=dt * (D + dt * K),
        friction_stiffness=dt * (D_t + dt * K_t),
        warm_start=n * (z * (K * dt)) - across * (K_t * dt),
        rows=None if item.runtime_bodies is None else item.runtime_bodies.rows(axes, arm),
    )
    return CompliantPoint(point, z, across, K, D, K_t, D_t, past[3], dt)


def fresh_memory(points: int) -> list[list[float]]:
    """Return the memory before the first step, which marks initial overlaps to be detected."""
    return [[0.0, 0.0, 0.0, 0.0, -1.0] for _ in range(points)]
