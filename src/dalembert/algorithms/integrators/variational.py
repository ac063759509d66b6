"""A step from a discrete principle of least action: momenta are kept, and energy does not drift.

The action of a step is h L where it is half done, at the velocity that leads from one end to the other:

    L_d = h L(y_m, w_m),      w_m = xi / h,      y_0 = y_m exp(-xi/2),   y_1 = y_m exp(xi/2)            (1)

with exp a straight line, or the turn xi of a rotation. Its stationarity, with the work h f . dy_m of joint
and external forces, gives the momenta at both ends (Marsden & West 2001, sections 2.4 and 3.2): of straight
lines, and of a rotation by theta = xi/2 in each half, E = exp(theta), along the axes of its body,

    p_0 = p_m - h/2 f                          p_1 = p_0 + h f                                            (2)
    p_0 = E (pi - h/2 f)                       p_1 = E^T (E^T p_0 + h f)                                   (3)
    pi = (1 - C/A [theta]^2) (p_m + h/2 B theta x f)          A, B, C of `ExponentialCoefficients`         (4)

p_m and f are dL/dw and dL/dy there, see `lagrangian`; the bracket in (4) is the inverse of the even part of
exp's Jacobian. p_0 = M v is known. w_m is sought by Newton's method with the matrix M + h/2 D + h^2/4 K of
where the step begins, which leaves gyroscopic terms out: errors shrink by about h omega in each iteration,
to rounding. Then v at the end is M^-1 p_1. A step whose iteration fails is NaN; it was too long.

L_d does not change when the system is moved or turned as a whole, so that linear and angular momentum are
those of the start, but for what gravity and other forces add; the subtree of a free root is seen from its
centre of mass, which follows its parabola exactly (`floating`). The map of (q, p) is symplectic and symmetric
in time: its order is two, and the energy error of conservative motion stays bounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from dalembert.algorithms.dense import dot
from dalembert.algorithms.flight import integrate_centroidal, to_centroidal
from dalembert.algorithms.integrators.carried import State
from dalembert.algorithms.integrators.circumstances import StepConditions
from dalembert.algorithms.integrators.floating import add_center_motion, free_roots, relative_to_centers
from dalembert.algorithms.integrators.implicit import resistances
from dalembert.algorithms.integrators.lagrangian import Slopes, joint_forces, rotation_places, slopes
from dalembert.algorithms.mass_matrix import mass_matrix
from dalembert.algorithms.open_tree import is_constrained, require_moving_mass
from dalembert.algorithms.rank import threshold
from dalembert.algorithms.sparse import factor_with_reciprocals, solve_with_reciprocals
from dalembert.algorithms.sparsity import variable_parents, velocity_places
from dalembert.errors import ModelError
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar, is_zero, logical_and, logical_or, loop, maximum, select, sqrt
from dalembert.spatial import Vec3
from dalembert.spatial.exponential import so3_exp
from dalembert.spatial.exponential_coefficients import ExponentialCoefficients

__all__ = ["variational"]

MAX_NEWTON_ITERATIONS: Final = 60
"""Limit of Newton iterations; each at least halves the error, or the step is too long."""

CONVERGED_CHANGE: Final = (4e-30, 1e-13)
"""Change of velocities, squared and relative, that is rounding; in double and single precision."""

STALLED_CHANGE: Final = (1e-24, 1e-10)
"""Change, likewise, that counts as rounding if it no longer decreases."""

FAILED_CHANGE: Final = (1e-14, 1e-6)
"""Change, likewise, above which the iteration has failed."""


class _Search(NamedTuple):
    """w_m, and the last two changes of it, squared in the norm of kinetic energy."""

    w: list[Scalar]
    change: Scalar
    before: Scalar


def variational(conditions: StepConditions, start: State, dt: Scalar) -> State:
    """Take a variational step; free roots are stepped relative to their centres of mass."""
    _require_open(conditions.tree)
    require_moving_mass(conditions.tree, 'integrator "variational"')
    roots = free_roots(conditions)
    if not roots:
        return _least_action_step(conditions, start, dt, ())
    seen = relative_to_centers(conditions, roots, start)
    end = _least_action_step(conditions, seen, dt, [body.index for body in roots])
    return add_center_motion(conditions, roots, start, end, dt)


def _least_action_step(
    conditions: StepConditions, start: State, dt: Scalar, weightless: Sequence[int]
) -> State:
    """Take a step of Eqs (1) to (4)."""
    tree = conditions.tree
    coordinates, rotations = conditions.coordinates, rotation_places(tree)
    centroidal = coordinates.to_centroidal(start)
    half = 0.5 * dt
    M = mass_matrix(tree, start.q, time=conditions.time)
    p_0 = slopes(tree, start.q, start.v, time=conditions.time).p

    def state_after(w: Sequence[Scalar], h: Scalar) -> State:
        """Return (q, v) after h seconds at the velocity w."""
        ends = [
            integrate_centroidal(b, y, [h * x for x in u])
            for b, y, u in coordinates.parts(State(centroidal.q, list(w)))
        ]
        return coordinates.from_centroidal(State([x for y in ends for x in y], list(w)), h)

    def middle(w: Sequence[Scalar]) -> tuple[Slopes, State]:
        there = state_after(w, half)
        found = slopes(
            tree,
            there.q,
            there.v,
            tau=conditions.joint_forces(there.q, there.v),
            external_forces=conditions.external_forces,
            external_frame=conditions.external_frame,
            time=conditions.at(half),
            weightless=weightless,
        )
        return found, there

    lam = variable_parents(tree)
    matrix = _matrix(conditions, M, start.v, dt)
    lagging = conditions.passive and any(not is_zero(f) for body in tree.bodies for f in body.friction)
    factors = factor_with_reciprocals(matrix, lam)
    scale = dot(joint_forces(tree, start.q, p_0), start.v) + sum(M[i][i] for i in range(tree.nv))
    scale = maximum(scale, 1e-30)

    def newton_step(search: _Search) -> _Search:
        found, there = middle(search.w)
        error = [a - b for a, b in zip(p_0, _first_momenta(found, search.w, half, rotations), strict=True)]
        along_v = joint_forces(tree, start.q, error)
        L, reciprocals = factors
        if lagging:
            L, reciprocals = factor_with_reciprocals(_matrix(conditions, M, there.v, dt), lam)
        dv = solve_with_reciprocals(L, reciprocals, lam, along_v)
        dw = [x for b in coordinates.bodies for x in to_centroidal(b, b.own_q(start.q), b.own_v(dv))[1]]
        w = [a + b for a, b in zip(search.w, dw, strict=True)]
        return _Search(w, dot(along_v, dv), search.change)

    def done(search: _Search) -> Scalar:
        stalled = logical_and(
            search.change < threshold(STALLED_CHANGE, scale) * scale, search.before <= 4.0 * search.change
        )
        return logical_or(search.change <= threshold(CONVERGED_CHANGE, scale) * scale, stalled)

    far = 1e30 * scale
    found = loop(MAX_NEWTON_ITERATIONS, newton_step, _Search(centroidal.v, far, far), until=done)
    p_1 = _last_momenta(p_0, middle(found.w)[0].f, found.w, dt, rotations)
    end = state_after(found.w, dt)
    # sqrt(-1) makes a step NaN whose iteration has failed; NaN changes compare as failed, too.
    sound = sqrt(select(found.change <= threshold(FAILED_CHANGE, scale) * scale, 1.0, -1.0))
    return State([x * sound for x in end.q], [x * sound for x in _velocities(conditions, end.q, p_1, dt)])


def _require_open(tree: Tree) -> None:
    if is_constrained(tree):
        names = ", ".join(f'"{name}"' for name in tree.loop_names)
        raise ModelError(
            f'integrator "variational" is for trees, and this model has loops or other constraints ({names});'
            ' use "semi_implicit" or "rk4", which keep them closed'
        )


def _matrix(
    conditions: StepConditions, M: list[list[Scalar]], v: Sequence[Scalar], dt: Scalar
) -> list[list[Scalar]]:
    """Return M + h/2 D + h^2/4 K, with D at the velocity v."""
    A = [list(row) for row in M]
    if not conditions.passive:
        return A
    half = 0.5 * dt
    for body in conditions.tree.bodies:
        D = resistances(body, body.own_v(v))
        for places, d, k in zip(velocity_places(body), D, body.stiffness, strict=True):
            gain = half * (d + half * k)
            if is_zero(gain):
                continue
            for r, ratio_r in places:
                for c, ratio_c in places:
                    A[r][c] = A[r][c] + gain * (ratio_r * ratio_c)
    return A


def _first_momenta(
    middle: Slopes, w: Sequence[Scalar], half: Scalar, rotations: Sequence[int]
) -> list[Scalar]:
    """Return p_0 of Eqs (2), (3)."""
    p = [a - half * f for a, f in zip(middle.p, middle.f, strict=True)]
    for place in rotations:
        own = slice(place, place + 3)
        theta, f = Vec3(*w[own]) * half, Vec3(*middle.f[own]) * half
        k = ExponentialCoefficients(theta.dot(theta))
        pi = Vec3(*middle.p[own]) + theta.cross(f) * k.B
        pi = pi - theta.cross(theta.cross(pi)) * (k.C / k.A)
        p[own] = list(so3_exp(theta) @ (pi - f))
    return p


def _last_momenta(
    p_0: Sequence[Scalar], f: Sequence[Scalar], w: Sequence[Scalar], dt: Scalar, rotations: Sequence[int]
) -> list[Scalar]:
    """Return p_1 of Eqs (2), (3)."""
    p = [a + dt * b for a, b in zip(p_0, f, strict=True)]
    for place in rotations:
        own = slice(place, place + 3)
        E = so3_exp(Vec3(*w[own]) * (0.5 * dt))
        p[own] = list(E.transposed_times(E.transposed_times(Vec3(*p_0[own])) + Vec3(*f[own]) * dt))
    return p


def _velocities(
    conditions: StepConditions, q: Sequence[Scalar], p: Sequence[Scalar], dt: Scalar
) -> list[Scalar]:
    """Return v with the momenta p along w, at the end of the step."""
    tree, time = conditions.tree, conditions.at(dt)
    lam = variable_parents(tree)
    L, reciprocals = factor_with_reciprocals(mass_matrix(tree, q, time=time), lam)
    if time is not None:
        at_rest = slopes(tree, q, [0.0] * tree.nv, time=time).p
        p = [a - b for a, b in zip(p, at_rest, strict=True)]
    return solve_with_reciprocals(L, reciprocals, lam, joint_forces(tree, q, p))
